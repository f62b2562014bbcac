//! Randomness, injected: ids, tokens and jitter come from an [`Entropy`] that a test can seed.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng};
use uuid::{Builder, Uuid};

/// A source of randomness. Cheap to clone; clones draw from the same source.
#[derive(Clone)]
pub struct Entropy(Source);

#[derive(Clone)]
enum Source {
    System,
    Seeded(Arc<Mutex<StdRng>>),
}

impl Entropy {
    /// The operating system's randomness, through a generator per thread. Fit for tokens.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// Yields the same sequence for the same seed. For tests and simulations.
    pub fn seeded(seed: u64) -> Self {
        Self(Source::Seeded(Arc::new(Mutex::new(StdRng::seed_from_u64(seed)))))
    }

    /// A random UUID, for ids that reveal nothing and for lease tokens.
    pub fn uuid_v4(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        Builder::from_random_bytes(bytes).into_uuid()
    }

    /// A UUID that sorts by the millisecond of `now` and is random within it. Instants before 1970 count as 1970.
    pub fn uuid_v7(&self, now: Timestamp) -> Uuid {
        let mut bytes = [0; 10];
        self.fill(&mut bytes);
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
    }

    /// Uniform in `0.0..1.0`.
    pub fn fraction(&self) -> f64 {
        match &self.0 {
            Source::System => system_rng().random(),
            Source::Seeded(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).random(),
        }
    }

    /// Uniform in `1.0 - spread..1.0 + spread`: a factor that keeps periodic work from synchronising. `spread` is
    /// clamped to `0.0..=1.0`.
    pub fn jitter(&self, spread: f64) -> f64 {
        let spread = spread.clamp(0.0, 1.0);
        (2.0 * self.fraction() - 1.0).mul_add(spread, 1.0)
    }

    /// Fills `bytes`.
    pub fn fill(&self, bytes: &mut [u8]) {
        match &self.0 {
            Source::System => system_rng().fill_bytes(bytes),
            Source::Seeded(rng) => rng
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .fill_bytes(bytes),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where ambient randomness enters, and the only place"
)]
fn system_rng() -> rand::rngs::ThreadRng {
    rand::rng()
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::System => "Entropy(system)",
            Source::Seeded(_) => "Entropy(seeded)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_draw_equal_ids() {
        let (one, other) = (Entropy::seeded(7), Entropy::seeded(7));
        assert_eq!(one.uuid_v4(), other.uuid_v4());
        assert_eq!(one.uuid_v4(), other.clone().uuid_v4());
        assert_ne!(Entropy::seeded(8).uuid_v4(), Entropy::seeded(7).uuid_v4());
    }

    #[test]
    fn ids_carry_their_versions_and_v7_sorts_by_time() {
        let entropy = Entropy::system();
        assert_eq!(entropy.uuid_v4().get_version_num(), 4);
        let early = entropy.uuid_v7(Timestamp::constant(1_000, 0));
        let late = entropy.uuid_v7(Timestamp::constant(1_000, 2_000_000));
        assert_eq!(early.get_version_num(), 7);
        assert!(early < late);
    }

    #[test]
    fn fractions_and_jitter_stay_in_their_ranges() {
        let entropy = Entropy::seeded(1);
        for _ in 0..10_000 {
            assert!((0.0..1.0).contains(&entropy.fraction()));
            assert!((0.8..=1.2).contains(&entropy.jitter(0.2)));
        }
    }
}
