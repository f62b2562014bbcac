//! The `emend` command. All there is to it is in the library, where tests reach it.

use std::process::ExitCode;

/// Keeps idle connections a little smaller than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    emend_cli::main()
}
