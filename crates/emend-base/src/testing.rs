//! The line that says why a test was skipped.

use std::{env, fmt, fs::OpenOptions, io::Write as _};

const SKIPPED_FILE_VARIABLE: &str = "EMEND_SKIPPED_FILE";

/// Reports in one line why a test is skipped, on standard error and in the file that `EMEND_SKIPPED_FILE` names. `cargo
/// xtask test` collects these lines and decides which of them CI accepts.
///
/// # Panics
/// If `CI` is `true` and no file is named, because then no skip is accepted. If the file can't be written.
pub fn skipped(reason: impl fmt::Display) {
    let line = format!("skipped: {reason}\n");
    #[expect(clippy::print_stderr, reason = "the one line about a skipped test")]
    {
        eprint!("{line}");
    }
    if let Some(file) = env::var_os(SKIPPED_FILE_VARIABLE) {
        // Test processes write concurrently: appending one short line in a single write keeps lines whole.
        let appended = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        appended.unwrap_or_else(|error| panic!("{SKIPPED_FILE_VARIABLE}: {error}"));
    } else {
        assert!(
            env::var("CI").as_deref() != Ok("true"),
            "{reason}, which may not be in CI"
        );
    }
}
