//! How assistants reach tools of the Model Context Protocol: lines of standard input and output ([`lines`]), and Streamable HTTP
//! ([`http`]). What the tools do is the handler's, which `rmcp` serves.
//!
//! Both transports answer every request that has an id, also one that the protocol's library can't read.

pub mod http;
pub mod lines;
mod message;
mod unread;
