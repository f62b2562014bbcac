//! What a term stands for, and what stands for it.
//!
//! The terms that stand for one representative are its set. A term expands to its representatives and their sets. `ONE_WAY`
//! and `TYPO` lead from the term to the set and not back, so nobody expands to such a term. Two sets are never joined: what a
//! representative stands for itself is not followed.

use emend_core::{
    Relation, ResourceValue, Revision, Synonym,
    search::{Alternatives, Term},
};
use smallvec::SmallVec;
use smol_str::SmolStr;

/// One term's part in the synonyms of its namespace. Short terms and the only representative that most have are kept in place,
/// because each pointer followed is a cache miss.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Synonyms {
    /// What it stands for, sorted by normal form.
    pub(crate) representatives: SmallVec<[Representative; 1]>,
    /// What stands for it, sorted by normal form.
    set: Vec<Member>,
}

/// The synonyms of one key: a user's own, and everybody's.
pub(super) type Known<'a> = [Option<&'a Synonyms>; 2];

/// A term's representative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Representative {
    /// In normal form.
    pub(crate) key: SmolStr,
    written: SmolStr,
    relation: Relation,
    revision: Revision,
}

/// A term that stands for another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    key: SmolStr,
    written: SmolStr,
    /// Whether the others of the set expand to it.
    is_found: bool,
}

impl Synonyms {
    /// Records that the term stands for this representative.
    pub(super) fn stands_for(&mut self, key: &str, synonym: &Synonym, revision: Revision) {
        let representative = Representative {
            key: key.into(),
            written: synonym.representative.as_str().into(),
            relation: synonym.relation,
            revision,
        };
        match self
            .representatives
            .binary_search_by(|representative| representative.key.as_str().cmp(key))
        {
            Ok(place) => self.representatives[place] = representative,
            Err(place) => self.representatives.insert(place, representative),
        }
    }

    /// Records that the term no longer stands for this representative.
    pub(super) fn stands_for_no_longer(&mut self, key: &str) {
        self.representatives
            .retain(|representative| representative.key != key);
    }

    /// Records that a term stands for this one.
    pub(super) fn has_in_set(&mut self, key: &str, value: &ResourceValue) {
        let member = Member {
            key: key.into(),
            written: value.written(key).into(),
            is_found: matches!(
                &value.learned,
                emend_core::Learned::Synonym(Synonym {
                    relation: Relation::Equivalent,
                    ..
                })
            ),
        };
        match self.set.binary_search_by(|member| member.key.as_str().cmp(key)) {
            Ok(place) => self.set[place] = member,
            Err(place) => self.set.insert(place, member),
        }
    }

    /// Records that a term no longer stands for this one.
    pub(super) fn has_no_longer(&mut self, key: &str) {
        self.set.retain(|member| member.key != key);
    }

    /// Whether there is anything to search for beside the term.
    pub(super) fn expand(&self) -> bool {
        !self.representatives.is_empty() || self.set.iter().any(|member| member.is_found)
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.representatives.is_empty() && self.set.is_empty()
    }
}

/// What else to search for where a term stands; borrows from the [`Reading`](super::Reading) that answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expansion<'a> {
    /// What the term stands for: the user's own, then everybody's, each sorted by normal form.
    pub representatives: Vec<StandsFor<'a>>,
    /// The other terms, as people write them: the sets of its representatives and, where it is a representative itself, its
    /// own. Sorted by normal form, each once, without the term and the representatives.
    pub others: Vec<&'a str>,
}

/// What a term stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandsFor<'a> {
    /// The representative, as people write it.
    pub representative: &'a str,
    /// How the term is related to it.
    pub relation: Relation,
    /// The revision that applied it.
    pub revision: Revision,
}

impl<'a> Expansion<'a> {
    /// All terms to search for beside the one that was looked up, representatives first.
    pub fn terms(&self) -> impl Iterator<Item = &'a str> {
        let representatives = self
            .representatives
            .iter()
            .map(|representative| representative.representative);
        representatives.chain(self.others.iter().copied())
    }

    /// Whether nothing is known of the term.
    pub fn is_empty(&self) -> bool {
        self.representatives.is_empty() && self.others.is_empty()
    }

    /// Expands `term`, a key in normal form. `find` answers for the synonyms of a key.
    pub(super) fn of(term: &str, find: impl Fn(&str) -> Known<'a>) -> Self {
        let itself = find(term);
        let around = around(term, itself, find);
        let others = others(term, itself, &around);
        Self {
            representatives: around
                .iter()
                .map(|(representative, _)| StandsFor {
                    representative: &representative.written,
                    relation: representative.relation,
                    revision: representative.revision,
                })
                .collect(),
            others: others.into_iter().map(|member| member.written.as_str()).collect(),
        }
    }
}

/// What else to search for where `term`, a key in normal form, stands in a text. `find` answers for the synonyms of a key.
pub(super) fn alternatives<'a>(
    term: &str,
    itself: Known<'a>,
    find: impl Fn(&str) -> Known<'a>,
) -> Alternatives<'a> {
    let as_written = written(term, itself, &find);
    let around = around(term, itself, find);
    let representatives = around.iter().map(|(representative, _)| Term {
        key: &representative.key,
        written: &representative.written,
    });
    let others = others(term, itself, &around).into_iter().map(|member| Term {
        key: &member.key,
        written: &member.written,
    });
    Alternatives {
        representatives: representatives.collect(),
        itself: as_written,
        others: others.collect(),
    }
}

/// How a term is written, as what stands for it says: the first that others expand to.
fn written<'a>(term: &str, itself: Known<'a>, find: impl Fn(&str) -> Known<'a>) -> Option<Term<'a>> {
    let members = itself.into_iter().flatten().flat_map(|synonyms| &synonyms.set);
    members
        .filter(|member| member.is_found)
        .flat_map(|member| find(&member.key))
        .flatten()
        .flat_map(|synonyms| &synonyms.representatives)
        .find(|representative| representative.key == term)
        .map(|representative| Term {
            key: &representative.key,
            written: &representative.written,
        })
}

/// What a term stands for, each once with the synonyms of its key: the user's own, then everybody's.
fn around<'a>(
    term: &str,
    itself: Known<'a>,
    find: impl Fn(&str) -> Known<'a>,
) -> Vec<(&'a Representative, Known<'a>)> {
    let mut around: Vec<(&Representative, Known<'a>)> = Vec::new();
    for representative in itself
        .into_iter()
        .flatten()
        .flat_map(|synonyms| &synonyms.representatives)
    {
        if representative.key != term && !around.iter().any(|(known, _)| known.key == representative.key) {
            around.push((representative, find(&representative.key)));
        }
    }
    around
}

/// The other terms of the sets of a term and its representatives, each once, sorted by normal form.
fn others<'a>(term: &str, itself: Known<'a>, around: &[(&'a Representative, Known<'a>)]) -> Vec<&'a Member> {
    let sets = std::iter::once(itself).chain(around.iter().map(|(_, synonyms)| *synonyms));
    let members = sets.flatten().flatten().flat_map(|synonyms| &synonyms.set);
    let mut others: Vec<&Member> = members
        .filter(|member| member.is_found && member.key != term)
        .filter(|member| !around.iter().any(|(known, _)| known.key == member.key))
        .collect();
    others.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    others.dedup_by(|one, other| one.key == other.key);
    others
}
