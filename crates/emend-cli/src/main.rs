//! The `emend` command. All there is to it is in the library, where tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    emend_cli::main()
}
