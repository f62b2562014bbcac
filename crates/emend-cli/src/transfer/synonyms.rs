//! Sets of synonyms as pairs of a term and its representative, for the files of others.
//!
//! In such a file a line or group is a set of its own. Here the terms that stand for one representative are a set, so no two
//! sets of a file share their representative: each takes its first term that represents no set before it. Two relations of
//! one pair are their union. It is known only at the end of the file, so the pairs of a file are held in memory.

use std::collections::{HashMap, HashSet};

use emend_core::{NormalizedKey, Relation};

use super::record::{Record, RowError};

/// What a file says, as it is read.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    rows: Vec<(u64, Result<Record, RowError>)>,
    /// Where each pair is.
    places: HashMap<(String, String), usize>,
    representatives: HashSet<String>,
    /// The representatives of sets, by their terms in order.
    sets: HashMap<Vec<String>, String>,
}

impl Pairs {
    /// The term that represents a set: the first of those that may, unless another set is represented by it. Where all of
    /// them represent others it is the first, and the two sets find each other. A set that comes again keeps its own.
    pub(super) fn representative<'t>(&mut self, set: &[&str], may: &[&'t str]) -> Option<&'t str> {
        let mut key: Vec<String> = set.iter().map(|term| form(term)).collect();
        key.sort_unstable();
        key.dedup();
        if let Some(known) = self.sets.get(&key)
            && let Some(term) = may.iter().find(|term| form(term) == *known)
        {
            return Some(term);
        }
        let free = |term: &&&str| !self.representatives.contains(&form(term));
        let term = *may.iter().find(free).or(may.first())?;
        self.representatives.insert(form(term));
        self.sets.insert(key, form(term));
        Some(term)
    }

    /// Adds a pair, unless both are spellings of one term, which stands for itself without saying so.
    pub(super) fn add(&mut self, line: u64, term: &str, representative: &str, relation: Relation) {
        let pair = (form(term), form(representative));
        if pair.0 == pair.1 {
            return;
        }
        let held = self.places.get(&pair).and_then(|at| self.rows.get_mut(*at));
        if let Some((_, Ok(held))) = held {
            let both = held.relation.map_or(relation, |known| union(known, relation));
            held.relation = Some(both);
            return;
        }
        self.places.insert(pair, self.rows.len());
        let row = Record::synonym(term.to_owned(), representative.to_owned(), relation);
        self.rows.push((line, Ok(row)));
    }

    /// Adds what is not taken of a line.
    pub(super) fn not_taken(&mut self, line: u64, error: RowError) {
        self.rows.push((line, Err(error)));
    }

    /// Passes each row to `take` with its line, in the order of lines, until there are no more or it returns false.
    pub(super) fn pass_on(self, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
        let mut rows = self.rows;
        rows.sort_by_key(|(line, _)| *line);
        for (line, row) in rows {
            if !take(line, row) {
                return;
            }
        }
    }
}

/// How the service compares terms.
fn form(term: &str) -> String {
    NormalizedKey::parse(term).map_or_else(|_| term.to_owned(), |key| key.as_str().to_owned())
}

/// What is found under both relations: equivalent contains one way. A misspelling that is a synonym too is a word.
const fn union(one: Relation, other: Relation) -> Relation {
    match (one, other) {
        (Relation::Equivalent, _) | (_, Relation::Equivalent) => Relation::Equivalent,
        (Relation::OneWay, _) | (_, Relation::OneWay) => Relation::OneWay,
        (Relation::Typo, Relation::Typo) => Relation::Typo,
    }
}
