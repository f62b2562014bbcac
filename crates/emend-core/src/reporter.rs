//! The person or agent behind a correction.

use crate::{
    ids::{Caller, ReporterId},
    violation::{Violations, bounded_text},
    voter::Voter,
};

/// The person or agent behind a correction, as the caller asserts it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Reporter {
    /// Stable id, unique per namespace.
    pub id: Option<ReporterId>,
    /// The session in which the correction was made, 1 to 128 characters.
    pub session: Option<String>,
    /// The client software; empty or at most 128 characters.
    pub client: String,
    /// A keyed hash of the end user's address; empty or at most 128 characters.
    pub client_key: String,
}

impl Reporter {
    /// Parses the fields; an empty field is absent. Returns all violations at once, with the field names of the wire
    /// contract.
    pub fn parse(id: &str, session_id: &str, client: &str, client_key: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let id = match id {
            "" => Some(None),
            id => violations.check("id", ReporterId::parse(id)).map(Some),
        };
        let mut optional = |field: &str, raw: &str| violations.check(field, bounded_text(raw, 0, 128));
        let session = optional("session_id", session_id);
        let client = optional("client", client);
        let client_key = optional("client_key", client_key);
        let parsed = (|| {
            let session = session?;
            Some(Self {
                id: id?,
                session: (!session.is_empty()).then_some(session),
                client: client?,
                client_key: client_key?,
            })
        })();
        violations.finish(parsed)
    }

    /// This reporter as a voter, when the correction was sent by `caller`.
    pub fn voter(&self, caller: &Caller) -> Voter {
        Voter::new(self.id.clone(), caller.clone(), self.session.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Namespace;

    #[test]
    fn a_voter_is_the_reporter_else_the_session_else_the_caller() {
        let caller = Caller::parse("web").unwrap();
        let here = Namespace::parse("fund-admin").unwrap();
        let voter = |id, session| Reporter::parse(id, session, "", "").unwrap().voter(&caller);
        let key = |id, session| voter(id, session).key(&here);
        assert_eq!(key("jane", "s"), key("jane", "t"));
        assert_ne!(key("", "s"), key("", "t"));
        assert!(!voter("", "").is_identified());
        assert_ne!(key("", ""), key("", "s"));
    }

    #[test]
    fn a_voter_has_another_pseudonym_in_each_namespace() {
        let caller = Caller::parse("web").unwrap();
        let (here, there) = (
            Namespace::parse("here").unwrap(),
            Namespace::parse("there").unwrap(),
        );
        for (id, session) in [("jane", ""), ("", "s"), ("", "")] {
            let voter = Reporter::parse(id, session, "", "").unwrap().voter(&caller);
            assert_ne!(voter.key(&here), voter.key(&there));
        }
    }
}
