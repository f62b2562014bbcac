//! The names above listed suffixes, which the Public Suffix List does not name: generated from the list in the sources of the
//! `psl` crate. `cargo xtask docs` writes them, and this test checks that they are those of the version that is built with.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    process::Command,
};

use emend_core::evidence::{DomainPattern, Suffix, host};

use crate::configuration::assert_up_to_date;

fn cargo(arguments: &[&str]) -> String {
    let cargo = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    String::from_utf8(cargo.stdout).expect("cargo writes text")
}

/// The rules in the sources of the `psl` crate, as the list writes them.
fn rules() -> String {
    let version = cargo(&["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    // What only other platforms need may not be there.
    let platform = format!("--filter-platform={}", host.expect("cargo names its host"));
    let metadata = cargo(&[
        "metadata",
        "--format-version=1",
        "--locked",
        "--offline",
        &platform,
    ]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("metadata is JSON");
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let psl = packages.find(|package| package["name"] == "psl");
    let manifest = psl.and_then(|psl| psl["manifest_path"].as_str());
    let manifest = manifest.expect("psl is a dependency");
    fs::read_to_string(Path::new(manifest).with_file_name("data").join("rules.txt"))
        .expect("psl's sources contain its rules")
}

#[test]
fn the_names_above_suffixes_are_up_to_date() {
    let rules = rules();
    let listed: BTreeSet<&str> = rules
        .lines()
        .map(|rule| rule.trim_start_matches('!').trim_start_matches("*."))
        .collect();
    let above = listed.iter().flat_map(|rule| {
        let rule_of = DomainPattern::parse(rule).expect("the list has domain names");
        let is_public = rule_of.suffix() == Suffix::Public;
        std::iter::successors(Some(*rule), |name| name.split_once('.').map(|(_, above)| above))
            .skip(1)
            .map(move |name| (name, is_public))
    });
    let mut names: BTreeMap<String, bool> = BTreeMap::new();
    for (name, is_public) in above.filter(|(name, _)| !listed.contains(name)) {
        let name = host(name).expect("the list has domain names").into_owned();
        *names.entry(name).or_default() |= is_public;
    }
    assert_eq!(
        (names.get("nordland.no"), names.get("amazonaws.com")),
        (Some(&true), Some(&false))
    );
    let text: String = names
        .iter()
        .flat_map(|(name, is_public)| [if *is_public { "" } else { "~" }, name, "\n"])
        .collect();
    assert_up_to_date("crates/emend-core/src/evidence/above_suffixes.txt", &text);
}
