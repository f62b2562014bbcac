//! The `emend` command. Everything is in the library, where tests can reach it.

use std::process::ExitCode;

/// Makes idle connections take a little less memory than the system's allocator does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    emend_cli::main()
}
