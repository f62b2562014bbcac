//! A click on a result, as the page's browser tells of it, and what of it is valid.

use emend_client::{QueryInteraction, Violations};
use serde::Deserialize;

use crate::{asked::check_text, index::SearchIndex};

/// The most characters of a query's id.
const ID_CHARS: usize = 128;
/// The last place in a list of results.
const POSITIONS: u32 = 100;

/// A click on a result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Click {
    /// The search whose result it was, 1 to 128 characters.
    pub query_id: String,
    /// What was clicked: a card or product of the index.
    pub object_id: String,
    /// Its place in the list, 1 to 100.
    pub position: u32,
}

impl Click {
    /// What is recorded of it. The browser says neither what was done nor when.
    pub(crate) fn parse(&self, index: &SearchIndex) -> anyhow::Result<QueryInteraction> {
        let mut violations = Violations::new();
        check_text(&mut violations, "query_id", &self.query_id, 1..=ID_CHARS);
        if index.record_of(&self.object_id)?.is_none() {
            violations.add("object_id", "must be the id of a card or product in the index");
        }
        if !(1..=POSITIONS).contains(&self.position) {
            let why = format!("must be 1 to {POSITIONS}, is {}", self.position);
            violations.add("position", why);
        }
        let interaction = QueryInteraction {
            query_id: self.query_id.clone(),
            object_id: self.object_id.clone(),
            action: "click".to_owned(),
            position: i32::try_from(self.position).unwrap_or_default(),
            acted_at: None,
        };
        Ok(violations.finish(Some(interaction))?)
    }
}
