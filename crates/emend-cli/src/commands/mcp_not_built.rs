//! In place of `emend mcp` where it is not built.

use std::ffi::OsString;

use crate::{
    context::Context,
    failure::{Failure, Result},
};

/// The arguments of `emend mcp`, which nobody reads.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What the command would take.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

/// Says how to get it.
#[expect(clippy::unused_async, reason = "the command itself is not at once")]
pub async fn run(_: Args, _: &Context) -> Result {
    Err(Failure::Usage(
        "this emend was built without its MCP server; build it with `cargo install --path crates/emend-cli --features mcp`"
            .to_owned(),
    ))
}
