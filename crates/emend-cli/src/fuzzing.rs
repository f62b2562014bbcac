//! Entry points for the fuzz targets into otherwise private code that parses untrusted input.

pub use crate::commands::mcp::fuzzing::tool_call;
