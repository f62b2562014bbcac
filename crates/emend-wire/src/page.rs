//! Page tokens: opaque, bound to the query that they continue, and checked when sent back.
//!
//! A token is base64url of a version byte, XXH3-64 of the query and the position after which the next page begins.
//! Tokens are neither secret nor signed: a forged one only yields another page that the caller may read anyway.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use emend_core::Invalid;
use prost::Message;
use xxhash_rust::xxh3::xxh3_64;

const VERSION: u8 = 1;
/// Maximum encoded size of a page's items: half of the 4 MiB that gRPC clients accept by default.
pub const MAX_PAGE_BYTES: usize = 2 * 1024 * 1024;
/// Maximum length of a token.
const MAX_TOKEN: usize = 8 * 1024;

/// Identifies a query: the hash of the request without its page fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryHash(u64);

impl QueryHash {
    /// Hashes a request whose `page_size` and `page_token` have been cleared.
    pub fn of(rpc: &str, request_without_page: &impl Message) -> Self {
        let mut bytes = rpc.as_bytes().to_vec();
        request_without_page
            .encode(&mut bytes)
            .expect("invariant: a Vec grows as needed");
        Self(xxh3_64(&bytes))
    }
}

/// The token of the page that begins after `position`.
pub fn token(query: QueryHash, position: &[u8]) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&query.0.to_le_bytes());
    bytes.extend_from_slice(position);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position in a token; `None` for the first page. A token of another query, or one that is malformed, is invalid.
pub fn position(query: QueryHash, token: &str) -> Result<Option<Vec<u8>>, Invalid> {
    if token.is_empty() {
        return Ok(None);
    }
    let bad =
        || Invalid::new("is not a page token of this list: send it unchanged, with the same other fields");
    if token.len() > MAX_TOKEN {
        return Err(bad());
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| bad())?;
    match bytes.split_first() {
        Some((&VERSION, rest)) if rest.len() >= 8 && rest[..8] == query.0.to_le_bytes() => {
            Ok(Some(rest[8..].to_vec()))
        }
        _ => Err(bad()),
    }
}

/// The position in a token made by [`number_token`].
pub fn number_position(query: QueryHash, token: &str) -> Result<Option<i64>, Invalid> {
    let Some(bytes) = position(query, token)? else {
        return Ok(None);
    };
    let bytes = bytes
        .try_into()
        .map_err(|_| Invalid::new("is not a page token of this list"))?;
    Ok(Some(i64::from_le_bytes(bytes)))
}

/// The token of the page that begins after the number `position`.
pub fn number_token(query: QueryHash, position: i64) -> String {
    token(query, &position.to_le_bytes())
}

/// The space left on a page of at most [`MAX_PAGE_BYTES`].
#[derive(Debug, Default)]
pub struct PageBudget {
    used: usize,
}

impl PageBudget {
    /// Reserves space for the next item and returns whether it fits. The first item always fits, so that every page
    /// makes progress.
    pub fn take(&mut self, item: &impl Message) -> bool {
        let is_first = self.used == 0;
        // Each item is preceded by its field number and its length.
        let length = item.encoded_len();
        self.used += 1 + prost::length_delimiter_len(length) + length;
        is_first || self.used <= MAX_PAGE_BYTES
    }
}

/// Truncates items to those that fit on a page. Also returns whether any were cut, to begin the next page.
#[must_use]
pub fn cut<T: Message>(mut items: Vec<T>) -> (Vec<T>, bool) {
    let all = items.len();
    let mut room = PageBudget::default();
    let fitting = items.iter().take_while(|item| room.take(*item)).count();
    items.truncate(fitting);
    let was_cut = items.len() < all;
    (items, was_cut)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_ends_before_it_is_too_large_for_a_client() {
        let quarter = "x".repeat(MAX_PAGE_BYTES / 4);
        let (kept, was_cut) = cut(vec![quarter.clone(); 4]);
        assert_eq!(
            (kept.len(), was_cut),
            (3, true),
            "with its framing, the fourth is too much"
        );
        let (kept, was_cut) = cut(vec![quarter; 3]);
        assert_eq!((kept.len(), was_cut), (3, false));
    }

    #[test]
    fn a_page_holds_at_least_one_item_of_any_size() {
        let huge = "x".repeat(MAX_PAGE_BYTES + 1);
        let (kept, was_cut) = cut(vec![huge.clone(), huge]);
        assert_eq!((kept.len(), was_cut), (1, true));
        assert_eq!(cut(Vec::<String>::new()), (Vec::new(), false));
    }

    #[test]
    fn a_token_of_another_query_is_refused() {
        let one = QueryHash::of("List", &prost_types::Timestamp { seconds: 1, nanos: 0 });
        let two = QueryHash::of("List", &prost_types::Timestamp { seconds: 2, nanos: 0 });
        let token = number_token(one, -7);
        assert_eq!(number_position(one, &token), Ok(Some(-7)));
        assert!(number_position(two, &token).is_err());
        assert_eq!(number_position(one, ""), Ok(None));
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_refused_as_a_token(text in "\\PC{0,60}") {
            let query = QueryHash::of("List", &prost_types::Timestamp::default());
            prop_assert!(text.is_empty() || number_position(query, &text).is_err());
        }
    }
}
