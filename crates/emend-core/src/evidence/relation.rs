//! Edges of the evidence graph: what a fragment says of a claim, by the model and by people.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use super::Weight;
use crate::violation::Invalid;

/// How the two ends of an edge are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeRelation {
    /// It speaks for the claim.
    Supports,
    /// It speaks against the claim.
    Refutes,
    /// It speaks of the claim, neither for nor against it.
    Neutral,
    /// One page cites another. No model predicts it and nobody corrects it.
    Cites,
}

impl EdgeRelation {
    /// All relations, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Supports, Self::Refutes, Self::Neutral, Self::Cites];

    /// The relations that are labels: those between a fragment and a claim.
    pub const LABELS: [Self; 3] = [Self::Supports, Self::Refutes, Self::Neutral];

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::Supports => 1,
            Self::Refutes => 2,
            Self::Neutral => 3,
            Self::Cites => 4,
        }
    }

    /// The relation with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|relation| relation.number() == number)
    }

    /// The name that files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supports => "supports",
            Self::Refutes => "refutes",
            Self::Neutral => "neutral",
            Self::Cites => "cites",
        }
    }

    /// Parses a relation, in any case.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        Self::one_of(&Self::ALL, name)
    }

    /// Parses a label, in any case: a relation other than `cites`.
    pub fn parse_label(name: &str) -> Result<Self, Invalid> {
        Self::one_of(&Self::LABELS, name)
    }

    /// Whether it is a label, and can be predicted and corrected.
    pub const fn is_label(self) -> bool {
        !matches!(self, Self::Cites)
    }

    fn one_of(relations: &[Self], name: &str) -> Result<Self, Invalid> {
        let sought = name.trim().to_ascii_lowercase();
        let found = relations.iter().find(|relation| relation.name() == sought);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = relations.iter().map(|relation| relation.name()).collect();
            Invalid::new(format!("must be one of {}, is {name:?}", names.join(", ")))
        })
    }
}

impl fmt::Display for EdgeRelation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the backend, its model and people say of one edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeLabels {
    /// The relation as the backend upserted it.
    pub relation: EdgeRelation,
    /// What the model predicted; `None`: the relation is the prediction.
    pub label: Option<EdgeRelation>,
    /// How sure the model is of its prediction.
    pub confidence: Option<Weight>,
    /// The ruling in force. A ruling on a `cites` edge says nothing.
    pub ruled: Option<EdgeRelation>,
}

/// What a corrected edge teaches the model, apart from its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelCorrection {
    /// What the model predicted.
    pub predicted: EdgeRelation,
    /// How sure it was; `None`: it did not say.
    pub confidence: Option<Weight>,
    /// What is correct.
    pub correct: EdgeRelation,
}

impl EdgeLabels {
    /// What the model predicted.
    pub fn prediction(self) -> EdgeRelation {
        self.label.unwrap_or(self.relation)
    }

    /// The ruling, if the edge can have one.
    fn ruling(self) -> Option<EdgeRelation> {
        self.ruled.filter(|_| self.relation.is_label())
    }

    /// Whether a person said what is correct.
    pub fn is_reviewed(self) -> bool {
        self.ruling().is_some()
    }

    /// Whether a person said otherwise than the model.
    pub fn is_corrected(self) -> bool {
        self.correction().is_some()
    }

    /// The relation that counts: a person's, else the backend's.
    pub fn effective_relation(self) -> EdgeRelation {
        self.ruling().unwrap_or(self.relation)
    }

    /// The confidence that counts: 1.0 where a person corrected the edge, else the model's. `None`: the model did not say;
    /// the edge is counted among the evidence and weighs nothing.
    pub fn effective_confidence(self) -> Option<Weight> {
        if self.is_corrected() {
            Some(Weight::ONE)
        } else {
            self.confidence
        }
    }

    /// The correction sample; `None`: not reviewed, or the person agreed with the model.
    pub fn correction(self) -> Option<LabelCorrection> {
        let predicted = self.prediction();
        let correct = self.ruling().filter(|ruled| *ruled != predicted)?;
        Some(LabelCorrection {
            predicted,
            confidence: self.confidence,
            correct,
        })
    }
}

/// Which part of exported samples one belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// For training.
    Train,
    /// For testing.
    Test,
}

impl Split {
    /// The part that the samples of an edge belong to, by the XXH3-64 of its id, so that it never changes. About
    /// `test_percent` of 100 edges are for testing, and whoever is stays so when the share grows.
    pub fn of(edge_id: &str, test_percent: u8) -> Self {
        if xxh3_64(edge_id.as_bytes()) % 100 < u64::from(test_percent) {
            Self::Test
        } else {
            Self::Train
        }
    }

    /// The name that files use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        EdgeRelation::{Cites, Neutral, Refutes, Supports},
        *,
    };

    const SURE: Option<Weight> = Some(Weight::from_millionths(900_000));

    fn edge(relation: EdgeRelation, label: Option<EdgeRelation>, ruled: Option<EdgeRelation>) -> EdgeLabels {
        EdgeLabels {
            relation,
            label,
            confidence: SURE,
            ruled,
        }
    }

    #[test]
    fn a_person_who_differs_from_the_model_corrects_the_edge() {
        for (relation, label, ruled, reviewed, corrected, effective) in [
            (Supports, None, None, false, false, Supports),
            (Supports, Some(Supports), None, false, false, Supports),
            (Supports, Some(Neutral), None, false, false, Supports),
            (Supports, None, Some(Supports), true, false, Supports),
            (Supports, None, Some(Refutes), true, true, Refutes),
            (Supports, Some(Neutral), Some(Neutral), true, false, Neutral),
            (Supports, Some(Neutral), Some(Supports), true, true, Supports),
            (Cites, None, Some(Supports), false, false, Cites),
        ] {
            let edge = edge(relation, label, ruled);
            assert_eq!(
                (edge.is_reviewed(), edge.is_corrected(), edge.effective_relation()),
                (reviewed, corrected, effective),
                "{edge:?}"
            );
            let confidence = if corrected { Some(Weight::ONE) } else { SURE };
            assert_eq!(edge.effective_confidence(), confidence, "{edge:?}");
        }
    }

    #[test]
    fn the_sample_of_a_corrected_edge_has_the_prediction_of_the_model() {
        let corrected = edge(Supports, Some(Neutral), Some(Refutes));
        let sample = corrected.correction().unwrap();
        assert_eq!((sample.predicted, sample.correct), (Neutral, Refutes));
        assert_eq!(sample.confidence, SURE);
        let unsure = EdgeLabels {
            confidence: None,
            ..corrected
        };
        assert_eq!(unsure.correction().unwrap().confidence, None);
        assert_eq!(edge(Supports, Some(Neutral), Some(Neutral)).correction(), None);
        assert_eq!(edge(Supports, Some(Neutral), None).correction(), None);
    }

    #[test]
    fn relations_have_names_and_numbers() {
        for relation in EdgeRelation::ALL {
            assert_eq!(EdgeRelation::parse(&relation.name().to_uppercase()), Ok(relation));
            assert_eq!(EdgeRelation::from_number(relation.number()), Some(relation));
            assert_eq!(
                EdgeRelation::parse_label(relation.name()).is_ok(),
                relation.is_label()
            );
        }
        assert_eq!(EdgeRelation::from_number(0), None);
        let refused = EdgeRelation::parse_label("cites").unwrap_err();
        assert_eq!(
            refused.0,
            "must be one of supports, refutes, neutral, is \"cites\""
        );
    }

    #[test]
    fn the_split_is_stable_and_about_as_large_as_asked() {
        assert_eq!(Split::of("edge:1", 20).name(), "train");
        let in_test = |percent| {
            let ids = (0..10_000).map(|id| format!("edge:{id}"));
            ids.filter(|id| Split::of(id, percent) == Split::Test).count()
        };
        assert_eq!((in_test(0), in_test(100)), (0, 10_000));
        assert!((1_900..2_100).contains(&in_test(20)), "{}", in_test(20));
    }
}
