//! For the fuzz targets: what reads what others wrote and is private otherwise.

pub use crate::commands::mcp::fuzzing::tool_call;
