//! Labels, by which operators sort ratings: tags, and whether somebody has dealt with them.

use std::{collections::BTreeSet, fmt};

use emend_core::{FeedbackId, Invalid, Namespace};

/// The most tags of one rating.
pub const MAX_TAGS: usize = 16;

const MAX_TAG_CHARS: usize = 32;

/// What somebody called a rating.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(String);

impl Tag {
    /// Parses a tag.
    pub fn parse(raw: &str) -> Result<Self, Invalid> {
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        let begins = raw.starts_with(|c: char| c.is_ascii_lowercase());
        if begins && raw.len() <= MAX_TAG_CHARS && raw.chars().all(is_inner) {
            return Ok(Self(raw.to_owned()));
        }
        Err(Invalid::new(format!(
            "must be 1 to {MAX_TAG_CHARS} characters of [a-z0-9_-], beginning with a letter"
        )))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the labels of a rating become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelChange {
    /// The search application.
    pub namespace: Namespace,
    /// Which rating.
    pub id: FeedbackId,
    /// Tags to set.
    pub set: BTreeSet<Tag>,
    /// Tags to clear.
    pub clear: BTreeSet<Tag>,
    /// Whether somebody has dealt with it; none: as it is.
    pub processed: Option<bool>,
}

impl LabelChange {
    /// The tags after it; none if they are too many.
    pub fn applied_to(&self, tags: Vec<Tag>) -> Option<Vec<Tag>> {
        let mut after: BTreeSet<Tag> = tags.into_iter().filter(|tag| !self.clear.contains(tag)).collect();
        after.extend(self.set.iter().cloned());
        (after.len() <= MAX_TAGS).then(|| after.into_iter().collect())
    }
}
