//! Which role each RPC requires, and what it asks of namespaces. Each service brings a row for each of its RPCs; a method
//! without one is refused to everyone.

use std::{collections::HashMap, sync::Arc};

use super::role::Role;

/// How a request names its namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaches {
    /// It names one. A foreign one is refused with `PERMISSION_DENIED`.
    One,
    /// It names one, or none for all: callers that may not reach all must name one.
    OneOrAll,
    /// Each item names one and is refused individually.
    Each,
    /// It names some, none of which may be foreign; an empty list means all that the caller may reach.
    Narrowed,
    /// It concerns all of them: only for callers that may reach all.
    All,
    /// It concerns only the caller's own and names none.
    Own,
}

impl Reaches {
    /// The wording of docs/security.md.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::One => "named",
            Self::OneOrAll => "named, or all",
            Self::Each => "named by each item",
            Self::Narrowed => "named, or those of the caller",
            Self::All => "all",
            Self::Own => "none",
        }
    }
}

/// Who may call one RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// `/package.Service/Method`.
    pub path: &'static str,
    /// The role that it requires.
    pub role: Role,
    /// Where the role must be held.
    pub reaches: Reaches,
}

/// A row of a service's table.
pub const fn rule(path: &'static str, role: Role, reaches: Reaches) -> Rule {
    Rule { path, role, reaches }
}

/// The rows of one server, by their paths. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Arc<HashMap<&'static str, Rule>>);

impl Rules {
    pub(crate) fn of(rows: &[Rule]) -> Self {
        Self(Arc::new(rows.iter().map(|rule| (rule.path, *rule)).collect()))
    }

    /// The row of a method.
    pub(crate) fn get(&self, path: &str) -> Option<&Rule> {
        self.0.get(path)
    }
}
