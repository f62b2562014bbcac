//! The length and the seed of fault runs.

use std::{env, process};

use tokio::process::Command;

use crate::harness::process::run;

/// Runs with thousands of streams have about this many sockets open at once, here and in the services.
const OPEN_FILES: &str = "20000";

/// Whether runs are to be long.
pub fn is_long() -> bool {
    env::var_os("EMEND_TEST_LONG").is_some_and(|value| value == "1")
}

/// One length for normal runs, another for long ones, in every build.
pub fn short_or_long<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}

/// Allows this process, and those that it starts from now on, as many open files as runs with thousands of streams
/// need.
///
/// # Panics
/// If the system does not allow it.
pub async fn allow_many_open_files() {
    let mut raise = Command::new("prlimit");
    let this = process::id().to_string();
    raise.args(["--pid", &this, &format!("--nofile={OPEN_FILES}")]);
    run("prlimit", raise).await.expect("more open files");
}

/// A run's seed: that of `EMEND_TEST_SEED`, or else `otherwise`. It is printed, so that a failed run says how to repeat
/// it.
///
/// # Panics
/// If the variable is not a number.
#[expect(clippy::print_stderr, reason = "shown where a test fails")]
pub fn seed(of: &str, otherwise: u64) -> u64 {
    let seed = match env::var("EMEND_TEST_SEED") {
        Ok(seed) => seed.parse().expect("EMEND_TEST_SEED is a number"),
        Err(_) => otherwise,
    };
    eprintln!("{of}: EMEND_TEST_SEED={seed}");
    seed
}

/// A hash of a text (FNV-1a).
pub fn number_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
