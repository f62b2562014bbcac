//! The roles, and which includes which.

use std::fmt;

/// What a caller may do in the namespaces where it holds the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Submits corrections, and sees and retracts what it submitted itself.
    Reporter,
    /// Hands events over to learning-svc. For feedback-svc only: an event states who its caller was.
    Ingester,
    /// Reads what was learned, once or as a stream.
    Subscriber,
    /// Sees all feedback and the review queue, approves and rejects; does what reporters and subscribers do.
    Reviewer,
    /// Sets, imports, deletes and reverts; sees the fleet and the outbox; does what reviewers do.
    Operator,
    /// Sets policies; does what operators do.
    Admin,
}

impl Role {
    /// Every role, in the order of [`Role::index`].
    pub const ALL: [Self; 6] = [
        Self::Reporter,
        Self::Ingester,
        Self::Subscriber,
        Self::Reviewer,
        Self::Operator,
        Self::Admin,
    ];

    /// Its name in configuration files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reporter => "reporter",
            Self::Ingester => "ingester",
            Self::Subscriber => "subscriber",
            Self::Reviewer => "reviewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Whether this role permits all that `other` does.
    pub fn includes(self, other: Self) -> bool {
        self == other
            || match self {
                Self::Reporter | Self::Ingester | Self::Subscriber => false,
                Self::Reviewer => matches!(other, Self::Reporter | Self::Subscriber),
                Self::Operator => matches!(other, Self::Reporter | Self::Subscriber | Self::Reviewer),
                Self::Admin => other != Self::Ingester,
            }
    }

    /// Its index in a table of all roles.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_role_of_ingester_includes_it() {
        for role in Role::ALL {
            assert_eq!(role.includes(Role::Ingester), role == Role::Ingester, "{role}");
        }
    }

    #[test]
    fn a_role_includes_what_its_parts_include() {
        for a in Role::ALL {
            for b in Role::ALL.into_iter().filter(|b| a.includes(*b)) {
                for c in Role::ALL.into_iter().filter(|c| b.includes(*c)) {
                    assert!(a.includes(c), "{a} includes {b}, which includes {c}");
                }
            }
        }
    }

    #[test]
    fn each_role_has_its_own_index() {
        for (place, role) in Role::ALL.into_iter().enumerate() {
            assert_eq!(role.index(), place);
        }
    }
}
