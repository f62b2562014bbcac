//! All that was learned for one phrase in one namespace, for one user or for everybody.

use std::sync::Arc;

use emend_core::{Kind, Revision};

/// A learned answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The verb or entity id.
    pub(crate) value: Arc<str>,
    /// The revision that applied it.
    pub(crate) revision: Revision,
}

/// What was learned, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The verb the phrase invokes.
    pub(crate) verb: Option<Answer>,
    /// The entity the phrase is an alias of.
    pub(crate) entity: Option<Answer>,
    /// The choices never to be offered, sorted.
    pub(crate) prohibited: Vec<Arc<str>>,
}

impl Entry {
    /// The answer of that kind. Prohibitions are not answers.
    pub(crate) fn answer(&self, kind: Kind) -> Option<&Answer> {
        match kind {
            Kind::InvocationPhrase => self.verb.as_ref(),
            Kind::EntityAlias => self.entity.as_ref(),
            Kind::Prohibition => None,
        }
    }

    /// Records what is now learned. For a prohibition, `value` is the forbidden choice.
    pub(crate) fn learn(&mut self, kind: Kind, value: &str, revision: Revision) {
        let answer = || {
            Some(Answer {
                value: value.into(),
                revision,
            })
        };
        match kind {
            Kind::InvocationPhrase => self.verb = answer(),
            Kind::EntityAlias => self.entity = answer(),
            Kind::Prohibition => {
                if let Err(place) = self.prohibited.binary_search_by(|choice| (**choice).cmp(value)) {
                    self.prohibited.insert(place, value.into());
                }
            }
        }
    }

    /// Removes what is no longer learned. For a prohibition, `qualifier` is the choice that is no longer forbidden.
    pub(crate) fn forget(&mut self, kind: Kind, qualifier: &str) {
        match kind {
            Kind::InvocationPhrase => self.verb = None,
            Kind::EntityAlias => self.entity = None,
            Kind::Prohibition => self.prohibited.retain(|choice| **choice != *qualifier),
        }
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.verb.is_none() && self.entity.is_none() && self.prohibited.is_empty()
    }
}

/// What a table holds for one phrase.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found<'a> {
    /// One answer of that kind and nothing else.
    One(Kind, &'a str, Revision),
    /// Everything in this entry.
    Many(&'a Entry),
}

impl<'a> Found<'a> {
    /// The answer of that kind.
    #[inline]
    pub(crate) fn answer(self, kind: Kind) -> Option<(&'a str, Revision)> {
        match self {
            Self::One(of, value, revision) => (of == kind).then_some((value, revision)),
            Self::Many(entry) => entry.answer(kind).map(|answer| (&*answer.value, answer.revision)),
        }
    }

    /// The choices never to be offered, sorted.
    #[inline]
    pub(crate) fn prohibited(self) -> &'a [Arc<str>] {
        match self {
            Self::One(..) => &[],
            Self::Many(entry) => &entry.prohibited,
        }
    }

    /// Converts it into an owned entry.
    pub(crate) fn to_entry(self) -> Entry {
        match self {
            Self::One(kind, value, revision) => {
                let mut entry = Entry::default();
                entry.learn(kind, value, revision);
                entry
            }
            Self::Many(entry) => entry.clone(),
        }
    }
}
