//! The tables of who may call which RPC: complete, and as docs/security.md shows them.

use std::{collections::BTreeSet, fmt::Write as _};

use emend_serve::auth::{Role, Rule};
use prost::Message as _;

/// The rows of both services.
fn rules() -> Vec<Rule> {
    [&feedback_svc::roles::RULES[..], &learning_svc::roles::RULES[..]].concat()
}

/// Every method of the descriptor set.
fn methods() -> BTreeSet<String> {
    let set = prost_types::FileDescriptorSet::decode(emend_proto::DESCRIPTOR_SET).unwrap();
    let mut methods = BTreeSet::new();
    for file in &set.file {
        // What every server answers whoever is known, whatever the role.
        if file.package() == "emend.access.v1" {
            continue;
        }
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
fn every_rpc_has_a_row_in_the_table_and_every_row_an_rpc() {
    let rules = rules();
    let rows: BTreeSet<String> = rules.iter().map(|rule| rule.path.to_owned()).collect();
    assert_eq!(rows.len(), rules.len(), "one row each");
    assert_eq!(methods(), rows);
}

#[test]
fn who_writes_evidence_speaks_for_nobody_and_who_hands_events_over_writes_none() {
    for rule in rules() {
        let service = rule.path.rsplit_once('/').unwrap().0;
        if Role::EvidenceWriter.includes(rule.role) {
            assert_eq!(service, "/emend.learning.v1.EvidenceService", "{}", rule.path);
        }
        if Role::Ingester.includes(rule.role) {
            assert_eq!(service, "/emend.learning.v1.IngestService", "{}", rule.path);
        }
    }
}

/// The table in docs/security.md.
fn table() -> String {
    let mut table = String::from("| RPC |");
    for role in Role::ALL {
        let _ = write!(table, " {role} |");
    }
    let _ = writeln!(table, " namespace |\n|{}", "---|".repeat(Role::ALL.len() + 2));
    for rule in rules() {
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

/// The pages of docs/ and its guides.
fn pages() -> Vec<(String, String)> {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut pages = Vec::new();
    for directory in [docs.clone(), docs.join("integration")] {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push((
                    path.display().to_string(),
                    std::fs::read_to_string(&path).unwrap(),
                ));
            }
        }
    }
    pages
}

/// The rows of a page's tables with the columns call and role.
fn calls_and_roles(page: &str) -> Vec<(&str, &str)> {
    let mut rows = Vec::new();
    let mut lines = page.lines();
    while lines.any(|line| line.ends_with("| call | role |")) {
        for row in lines.by_ref().skip(1).take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [.., call, role] = &cells[..] else {
                panic!("no row: {row}")
            };
            rows.push((call.trim_matches('`'), *role));
        }
    }
    rows
}

#[test]
fn guides_name_the_role_that_each_call_needs() {
    let rules = rules();
    let mut shown = BTreeSet::new();
    for (path, page) in pages() {
        for (call, role) in calls_and_roles(&page) {
            let rule = rules.iter().find(|rule| rule.path.ends_with(&format!("/{call}")));
            let rule = rule.unwrap_or_else(|| panic!("{path}: there is no {call}"));
            assert_eq!(rule.role.name(), role, "{path}: {call}");
            shown.insert(call.to_owned());
        }
    }
    for call in ["UpsertEvidence", "SubmitFeedback", "Subscribe"] {
        assert!(shown.contains(call), "no guide says who may call {call}");
    }
}

/// `EMEND_UPDATE_DOCS=1` rewrites it.
#[test]
fn the_documentation_shows_this_table() {
    const BEGIN: &str = "<!-- rules: begin -->\n";
    const END: &str = "<!-- rules: end -->";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/security.md");
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
