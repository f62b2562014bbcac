//! Nodes of the evidence graph, by the ids that backends give them.

use std::fmt;

use crate::violation::{Invalid, bounded_text};

/// The most characters of an id.
const MAX_ID_CHARS: usize = 256;

/// A backend's own id of a page, fragment, claim, edge or task: 1 to 256 characters, trimmed, compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EvidenceId(String);

impl EvidenceId {
    /// Parses an id.
    pub fn parse(raw: &str) -> Result<Self, Invalid> {
        bounded_text(raw, 1, MAX_ID_CHARS).map(Self)
    }

    /// Parses an id that may be missing.
    pub fn parse_optional(raw: &str) -> Result<Option<Self>, Invalid> {
        if raw.trim().is_empty() {
            Ok(None)
        } else {
            Self::parse(raw).map(Some)
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EvidenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeType {
    /// A page of a source.
    Page,
    /// A part of a page.
    Fragment,
    /// Something that is said to be true.
    Claim,
}

impl NodeType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Page, Self::Fragment, Self::Claim];

    /// The number in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::Page => 1,
            Self::Fragment => 2,
            Self::Claim => 3,
        }
    }

    /// The type with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|node_type| node_type.number() == number)
    }

    /// The name that files use: `fragment` in `fragment:abc123`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Fragment => "fragment",
            Self::Claim => "claim",
        }
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeRef {
    /// What it is.
    pub sort: NodeType,
    /// Its id among those of its sort.
    pub id: EvidenceId,
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sort, id) = (self.sort.name(), self.id.as_str());
        // Many backends' ids say already what they are of.
        let says_sort = id.strip_prefix(sort).is_some_and(|rest| rest.starts_with(':'));
        if says_sort {
            f.write_str(id)
        } else {
            write!(f, "{sort}:{id}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_once_what_it_is() {
        for (sort, id, shown) in [
            (NodeType::Page, "none", "page:none"),
            (NodeType::Page, "page:none", "page:none"),
            (NodeType::Page, "pages", "page:pages"),
            (NodeType::Claim, "page:1", "claim:page:1"),
        ] {
            let id = EvidenceId::parse(id).unwrap();
            assert_eq!(NodeRef { sort, id }.to_string(), shown);
        }
    }
}
