//! Choices that repeat for the same seed.

use emend_base::Entropy;

/// A seeded source of choices.
#[derive(Debug)]
pub struct Dice(Entropy);

impl Dice {
    /// Gives the same sequence for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Entropy::seeded(seed))
    }

    /// A number below `bound`, which is at least 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "bounds are small"
    )]
    pub fn below(&self, bound: usize) -> usize {
        ((self.0.fraction() * bound as f64) as usize).min(bound.saturating_sub(1))
    }

    /// Picks one of several.
    pub fn one_of<'a, T>(&self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// True with the given probability.
    pub fn chance(&self, probability: f64) -> bool {
        self.0.fraction() < probability
    }
}
