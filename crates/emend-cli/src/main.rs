//! The `emend` command. All there is to it is in the library, where tests reach it.

use std::process::ExitCode;

/// Keeps connections small: an idle subscriber takes about 4 KB less than with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    emend_cli::main()
}
