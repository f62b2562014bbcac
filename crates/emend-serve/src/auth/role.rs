//! The roles, and which includes which.

use std::fmt;

/// What a caller may do in the namespaces where it holds the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Submits corrections, and sees and retracts what it submitted itself.
    Reporter,
    /// Hands events over to learning-svc. For feedback-svc only: an event states who its caller was.
    Ingester,
    /// Writes pages, fragments, claims and edges into the graph of evidence, and takes them out. For programs that research.
    EvidenceWriter,
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
    pub const ALL: [Self; 7] = [
        Self::Reporter,
        Self::Ingester,
        Self::EvidenceWriter,
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
            Self::EvidenceWriter => "evidence-writer",
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
                Self::Reporter | Self::Ingester | Self::EvidenceWriter | Self::Subscriber => false,
                Self::Reviewer => matches!(other, Self::Reporter | Self::Subscriber),
                Self::Operator => matches!(other, Self::Reporter | Self::Subscriber | Self::Reviewer),
                Self::Admin => !matches!(other, Self::Ingester | Self::EvidenceWriter),
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
    use serde::{Deserialize as _, de::IntoDeserializer as _};

    use super::*;

    #[test]
    fn a_role_of_programs_is_included_in_no_other_and_includes_no_other() {
        for program in [Role::Ingester, Role::EvidenceWriter] {
            for role in Role::ALL {
                assert_eq!(role.includes(program), role == program, "{role} {program}");
                assert_eq!(program.includes(role), role == program, "{program} {role}");
            }
        }
    }

    #[test]
    fn a_role_is_written_in_files_as_it_is_shown() {
        for role in Role::ALL {
            let read = Role::deserialize(role.name().into_deserializer());
            assert_eq!(read, Ok::<_, serde::de::value::Error>(role));
        }
    }

    #[test]
    fn an_event_can_say_that_its_sender_has_every_role() {
        let names = Role::ALL.into_iter().map(Role::name);
        let roles = emend_core::roles::Roles::parse(names).expect("names of roles");
        assert_eq!(roles.names().count(), Role::ALL.len());
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
