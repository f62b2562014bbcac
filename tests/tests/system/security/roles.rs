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

/// The table in docs/security.md.
fn table() -> String {
    let mut table = String::from("| RPC |");
    for role in Role::ALL {
        let _ = write!(table, " {role} |");
    }
    table.push_str(" namespace |\n|---|---|---|---|---|---|---|---|\n");
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
