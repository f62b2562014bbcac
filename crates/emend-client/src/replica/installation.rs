//! Whose resources a node holds. A node keeps what it holds when another installation answers, until it is told to accept
//! that one: an empty or wrong database must not replace what was learned.

use emend_core::InstallationId;

use super::ProtocolViolation;

/// The installation whose resources are held, and another that may replace it.
#[derive(Debug, Default)]
pub(super) struct Installation {
    /// `None` until a server has named it.
    pub(super) held: Option<InstallationId>,
    /// The one that the node was told to accept.
    pub(super) accepted: Option<InstallationId>,
}

/// Whether a server's stream may be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It may. The stream is of this installation.
    Accepted(Option<InstallationId>),
    /// It is of another installation than what is held.
    Other {
        held: InstallationId,
        answering: InstallationId,
    },
}

impl Installation {
    /// Compares the id that a server sends in `message` with the installation that is known. A node that holds nothing
    /// accepts any installation.
    pub(super) fn check(
        &self,
        sent: &str,
        message: &'static str,
        holds_nothing: bool,
    ) -> Result<Answer, ProtocolViolation> {
        let answering =
            match sent {
                "" => None,
                sent => Some(InstallationId::parse(sent).map_err(|_| {
                    ProtocolViolation::malformed(message, "its installation_id is not a UUID")
                })?),
            };
        match (self.held, answering) {
            (Some(_), None) => Err(ProtocolViolation::malformed(message, "it has no installation_id")),
            (Some(held), Some(answering))
                if held != answering && self.accepted != Some(answering) && !holds_nothing =>
            {
                Ok(Answer::Other { held, answering })
            }
            (_, answering) => Ok(Answer::Accepted(answering)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";
    const OTHER: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f11";

    fn id(raw: &str) -> Option<InstallationId> {
        InstallationId::parse(raw).ok()
    }

    #[test]
    fn another_installation_is_accepted_only_by_an_empty_node_or_with_permission() {
        let other = Answer::Other {
            held: id(OWN).unwrap(),
            answering: id(OTHER).unwrap(),
        };
        for (held, accepted, sent, holds_nothing, answer) in [
            ("", "", OWN, true, Answer::Accepted(id(OWN))),
            ("", "", "", true, Answer::Accepted(None)),
            ("", "", OWN, false, Answer::Accepted(id(OWN))),
            (OWN, "", OWN, false, Answer::Accepted(id(OWN))),
            (OWN, OTHER, OWN, false, Answer::Accepted(id(OWN))),
            (OWN, OTHER, OTHER, false, Answer::Accepted(id(OTHER))),
            (OWN, "", OTHER, true, Answer::Accepted(id(OTHER))),
            (OWN, "", OTHER, false, other),
        ] {
            let installation = Installation {
                held: id(held),
                accepted: id(accepted),
            };
            let checked = installation.check(sent, "Resumed", holds_nothing);
            assert_eq!(checked, Ok(answer), "{held:?} {accepted:?} {sent:?}");
        }
    }

    #[test]
    fn an_id_that_is_missing_or_malformed_is_a_violation() {
        let installation = Installation {
            held: id(OWN),
            accepted: None,
        };
        for sent in ["", "x"] {
            let refused = installation.check(sent, "Resumed", false);
            assert!(
                matches!(
                    refused,
                    Err(ProtocolViolation::Malformed {
                        message: "Resumed",
                        ..
                    })
                ),
                "{refused:?}"
            );
        }
    }
}
