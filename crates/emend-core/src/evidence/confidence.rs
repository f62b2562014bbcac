//! How far the evidence speaks for a claim. From evidence only: how far sources are trusted does not enter.
//!
//! Whether a claim holds is modelled as an unknown share with the prior Beta(1, 1), all shares alike. Each edge that supports
//! the claim adds its weight to alpha, each that refutes it to beta; the mean and standard deviation of the resulting Beta
//! distribution are the confidence and its uncertainty (conjugate prior of Bernoulli trials: Gelman et al., Bayesian Data
//! Analysis, 3rd ed., 2.4; here trials have weights).
//!
//! One more edge for the side with more evidence never raises the uncertainty. With n = alpha + beta, the logarithm of the
//! variance changes with alpha by 1/alpha − 2/n − 1/(n + 1), which is below 0 wherever alpha ≥ n/2. More evidence for the other
//! side may raise it.

use std::collections::HashMap;

use super::{EdgeRelation, WorkId, registrable_domain};
use crate::violation::Invalid;

/// Millionths in 1.
const ONE: u64 = 1_000_000;

/// A number from 0 to 1 in millionths, so that sums of many do not depend on their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Weight(u32);

impl Weight {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Everything.
    pub const ONE: Self = Self(1_000_000);

    /// Parses a number from 0 to 1, rounded to millionths. NaN is invalid.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to a million"
    )]
    pub fn parse(number: f64) -> Result<Self, Invalid> {
        if (0.0..=1.0).contains(&number) {
            Ok(Self((number * 1e6).round() as u32))
        } else {
            Err(Invalid::new(format!("must be a number from 0 to 1, is {number}")))
        }
    }

    /// That many millionths; 1 if they are more.
    pub const fn from_millionths(millionths: u32) -> Self {
        if millionths > Self::ONE.0 {
            Self::ONE
        } else {
            Self(millionths)
        }
    }

    /// In millionths.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// As a number from 0 to 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

/// The evidence about one claim: sums of weights, and numbers of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Evidence {
    /// The weights of what supports it, in millionths.
    pub supports: u64,
    /// The weights of what refutes it, in millionths.
    pub refutes: u64,
    /// How many edges support it, also those without a weight.
    pub supporting_count: u64,
    /// How many edges refute it, also those without a weight.
    pub refuting_count: u64,
    /// How many edges do neither.
    pub neutral_count: u64,
}

/// How far the evidence speaks for a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// 1 and the weights of what supports it.
    pub alpha: f64,
    /// 1 and the weights of what refutes it.
    pub beta: f64,
    /// The expected share: 0.5 without evidence.
    pub confidence: f64,
    /// The standard deviation of the share.
    pub uncertainty: f64,
    /// The weaker side's part of the evidence: 0, none, to 0.5, as much as the stronger side's.
    pub controversy: f64,
    /// What it comes to.
    pub verdict: Verdict,
}

/// What the evidence about a claim comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The confidence is above a half by more than its uncertainty.
    Supported,
    /// It is below a half by more than its uncertainty.
    Refuted,
    /// Neither.
    Inconclusive,
}

impl Verdict {
    /// The name that files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Refuted => "refuted",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl Evidence {
    /// Counts an edge. One without a weight is counted and adds none; `Cites` says nothing of a claim.
    pub fn add(&mut self, relation: EdgeRelation, weight: Option<Weight>) {
        self.count(relation);
        self.weigh(relation, weight.unwrap_or_default());
    }

    fn count(&mut self, relation: EdgeRelation) {
        match relation {
            EdgeRelation::Supports => self.supporting_count += 1,
            EdgeRelation::Refutes => self.refuting_count += 1,
            EdgeRelation::Neutral => self.neutral_count += 1,
            EdgeRelation::Cites => {}
        }
    }

    fn weigh(&mut self, relation: EdgeRelation, weight: Weight) {
        let sum = match relation {
            EdgeRelation::Supports => &mut self.supports,
            EdgeRelation::Refutes => &mut self.refutes,
            EdgeRelation::Neutral | EdgeRelation::Cites => return,
        };
        *sum = sum.saturating_add(weight.0.into());
    }

    /// How many edges there are.
    pub fn evidence_count(self) -> u64 {
        self.supporting_count + self.refuting_count + self.neutral_count
    }

    /// How far it speaks for the claim, not rounded.
    pub fn confidence(self) -> Confidence {
        let (alpha, beta) = (quotient(self.alpha(), ONE), quotient(self.beta(), ONE));
        let n = alpha + beta;
        let confidence = alpha / n;
        let uncertainty = (confidence * (beta / n) / (n + 1.0)).sqrt();
        let controversy = quotient(self.supports.min(self.refutes), self.weights().max(1));
        Confidence {
            alpha,
            beta,
            confidence,
            uncertainty,
            controversy,
            verdict: if confidence - uncertainty > 0.5 {
                Verdict::Supported
            } else if confidence + uncertainty < 0.5 {
                Verdict::Refuted
            } else {
                Verdict::Inconclusive
            },
        }
    }

    /// The same as it is reported: alpha and beta to 2 decimals, the others to 3, half away from zero. Quotients are rounded
    /// as the fractions they are; the verdict is that of what is not rounded.
    pub fn reported(self) -> Confidence {
        let exact = self.confidence();
        Confidence {
            alpha: rounded(self.alpha(), ONE, 100),
            beta: rounded(self.beta(), ONE, 100),
            confidence: rounded(self.alpha(), self.alpha().saturating_add(self.beta()), 1_000),
            uncertainty: (exact.uncertainty * 1e3).round() / 1e3,
            controversy: rounded(self.supports.min(self.refutes), self.weights().max(1), 1_000),
            verdict: exact.verdict,
        }
    }

    fn alpha(self) -> u64 {
        self.supports.saturating_add(ONE)
    }

    fn beta(self) -> u64 {
        self.refutes.saturating_add(ONE)
    }

    fn weights(self) -> u64 {
        self.supports.saturating_add(self.refutes)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sums below 2^53 millionths are exact, greater ones as near as 1 in 2^53"
)]
fn quotient(dividend: u64, by: u64) -> f64 {
    dividend as f64 / by as f64
}

/// A fraction to the nearest of `parts` in 1, half up.
fn rounded(dividend: u64, by: u64, parts: u64) -> f64 {
    let twice = 2 * u128::from(parts) * u128::from(dividend) + u128::from(by);
    let nearest = twice / (2 * u128::from(by));
    quotient(u64::try_from(nearest).unwrap_or(u64::MAX), parts)
}

/// What counts where several edges come from one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Combining {
    /// Each edge.
    #[default]
    CountAll,
    /// Of each relation the strongest edge of each source.
    OnePerSource,
}

impl Combining {
    /// All ways, in the order of their numbers on the wire.
    pub const ALL: [Self; 2] = [Self::CountAll, Self::OnePerSource];

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::CountAll => 1,
            Self::OnePerSource => 2,
        }
    }

    /// The way with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.number() == number)
    }

    /// The name that files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CountAll => "count_all",
            Self::OnePerSource => "one_per_source",
        }
    }
}

/// An edge that says something of a claim, as it counts.
#[derive(Debug, Clone, Copy)]
pub struct EvidenceEdge<'a> {
    /// The relation that counts.
    pub relation: EdgeRelation,
    /// The confidence that counts; `None`: none is known.
    pub weight: Option<Weight>,
    /// The work that the edge's page publishes, if it has an id: the least id of all pages of that work.
    pub work: Option<&'a WorkId>,
    /// The page's host, in the form of [`host`](super::host).
    pub host: &'a str,
}

/// The evidence of these edges, given in any order. However they are combined, all are counted.
///
/// A source is here a work, or else a registrable domain, at every level of trust: what is a source for
/// [`SourceKey`](super::SourceKey) depends on the level, and a change of levels must change no confidence.
pub fn combine<'a>(combining: Combining, edges: impl IntoIterator<Item = EvidenceEdge<'a>>) -> Evidence {
    let mut evidence = Evidence::default();
    let mut strongest: HashMap<(EdgeRelation, Option<&WorkId>, &str), Weight> = HashMap::new();
    for edge in edges {
        match combining {
            Combining::CountAll => evidence.add(edge.relation, edge.weight),
            Combining::OnePerSource => {
                evidence.count(edge.relation);
                let domain = edge.work.map_or_else(|| registrable_domain(edge.host), |_| "");
                let kept = strongest.entry((edge.relation, edge.work, domain)).or_default();
                *kept = edge.weight.unwrap_or_default().max(*kept);
            }
        }
    }
    for ((relation, ..), weight) in strongest {
        evidence.weigh(relation, weight);
    }
    evidence
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        EdgeRelation::{Cites, Neutral, Refutes, Supports},
        *,
    };

    fn weight(number: f64) -> Option<Weight> {
        Weight::parse(number).ok()
    }

    fn evidence(supports: usize, refutes: usize) -> Evidence {
        let mut evidence = Evidence::default();
        for (relation, times) in [(Supports, supports), (Refutes, refutes)] {
            (0..times).for_each(|_| evidence.add(relation, weight(0.9)));
        }
        evidence
    }

    #[test]
    fn the_beta_model_gives_these_numbers() {
        use Verdict::{Inconclusive, Refuted, Supported};
        for (supports, refutes, alpha, beta, confidence, uncertainty, controversy, verdict) in [
            (0, 0, 1.0, 1.0, 0.500, 0.289, 0.000, Inconclusive),
            (1, 0, 1.9, 1.0, 0.655, 0.241, 0.000, Inconclusive),
            (3, 0, 3.7, 1.0, 0.787, 0.171, 0.000, Supported),
            (3, 1, 3.7, 1.9, 0.661, 0.184, 0.250, Inconclusive),
            (5, 5, 5.5, 5.5, 0.500, 0.144, 0.500, Inconclusive),
            (0, 3, 1.0, 3.7, 0.213, 0.171, 0.000, Refuted),
        ] {
            let expected = Confidence {
                alpha,
                beta,
                confidence,
                uncertainty,
                controversy,
                verdict,
            };
            assert_eq!(
                evidence(supports, refutes).reported(),
                expected,
                "{supports}, {refutes}"
            );
        }
    }

    #[test]
    fn what_is_reported_is_rounded_half_away_from_zero_as_a_fraction() {
        for (dividend, by, parts, expected) in [
            (1_005_000, ONE, 100, 1.01),
            (1_004_999, ONE, 100, 1.0),
            (1, 16, 1_000, 0.063),
            (3, 16, 1_000, 0.188),
            (5, 80_000, 1_000, 0.0),
            (1, 2_000, 1_000, 0.001),
        ] {
            assert_eq!(
                rounded(dividend, by, parts).to_string(),
                expected.to_string(),
                "{dividend}/{by}"
            );
        }
    }

    #[test]
    fn the_verdict_is_that_of_what_is_not_rounded() {
        let near = Evidence {
            supports: 3_000_000,
            refutes: 900_000,
            ..Evidence::default()
        };
        let Confidence {
            confidence,
            uncertainty,
            verdict,
            ..
        } = near.reported();
        assert_eq!((confidence, uncertainty), (0.678, 0.178));
        assert_eq!(verdict, Verdict::Supported, "by less than a thousandth");
    }

    #[test]
    fn weights_outside_0_to_1_are_refused_with_the_bounds() {
        for number in [f64::NAN, -0.001, 1.001, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = Weight::parse(number).unwrap_err();
            assert!(refused.0.contains("from 0 to 1"), "{refused}");
        }
        for (number, millionths) in [(0.0, 0), (-0.0, 0), (1.0, 1_000_000), (0.9, 900_000), (4.9e-7, 0)] {
            assert_eq!(Weight::parse(number), Ok(Weight::from_millionths(millionths)));
        }
        assert_eq!(Weight::parse(0.9).unwrap().as_f64().to_string(), "0.9");
    }

    #[test]
    fn an_edge_without_a_weight_and_a_neutral_one_are_counted_and_weigh_nothing() {
        let mut counted = Evidence::default();
        counted.add(Supports, None);
        counted.add(Refutes, None);
        counted.add(Neutral, weight(0.9));
        counted.add(Cites, weight(0.9));
        assert_eq!(
            (
                counted.supporting_count,
                counted.refuting_count,
                counted.neutral_count
            ),
            (1, 1, 1)
        );
        assert_eq!(counted.evidence_count(), 3);
        assert_eq!(counted.confidence(), Evidence::default().confidence());
    }

    #[test]
    fn of_one_source_the_strongest_edge_of_each_relation_may_count_alone() {
        let paper = WorkId::parse("doi:10.1000/x").unwrap();
        let edge = |relation, number, work, host| EvidenceEdge {
            relation,
            weight: weight(number),
            work,
            host,
        };
        let edges = [
            edge(Supports, 0.5, None, "www.blog.example"),
            edge(Supports, 0.9, None, "blog.example"),
            edge(Refutes, 0.25, None, "blog.example"),
            edge(Supports, 0.75, Some(&paper), "blog.example"),
            edge(Supports, 0.5, Some(&paper), "arxiv.org"),
        ];
        let all = combine(Combining::CountAll, edges);
        assert_eq!((all.supports, all.refutes), (2_650_000, 250_000));
        let one = combine(Combining::OnePerSource, edges);
        assert_eq!((one.supports, one.refutes), (1_650_000, 250_000));
        assert_eq!((one.evidence_count(), all.evidence_count()), (5, 5));
    }

    fn some_evidence() -> impl Strategy<Value = Evidence> {
        (0..2_000_000_000u64, 0..2_000_000_000u64).prop_map(|(supports, refutes)| Evidence {
            supports,
            refutes,
            ..Evidence::default()
        })
    }

    proptest! {
        #[test]
        fn more_evidence_for_the_stronger_side_never_raises_uncertainty(
            evidence in some_evidence(),
            millionths in 0..=1_000_000u32,
        ) {
            let stronger = if evidence.supports >= evidence.refutes { Supports } else { Refutes };
            let mut more = evidence;
            more.add(stronger, Some(Weight::from_millionths(millionths)));
            prop_assert!(more.confidence().uncertainty <= evidence.confidence().uncertainty);
            prop_assert!(more.reported().uncertainty <= evidence.reported().uncertainty);
        }

        #[test]
        fn the_two_sides_mirror_each_other(evidence in some_evidence()) {
            let mirrored = Evidence { supports: evidence.refutes, refutes: evidence.supports, ..evidence };
            let (one, other) = (evidence.confidence(), mirrored.confidence());
            prop_assert!((one.confidence + other.confidence - 1.0).abs() < 1e-12);
            prop_assert!((one.uncertainty - other.uncertainty).abs() < 1e-12);
            prop_assert!((0.0..=0.5).contains(&one.controversy));
        }

        #[test]
        fn the_order_of_edges_does_not_matter(
            edges in proptest::collection::vec((0..3usize, 0..=1_000_000u32, 0..4usize), 0..20),
        ) {
            const HOSTS: [&str; 4] = ["a.example", "www.a.example", "b.example", "c.example"];
            let edges: Vec<_> = edges.into_iter().map(|(relation, millionths, host)| EvidenceEdge {
                relation: EdgeRelation::LABELS[relation],
                weight: Some(Weight::from_millionths(millionths)),
                work: None,
                host: HOSTS[host],
            }).collect();
            for combining in Combining::ALL {
                let forwards = combine(combining, edges.iter().copied());
                prop_assert_eq!(forwards, combine(combining, edges.iter().rev().copied()));
            }
        }
    }
}
