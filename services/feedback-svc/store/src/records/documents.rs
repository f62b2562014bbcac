//! Queries that come as several documents, as those of `OpenSearch` UBI may.

use emend_core::Invalid;
use xxhash_rust::xxh3::xxh3_64;

use super::queries::{KEPT_RESULTS, Query, StoredQuery};

/// The most results that are told apart.
const MOST: usize = 100;

/// The results that documents of a query named, as hashes of their ids: more than are kept of a query, so that what several
/// documents found is counted once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedResults(Vec<u64>);

impl NamedResults {
    /// Those with these ids.
    pub fn of<'i>(ids: impl IntoIterator<Item = &'i str>) -> Self {
        let hashes = ids.into_iter().map(|id| xxh3_64(id.as_bytes()));
        let mut named = Self::default();
        named.add(hashes);
        named.0.truncate(MOST);
        named
    }

    fn add(&mut self, hashes: impl Iterator<Item = u64>) {
        for hash in hashes {
            if !self.0.contains(&hash) {
                self.0.push(hash);
            }
        }
    }

    /// As it is stored.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|hash| hash.to_be_bytes()).collect()
    }

    pub(crate) fn parse(stored: &[u8]) -> Result<Self, Invalid> {
        let (hashes, rest) = stored.as_chunks();
        if !rest.is_empty() || hashes.len() > MOST {
            return Err(Invalid::new(format!(
                "must be at most {MOST} hashes of 8 bytes, is {} bytes",
                stored.len()
            )));
        }
        Ok(Self(
            hashes.iter().map(|hash| u64::from_be_bytes(*hash)).collect(),
        ))
    }
}

impl StoredQuery {
    /// The query with one more document of it. The text, session and time are those of the earlier one, the results those of both,
    /// and what it found is known if one of them says it.
    #[must_use]
    pub fn with(&self, document: &Self) -> Self {
        let (first, later) = if document.searched_at < self.searched_at {
            (document, self)
        } else {
            (self, document)
        };
        let mut query = first.query.clone();
        let others = later.query.top_results.iter();
        let others = others.filter(|other| {
            let mut known = first.query.top_results.iter();
            known.all(|known| known.object_id != other.object_id)
        });
        query.top_results.extend(others.cloned());
        query.top_results.truncate(KEPT_RESULTS);
        let mut named = query.named_results.unwrap_or_default();
        named.add(
            later
                .query
                .named_results
                .iter()
                .flat_map(|later| later.0.iter().copied()),
        );
        let together = u32::try_from(named.0.len()).unwrap_or(u32::MAX);
        named.0.truncate(MOST);
        query.named_results = Some(named);
        let said = query.hit_count.max(later.query.hit_count);
        query.hit_count = said.map(|said| said.max(together));
        if query.session_id.is_empty() {
            query.session_id.clone_from(&later.query.session_id);
        }
        if self.query.is_erased() || document.query.is_erased() {
            query = query.erased();
        }
        Self {
            query,
            searched_at: first.searched_at,
            ..self.clone()
        }
    }
}

impl Query {
    /// Whether its texts are erased.
    pub fn is_erased(&self) -> bool {
        self.query_text.is_empty()
    }

    /// The query without what it tells of a person.
    #[must_use]
    pub fn erased(self) -> Self {
        Self {
            query_text: String::new(),
            answer_text: String::new(),
            classification: String::new(),
            session_id: String::new(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_named_once_and_its_hashes_are_read_as_they_were_stored() {
        let named = NamedResults::of(["a", "b", "a"]);
        assert_eq!(named.bytes().len(), 16);
        assert_eq!(NamedResults::parse(&named.bytes()), Ok(named));
        let many: Vec<String> = (0..2 * MOST).map(|id| id.to_string()).collect();
        let many = NamedResults::of(many.iter().map(String::as_str));
        assert_eq!(many.bytes().len(), 8 * MOST);
        for wrong in [7, 8 * (MOST + 1)] {
            NamedResults::parse(&vec![0; wrong]).unwrap_err();
        }
    }
}
