//! A term and another one that it stands for, its representative. Decided by votes; the representative is the key's
//! qualifier, so the rivals are the relations of one pair, and a term may stand for several representatives.
//!
//! The terms that stand for one representative are its set. Nothing is joined beyond it: one pair never merges two sets.

use super::{Field, Form, KindRules, Learned, Qualifier, Rule};
use crate::{roles::RiskLevel, violation::Invalid};

/// A term's representative and how the two are related.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Synonym {
    /// Which of the two stands for the other.
    pub relation: Relation,
    /// The representative, as people write it: 1 to 512 characters. In normal form it is the key's qualifier.
    pub representative: String,
}

/// How a term is related to its representative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Relation {
    /// Each finds what the other finds.
    #[default]
    Equivalent,
    /// Who searches for the term also finds the representative's set, but not the other way round.
    OneWay,
    /// The term is a misspelling: it finds the representative's set, and nobody is led to it.
    Typo,
}

impl Relation {
    /// All relations, in the order of their numbers on the wire.
    pub const ALL: [Self; 3] = [Self::Equivalent, Self::OneWay, Self::Typo];

    /// The name that files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equivalent => "equivalent",
            Self::OneWay => "one_way",
            Self::Typo => "typo",
        }
    }

    /// Parses the name, in any case and with `-` for `_`.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        let sought = name.trim().to_ascii_lowercase().replace('-', "_");
        Self::ALL
            .into_iter()
            .find(|relation| relation.name() == sought)
            .ok_or_else(|| Invalid::new(format!("must be equivalent, one_way or typo, is {name:?}")))
    }
}

pub(super) const RULES: KindRules = KindRules {
    name: "synonym",
    number: 4,
    summary: "A term and the one that it stands for",
    short_name: "synonym",
    aliases: &["synonyms", "term", "term_correction"],
    key: Form::Phrase,
    qualifier: Some(Qualifier {
        form: Form::Phrase,
        meaning: "the term that it stands for",
        field: Some("representative"),
        default: None,
    }),
    rule: Rule::Votes {
        default_risk: RiskLevel::Medium,
    },
    parse: |representative| {
        Ok(Learned::Synonym(Synonym {
            relation: Relation::default(),
            representative,
        }))
    },
    allows: |_, _| Ok(()),
    is_answer: false,
    arrow: '≈',
};

pub(super) fn fields(synonym: &Synonym) -> Vec<Field<'_>> {
    vec![
        Field::distinguishing("relation", synonym.relation.name()),
        Field::shown("representative", &synonym.representative),
    ]
}

pub(super) fn maps_to(synonym: &Synonym) -> &str {
    &synonym.representative
}

pub(super) fn describe(term: &str, synonym: &Synonym) -> String {
    let Synonym {
        relation,
        representative,
    } = synonym;
    match relation {
        Relation::Equivalent => format!("“{term}” and “{representative}” mean the same"),
        Relation::OneWay => format!("“{term}” also finds “{representative}”, but not the other way round"),
        Relation::Typo => format!("“{term}” is a misspelling of “{representative}”"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_tells_which_way_terms_are_led() {
        let arrows = Relation::ALL.map(|relation| {
            let representative = "leader".to_owned();
            Learned::Synonym(Synonym {
                relation,
                representative,
            })
            .arrow()
        });
        assert_eq!(arrows, ['≈', '→', '→']);
    }

    #[test]
    fn a_relation_is_parsed_by_its_name() {
        for relation in Relation::ALL {
            assert_eq!(Relation::parse(relation.name()), Ok(relation));
        }
        assert_eq!(Relation::parse(" One-Way "), Ok(Relation::OneWay));
        assert!(Relation::parse("both").unwrap_err().0.contains("equivalent"));
    }
}
