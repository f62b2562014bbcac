//! Edges of the evidence graph: what a fragment says of a claim, by the model and by people.

use std::fmt;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
