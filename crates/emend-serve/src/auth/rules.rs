//! The one table of which role each RPC requires, and what it asks of namespaces.
//!
//! A method without a row is refused to everyone; a test walks the descriptor set and fails if there is one.
//! docs/security.md shows this table, and a test keeps the two equal.

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

const fn rule(path: &'static str, role: Role, reaches: Reaches) -> Rule {
    Rule { path, role, reaches }
}

/// Every RPC of both services, by path.
pub const RULES: [Rule; 31] = [
    rule(
        "/emend.feedback.v1.FeedbackService/BatchSubmitFeedback",
        Role::Reporter,
        Reaches::Each,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/GetFeedback",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/ListDeadLetters",
        Role::Operator,
        Reaches::OneOrAll,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/ListFeedback",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/RedactFeedback",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/RedactReporter",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/RedriveDeadLetters",
        Role::Operator,
        Reaches::OneOrAll,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/RetractFeedback",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/SubmitFeedback",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.SettingsService/GetSettings",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.SettingsService/UpdateSettings",
        Role::Admin,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/ApproveCandidate",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/BatchApproveCandidates",
        Role::Reviewer,
        Reaches::Each,
    ),
    rule(
        "/emend.learning.v1.CandidateService/BatchRejectCandidates",
        Role::Reviewer,
        Reaches::Each,
    ),
    rule(
        "/emend.learning.v1.CandidateService/GetCandidate",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/ListCandidates",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/RejectCandidate",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.IngestService/Ingest",
        Role::Ingester,
        Reaches::Each,
    ),
    rule(
        "/emend.learning.v1.PolicyService/GetPolicy",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.PolicyService/UpdatePolicy",
        Role::Admin,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/DeleteResource",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/GetResource",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/ImportResources",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/ListResources",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/ListRevisions",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/PutResource",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/Resolve",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/RevertRevision",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.SubscriptionService/ListNodes",
        Role::Operator,
        Reaches::All,
    ),
    rule(
        "/emend.learning.v1.SubscriptionService/ReportStatus",
        Role::Subscriber,
        Reaches::Own,
    ),
    rule(
        "/emend.learning.v1.SubscriptionService/Subscribe",
        Role::Subscriber,
        Reaches::Narrowed,
    ),
];

/// The row of a method.
pub fn rule_of(path: &str) -> Option<&'static Rule> {
    RULES
        .binary_search_by(|rule| rule.path.cmp(path))
        .ok()
        .and_then(|place| RULES.get(place))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fmt::Write as _};

    use prost::Message as _;

    use super::*;

    /// Every method of the descriptor set.
    fn methods() -> BTreeSet<String> {
        let set = prost_types::FileDescriptorSet::decode(emend_proto::DESCRIPTOR_SET).unwrap();
        let mut methods = BTreeSet::new();
        for file in &set.file {
            for service in &file.service {
                for method in &service.method {
                    methods.insert(format!(
                        "/{}.{}/{}",
                        file.package(),
                        service.name(),
                        method.name()
                    ));
                }
            }
        }
        methods
    }

    #[test]
    fn every_rpc_has_a_row_and_every_row_an_rpc() {
        let rows: BTreeSet<String> = RULES.iter().map(|rule| rule.path.to_owned()).collect();
        assert_eq!(methods(), rows);
    }

    /// The table in docs/security.md.
    fn table() -> String {
        let mut table = String::from("| RPC |");
        for role in Role::ALL {
            let _ = write!(table, " {role} |");
        }
        table.push_str(" namespace |\n|---|---|---|---|---|---|---|---|\n");
        for rule in &RULES {
            let _ = write!(table, "| `{}` |", rule.path);
            for role in Role::ALL {
                table.push_str(if role.includes(rule.role) {
                    " yes |"
                } else {
                    " – |"
                });
            }
            let _ = writeln!(table, " {} |", rule.reaches.in_words());
        }
        table
    }

    /// `EMEND_UPDATE_DOCS=1` rewrites it.
    #[test]
    fn the_documentation_shows_this_table() {
        const BEGIN: &str = "<!-- rules: begin -->\n";
        const END: &str = "<!-- rules: end -->";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
        let shown = std::fs::read_to_string(path).unwrap();
        let (before, rest) = shown.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let expected = format!("{before}{BEGIN}{}{END}{after}", table());
        if std::env::var_os("EMEND_UPDATE_DOCS").is_some() {
            std::fs::write(path, &expected).unwrap();
        }
        let shown = std::fs::read_to_string(path).unwrap();
        assert!(
            shown == expected,
            "docs/security.md is not up to date: EMEND_UPDATE_DOCS=1 rewrites its table"
        );
    }

    #[test]
    fn rows_are_found_by_their_paths() {
        for rule in &RULES {
            assert_eq!(
                rule_of(rule.path),
                Some(rule),
                "the table is in the order of paths"
            );
        }
        assert_eq!(rule_of("/emend.learning.v1.ResourceService/Forgotten"), None);
    }
}
