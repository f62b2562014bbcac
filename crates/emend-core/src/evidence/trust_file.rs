//! What a trust file says: how far the sources of domains are trusted in some namespaces, which are blocked, and which patterns
//! in what they publish are dangerous. It is applied as a whole; a greater version replaces all of a lesser one.
//!
//! Here the file has been read: YAML and TOML are parsed by learning-svc, in `evidence/trust_file.rs`.

use std::collections::{BTreeMap, HashMap};

use super::{DomainPattern, Suffix, TrustLevel};
use crate::{
    evidence::DomainRule,
    ids::Namespace,
    normalize::parse_choice,
    violation::{Invalid, Violations},
};

/// How many domains a file may name.
pub const MAX_DOMAINS: usize = 200_000;

/// How many namespaces and how many dangerous patterns a file may name, each.
const MAX_NAMES: usize = 1_000;

/// The greatest version, so that databases can store it.
const MAX_VERSION: u64 = i64::MAX.cast_unsigned();

/// A trust file as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustFileFields {
    /// The namespaces it is for.
    pub namespaces: Vec<String>,
    /// Its version, from 1; 0: none was given.
    pub version: u64,
    /// How far domains are trusted. The longest name that covers a host decides, so that an entry for a subdomain overrides
    /// that for the domain.
    pub domains: Vec<TrustEntryFields>,
    /// Patterns of domains that are blocked.
    pub blocked: Vec<String>,
    /// The names of dangerous patterns, as backends report them with claims.
    pub dangerous_patterns: Vec<String>,
}

/// How far the sources of domains are trusted, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustEntryFields {
    /// The pattern of domains; it may be a public suffix: `gov`.
    pub pattern: String,
    /// The name of the level.
    pub level: String,
}

/// A valid trust file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustFile {
    /// The namespaces it is for, each once, at least one.
    pub namespaces: Vec<Namespace>,
    /// Its version, from 1 to 2^63 − 1.
    pub version: u64,
    /// What it says of patterns of domains, in their form.
    pub rules: BTreeMap<String, DomainRule>,
    /// The names of dangerous patterns, in the form of [`parse_choice`], each once.
    pub dangerous_patterns: Vec<String>,
}

impl TrustFile {
    /// Checks a file. Violations name the field with its place: `domains[3].pattern`.
    pub fn parse(fields: &TrustFileFields) -> Result<Self, Violations> {
        let TrustFileFields {
            namespaces,
            version,
            domains,
            blocked,
            dangerous_patterns,
        } = fields;
        let mut violations = Violations::new();
        match *version {
            0 => violations.add("version", format!("is required: 1 to {MAX_VERSION}")),
            1..=MAX_VERSION => {}
            _ => violations.add("version", format!("must be 1 to {MAX_VERSION}, is {version}")),
        }
        if namespaces.is_empty() {
            violations.add("namespaces", "must name at least one namespace");
        }
        let namespaces = names(&mut violations, "namespaces", namespaces, Namespace::parse);
        let dangerous_patterns = names(
            &mut violations,
            "dangerous_patterns",
            dangerous_patterns,
            parse_choice,
        );
        let rules = rules(&mut violations, domains, blocked);
        violations.finish(Some(Self {
            namespaces,
            version: *version,
            rules,
            dangerous_patterns,
        }))
    }
}

/// Parses names, of which none may be given twice.
fn names<T: Clone + Eq + std::hash::Hash>(
    violations: &mut Violations,
    field: &str,
    written: &[String],
    parse: impl Fn(&str) -> Result<T, Invalid>,
) -> Vec<T> {
    if written.len() > MAX_NAMES {
        violations.add(
            field,
            format!("must have at most {MAX_NAMES} entries, has {}", written.len()),
        );
        return Vec::new();
    }
    let mut places = HashMap::new();
    let mut parsed = Vec::with_capacity(written.len());
    for (index, raw) in written.iter().enumerate() {
        let path = format!("{field}[{index}]");
        let name = violations.check(&path, parse(raw));
        if let Some(name) = name.filter(|name| is_new(violations, &mut places, name.clone(), path)) {
            parsed.push(name);
        }
    }
    parsed
}

fn rules(
    violations: &mut Violations,
    domains: &[TrustEntryFields],
    blocked: &[String],
) -> BTreeMap<String, DomainRule> {
    let mut rules = BTreeMap::new();
    let count = domains.len() + blocked.len();
    if count > MAX_DOMAINS {
        violations.add(
            "domains",
            format!("must have, with blocked, at most {MAX_DOMAINS} entries, has {count}"),
        );
        return rules;
    }
    let mut places = HashMap::new();
    for (index, TrustEntryFields { pattern, level }) in domains.iter().enumerate() {
        let path = format!("domains[{index}].pattern");
        let pattern = violations.check(&path, DomainPattern::parse(pattern));
        let level = violations.check(&format!("domains[{index}].level"), TrustLevel::parse(level));
        let Some(pattern) = pattern.map(|pattern| pattern.to_string()) else {
            continue;
        };
        if is_new(violations, &mut places, pattern.clone(), path) {
            rules.extend(level.map(|level| (pattern, DomainRule::SetTrust(level))));
        }
    }
    for (index, pattern) in blocked.iter().enumerate() {
        let path = format!("blocked[{index}]");
        let pattern = violations.check(&path, DomainPattern::parse(pattern).and_then(below_public_suffix));
        let Some(pattern) = pattern.map(|pattern| pattern.to_string()) else {
            continue;
        };
        if is_new(violations, &mut places, pattern.clone(), path) {
            rules.insert(pattern, DomainRule::Block);
        }
    }
    rules
}

fn below_public_suffix(pattern: DomainPattern) -> Result<DomainPattern, Invalid> {
    match pattern.suffix() {
        Suffix::Public => Err(Invalid::new(format!(
            "must be below a public suffix to be blocked: “{pattern}” is at or above one"
        ))),
        Suffix::Private | Suffix::None => Ok(pattern),
    }
}

/// Whether it was not given before; otherwise says where.
fn is_new<T: Eq + std::hash::Hash>(
    violations: &mut Violations,
    places: &mut HashMap<T, String>,
    value: T,
    path: String,
) -> bool {
    if let Some(before) = places.get(&value) {
        violations.add(path, format!("is given already: {before}"));
        return false;
    }
    places.insert(value, path);
    true
}

/// What has to be written so that one set of rules becomes another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleChanges {
    /// The rules that are new or say something else, by pattern.
    pub puts: Vec<(String, DomainRule)>,
    /// The patterns whose rules end.
    pub deletes: Vec<String>,
}

impl RuleChanges {
    /// From the rules in force to those that should be, both by pattern in its form.
    pub fn between(old: &BTreeMap<String, DomainRule>, new: &BTreeMap<String, DomainRule>) -> Self {
        let puts = new
            .iter()
            .filter(|(pattern, rule)| old.get(*pattern) != Some(rule));
        let deletes = old.keys().filter(|pattern| !new.contains_key(*pattern));
        Self {
            puts: puts.map(|(pattern, rule)| (pattern.clone(), *rule)).collect(),
            deletes: deletes.cloned().collect(),
        }
    }

    /// Whether nothing has to be written.
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.deletes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn file(domains: &[(&str, &str)], blocked: &[&str]) -> TrustFileFields {
        TrustFileFields {
            namespaces: texts(&["research"]),
            version: 1,
            domains: domains
                .iter()
                .map(|(pattern, level)| TrustEntryFields {
                    pattern: (*pattern).to_owned(),
                    level: (*level).to_owned(),
                })
                .collect(),
            blocked: texts(blocked),
            dangerous_patterns: texts(&["prompt_injection"]),
        }
    }

    fn violations(fields: &TrustFileFields) -> Vec<String> {
        let violations = TrustFile::parse(fields).unwrap_err().into_vec();
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_says_levels_also_of_public_suffixes_and_what_is_blocked() {
        let fields = file(
            &[
                ("GOV", "government"),
                ("go.jp", "government"),
                ("*.Wikipedia.org", "LOW"),
                ("github.io", "low"),
            ],
            &["spam.example", "*.blogspot.com"],
        );
        let file = TrustFile::parse(&fields).unwrap();
        let rules: Vec<_> = file
            .rules
            .iter()
            .map(|(pattern, rule)| format!("{pattern} {}", rule.trust()))
            .collect();
        assert_eq!(
            rules,
            [
                "*.blogspot.com blocked",
                "*.wikipedia.org low",
                "github.io low",
                "go.jp government",
                "gov government",
                "spam.example blocked",
            ]
        );
        assert_eq!(file.dangerous_patterns, ["prompt_injection"]);
    }

    #[test]
    fn everything_wrong_is_named_at_once_with_its_place() {
        let mut fields = file(
            &[
                ("a.example", "low"),
                ("https://b.example", "high"),
                ("A.example.", "trusted"),
            ],
            &["com", "a.example", "*"],
        );
        fields.version = 0;
        fields.namespaces = texts(&["research", "Not OK", "research"]);
        fields.dangerous_patterns = texts(&["injection", "", "injection"]);
        let found = violations(&fields);
        let paths: Vec<_> = found
            .iter()
            .map(|violation| violation.split(": ").next().unwrap())
            .collect();
        assert_eq!(
            paths,
            [
                "version",
                "namespaces[1]",
                "namespaces[2]",
                "dangerous_patterns[1]",
                "dangerous_patterns[2]",
                "domains[1].pattern",
                "domains[1].level",
                "domains[2].pattern",
                "blocked[0]",
                "blocked[1]",
                "blocked[2]",
            ]
        );
        assert_eq!(found[0], "version: is required: 1 to 9223372036854775807");
        assert_eq!(
            found[7],
            "domains[2].pattern: is given already: domains[0].pattern"
        );
        assert_eq!(found[9], "blocked[1]: is given already: domains[0].pattern");
    }

    #[test]
    fn the_number_of_entries_and_the_version_are_bounded() {
        let patterns: Vec<_> = (0..=MAX_DOMAINS)
            .map(|number| format!("d{number}.example"))
            .collect();
        let mut fields = file(&[], &[]);
        fields.blocked = patterns[1..].to_vec();
        assert!(TrustFile::parse(&fields).is_ok());
        fields.blocked = patterns;
        fields.version = u64::MAX;
        fields.namespaces = Vec::new();
        fields.dangerous_patterns = vec!["x".to_owned(); MAX_NAMES + 1];
        assert_eq!(violations(&fields).len(), 4);
    }

    fn some_rules() -> impl Strategy<Value = BTreeMap<String, DomainRule>> {
        let rule = ("[a-d]\\.example", "(block|low|trusted)");
        let rules = proptest::collection::vec(rule, 0..6);
        rules.prop_map(|rules| {
            let parsed = rules
                .into_iter()
                .map(|(pattern, word)| (pattern, DomainRule::parse(&word).unwrap()));
            parsed.collect()
        })
    }

    proptest! {
        #[test]
        fn changes_make_the_new_rules_of_the_old_and_touch_no_others(old in some_rules(), new in some_rules()) {
            let changes = RuleChanges::between(&old, &new);
            let mut rules = old.clone();
            for pattern in &changes.deletes {
                prop_assert!(rules.remove(pattern).is_some());
            }
            for (pattern, rule) in &changes.puts {
                prop_assert_ne!(rules.insert(pattern.clone(), *rule), Some(*rule));
            }
            prop_assert_eq!(&rules, &new);
            prop_assert!(RuleChanges::between(&new, &rules).is_empty());
        }
    }
}
