//! libFuzzer on the target named by `EMEND_FUZZ_TARGET`, guided by code coverage. `cargo xtask fuzz` builds it with the
//! required flags and runs it. Half of the mutations are libFuzzer's, half are ours.
#![no_main]

use std::sync::LazyLock;

use emend_fuzz::{Target, mutate, run, targets};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

const TARGET_VARIABLE: &str = "EMEND_FUZZ_TARGET";

static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var(TARGET_VARIABLE).unwrap_or_default();
    targets::named(&name).unwrap_or_else(|| panic!("{TARGET_VARIABLE} names no target: {name:?}"))
});

fuzz_target!(|input: &[u8]| {
    if let Err(finding) = run::check(&TARGET, input) {
        panic!("{}: {finding}", TARGET.name);
    }
});

fuzz_mutator!(|input: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut rng = StdRng::seed_from_u64(seed.into());
    if rng.random() {
        return fuzzer_mutate(input, size, max_size);
    }
    let mut changed = input[..size].to_vec();
    let other = changed.clone();
    mutate::change(
        &mut rng,
        &mut changed,
        &other,
        TARGET.shape,
        max_size.min(TARGET.max_bytes),
    );
    input[..changed.len()].copy_from_slice(&changed);
    changed.len()
});
