//! Which queries arrive, and from whom: by Zipf's law, a few all the time and most hardly ever.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use rand_distr::{Distribution as _, Zipf};

/// One query by one reporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// The index of the utterance in the training data.
    pub utterance: usize,
    /// The reporter who asks.
    pub reporter: usize,
}

/// A stream of queries; the same for the same seed.
#[derive(Debug)]
pub struct Traffic {
    by_rank: Vec<usize>,
    law: Zipf<f64>,
    exponent: f64,
    reporters: usize,
    rng: StdRng,
}

impl Traffic {
    /// Traffic over `utterances` utterances by `reporters` people, both at least 1. The frequency rank of each
    /// utterance is drawn too.
    pub fn new(utterances: usize, reporters: usize, exponent: f64, seed: u64) -> anyhow::Result<Self> {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut by_rank: Vec<usize> = (0..utterances).collect();
        by_rank.shuffle(&mut rng);
        #[expect(clippy::cast_precision_loss, reason = "data sets are far smaller than 2^52")]
        let law = Zipf::new(utterances as f64, exponent)?;
        Ok(Self {
            by_rank,
            law,
            exponent,
            reporters,
            rng,
        })
    }

    /// The share of all traffic whose utterances `counts` accepts, computed from Zipf's law and not from the draws.
    pub fn share(&self, mut counts: impl FnMut(usize) -> bool) -> f64 {
        let (mut part, mut whole) = (0.0, 0.0);
        for (rank, &utterance) in (1_u32..).zip(&self.by_rank) {
            let weight = f64::from(rank).powf(-self.exponent);
            whole += weight;
            if counts(utterance) {
                part += weight;
            }
        }
        part / whole
    }

    /// The next query.
    pub fn draw(&mut self) -> Query {
        let rank = self.law.sample(&mut self.rng);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank is a whole number from 1"
        )]
        let rank = (rank as usize).clamp(1, self.by_rank.len());
        Query {
            utterance: self.by_rank[rank - 1],
            reporter: self.rng.random_range(0..self.reporters),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seed: u64, count: usize) -> Vec<Query> {
        let mut traffic = Traffic::new(50, 9, 1.0, seed).unwrap();
        (0..count).map(|_| traffic.draw()).collect()
    }

    #[test]
    fn equal_seeds_draw_equal_queries() {
        assert_eq!(draw(7, 500), draw(7, 500));
        assert_ne!(draw(7, 500), draw(8, 500));
    }

    #[test]
    fn everything_is_drawn_and_the_first_rank_most_often_as_zipf_has_it() {
        let queries = draw(1, 20_000);
        let mut counts = vec![0_u32; 50];
        for query in &queries {
            counts[query.utterance] += 1;
            assert!(query.reporter < 9);
        }
        counts.sort_unstable_by(|one, other| other.cmp(one));
        assert!(counts[49] > 0);
        // With exponent 1 the second is half as frequent as the first, the tenth a tenth as frequent.
        let ratio = |rank: usize| f64::from(counts[0]) / f64::from(counts[rank - 1]);
        assert!((1.7..2.3).contains(&ratio(2)), "{counts:?}");
        assert!((8.0..12.5).contains(&ratio(10)), "{counts:?}");
    }

    #[test]
    fn a_share_of_the_traffic_is_what_is_drawn_in_the_long_run() {
        let mut traffic = Traffic::new(50, 1, 1.0, 4).unwrap();
        let is_so = |utterance: usize| utterance.is_multiple_of(3);
        let share = traffic.share(is_so);
        let drawn = (0..40_000).filter(|_| is_so(traffic.draw().utterance)).count();
        assert!((f64::from(u32::try_from(drawn).unwrap()) / 40_000.0 - share).abs() < 0.01);
        assert!((traffic.share(|_| true) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn with_exponent_0_all_are_equally_frequent() {
        let mut traffic = Traffic::new(10, 1, 0.0, 3).unwrap();
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            counts[traffic.draw().utterance] += 1;
        }
        assert!(
            counts.iter().all(|count| (850..1_150).contains(count)),
            "{counts:?}"
        );
    }
}
