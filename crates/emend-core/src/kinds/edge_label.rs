//! What a person said an edge's label is. Decided by rulings: the newest one in force applies. That it differs from the
//! model's prediction follows from the newest prediction, and is no part of the value.

#![expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "the same signatures for all kinds"
)]

use super::{Field, Form, KindRules, Learned, Rule, RulingRules, newest};
use crate::{evidence::EdgeRelation, roles::Role, violation::Invalid};

/// The label that a person gave an edge; never `Cites`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EdgeLabel(EdgeRelation);

impl EdgeLabel {
    /// A label.
    pub fn new(relation: EdgeRelation) -> Result<Self, Invalid> {
        if relation.is_label() {
            Ok(Self(relation))
        } else {
            Err(Invalid::new(
                "must be supports, refutes or neutral: CITES edges can't be corrected",
            ))
        }
    }

    /// The label as one word: `supports`, `refutes` or `neutral`.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        match EdgeRelation::parse(word) {
            Ok(relation) => Self::new(relation),
            Err(_) => EdgeRelation::parse_label(word).map(Self),
        }
    }

    /// The relation.
    pub const fn relation(self) -> EdgeRelation {
        self.0
    }
}

const fn word(label: Option<EdgeLabel>) -> &'static str {
    match label {
        Some(label) => label.0.name(),
        None => "cleared",
    }
}

pub(super) const RULES: KindRules = KindRules {
    name: "edge_label",
    number: 8,
    summary: "The label that a person gave an edge between a fragment and a claim",
    short_name: "edge",
    aliases: &["edge-label", "edges"],
    key: Form::Exact,
    qualifier: None,
    rule: Rule::Ruling(RulingRules {
        in_force,
        nothing,
        is_high_risk: |_| false,
        needs_target: true,
        entitled: Role::Reviewer,
        by_corrections: true,
    }),
    parse: |word| EdgeLabel::parse(&word).map(|label| Learned::EdgeLabel(Some(label))),
    allows: |_, _| Ok(()),
    is_answer: false,
    arrow: '⊢',
};

pub(super) fn fields(label: &Option<EdgeLabel>) -> Vec<Field<'_>> {
    vec![Field::distinguishing("relation", word(*label))]
}

pub(super) const fn maps_to(label: &Option<EdgeLabel>) -> &str {
    word(*label)
}

pub(super) fn describe(id: &str, label: &Option<EdgeLabel>) -> String {
    match label {
        Some(EdgeLabel(relation)) => format!("the label of edge “{id}” is {relation}"),
        None => format!("nobody decided the label of edge “{id}”"),
    }
}

fn in_force(newest_first: &[&Learned]) -> Option<Learned> {
    newest(newest_first, &nothing())
}

fn nothing() -> Learned {
    Learned::EdgeLabel(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_label_applies_and_a_cleared_one_leaves_the_models() {
        let [supports, refutes] =
            ["supports", "refutes"].map(|word| Learned::EdgeLabel(Some(EdgeLabel::parse(word).unwrap())));
        assert_eq!(in_force(&[&refutes, &supports]), Some(refutes.clone()));
        assert_eq!(in_force(&[&nothing(), &supports]), None);
        assert_eq!(in_force(&[]), None);
    }

    #[test]
    fn a_label_is_a_relation_other_than_cites() {
        for relation in EdgeRelation::LABELS {
            let label = EdgeLabel::parse(&relation.name().to_uppercase()).unwrap();
            assert_eq!(label.relation(), relation);
            assert_eq!(maps_to(&Some(label)), relation.name());
        }
        let refused = EdgeLabel::parse("cites").unwrap_err();
        assert!(refused.0.contains("CITES edges can't be corrected"), "{refused}");
        let unknown = EdgeLabel::parse("cleared").unwrap_err();
        assert_eq!(
            unknown.0,
            "must be one of supports, refutes, neutral, is \"cleared\""
        );
    }
}
