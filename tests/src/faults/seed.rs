//! Where a run's choices come from, so that it can be repeated.

use std::env;

/// The run's seed: what `EMEND_TEST_SEED` says, else the run's own. It is printed, and so shown where the run fails.
///
/// # Panics
/// If the variable holds no number.
#[expect(clippy::print_stderr, reason = "shown where the run fails")]
pub fn chosen(run: &str) -> u64 {
    let seed = match env::var("EMEND_TEST_SEED") {
        Ok(seed) => seed.parse().expect("EMEND_TEST_SEED is a number"),
        Err(_) => of(run) % 1_000_000,
    };
    eprintln!("{run}: EMEND_TEST_SEED={seed}");
    seed
}

/// A number that differs where the texts do (FNV-1a).
pub fn of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Whether runs are to be long.
pub fn is_long() -> bool {
    env::var("EMEND_TEST_LONG").is_ok_and(|long| long == "1")
}
