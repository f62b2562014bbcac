//! The learning-svc program.

use std::process::ExitCode;

use emend_serve::service;
use learning_svc::Arguments;

/// Idle connections take a little less memory than with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    service::run::<Arguments>().await
}
