//! Lists of domains to block, as others publish them: plain ones, hosts files, filters of `AdGuard`, and `uBlacklist`.
//!
//! Each line is read by its own form, since published lists mix them. A domain becomes a block, an exception an unblock. Where
//! a list has both for one pattern, the exception wins, as it does for the programs that the lists are made for. What is no
//! decision about a whole domain is passed over, with the reason.
//!
//! | form | blocks | exception |
//! |---|---|---|
//! | plain | `example.org`, `.example.org`, `*.example.org` | |
//! | hosts | `0.0.0.0 example.org www.example.org` | |
//! | `AdGuard` | `||example.org^` | `@@||example.org^` |
//! | `uBlacklist` | `*://*.example.org/*` | `@*://*.example.org/*` |
//!
//! A pattern here covers the subdomains too. A line of a hosts file, or one of `uBlacklist` without `*.`, blocks one host only;
//! there is no rule for a host without its subdomains, so these are blocked with it.

use std::{collections::BTreeMap, io::BufRead, net::IpAddr};

use emend_core::{
    DomainRule, Kind,
    evidence::{DomainPattern, Suffix},
};

use super::{
    record::{Record, RowError},
    source::Lines,
};

/// Names that a hosts file gives to the machine itself.
const OF_THE_MACHINE: [&str; 11] = [
    "localhost",
    "localhost.localdomain",
    "local",
    "broadcasthost",
    "0.0.0.0",
    "ip6-localhost",
    "ip6-loopback",
    "ip6-localnet",
    "ip6-mcastprefix",
    "ip6-allnodes",
    "ip6-allrouters",
];

/// Modifiers of `AdGuard`'s filters with which a rule is still about everything of its domain.
const WIDE: [&str; 4] = ["important", "all", "document", "doc"];

/// What a line says of a pattern.
struct Said<'t> {
    rule: DomainRule,
    pattern: &'t str,
}

/// Reads all lines, then passes each rule to `take` with its line, until there are no more or `take` returns false.
pub(super) fn read(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
    let mut rows: Vec<(u64, Result<Record, RowError>)> = Vec::new();
    // Where each pattern is, and its line.
    let mut places: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    let mut lines = Lines::of(from);
    let mut is_in_front_matter = false;
    while let Some((line, text)) = lines.next_text() {
        let text = match text {
            Ok(text) => text.trim(),
            Err(error) => {
                rows.push((line, Err(error)));
                continue;
            }
        };
        // A subscription of uBlacklist may begin with its name, as YAML between two rules.
        if text == "---" && (line == 1 || is_in_front_matter) {
            is_in_front_matter = !is_in_front_matter;
            continue;
        }
        if is_in_front_matter || is_remark(text) {
            continue;
        }
        let said = match line_of_list(without_remark(text)) {
            Ok(said) => said,
            Err(why) => {
                rows.push((line, Err(RowError::passed_over(why))));
                continue;
            }
        };
        for said in said {
            add(&mut rows, &mut places, line, &said);
        }
    }
    for (line, row) in rows {
        if !take(line, row) {
            return;
        }
    }
}

/// Adds what a line says of one pattern, unless an earlier line did.
fn add(
    rows: &mut Vec<(u64, Result<Record, RowError>)>,
    places: &mut BTreeMap<String, (usize, u64)>,
    line: u64,
    said: &Said<'_>,
) {
    let pattern = match parsed(said.pattern) {
        Ok(pattern) => pattern,
        Err(why) => {
            rows.push((line, Err(RowError::passed_over(why))));
            return;
        }
    };
    let record = Record::of_domain(pattern.clone(), said.rule);
    let Some((at, first)) = places.get(&pattern).copied() else {
        places.insert(pattern, (rows.len(), line));
        rows.push((line, Ok(record)));
        return;
    };
    let held = rows.get_mut(at).map(|(_, row)| row);
    match held {
        Some(held) if held.as_ref().is_ok_and(|held| held.choice != record.choice) => {
            if said.rule == DomainRule::Block {
                let why = format!("{pattern} is an exception on line {first}");
                rows.push((line, Err(RowError::passed_over(why))));
            } else {
                let why = format!("{pattern} is an exception on line {line}");
                *held = Err(RowError::passed_over(why));
                places.insert(pattern, (rows.len(), line));
                rows.push((line, Ok(record)));
            }
        }
        _ => {
            let why = format!("{pattern} is on line {first} already");
            rows.push((line, Err(RowError::passed_over(why))));
        }
    }
}

/// The pattern in its form, if its sources may be decided about.
fn parsed(raw: &str) -> Result<String, String> {
    let pattern = DomainPattern::parse(raw).map_err(|invalid| format!("{raw:?} {}", invalid.0))?;
    match pattern.suffix() {
        Suffix::Public => Err(format!("{pattern} is at or above a public suffix")),
        Suffix::Private | Suffix::None => Ok(pattern.to_string()),
    }
}

/// Whether the line is blank, a comment, or the header of a list.
fn is_remark(text: &str) -> bool {
    let hides = ["##.", "##[", "#@#", "#?#", "#$#", "#%#"];
    let is_comment = text.starts_with('#') && !hides.iter().any(|mark| text.starts_with(mark));
    text.is_empty() || is_comment || text.starts_with('!') || (text.starts_with('[') && text.ends_with(']'))
}

/// The line without the comment behind it.
fn without_remark(text: &str) -> &str {
    let end = [" #", "\t#"].iter().filter_map(|mark| text.find(mark)).min();
    end.and_then(|end| text.get(..end)).unwrap_or(text).trim_end()
}

/// What a line says, or why nothing.
fn line_of_list(text: &str) -> Result<Vec<Said<'_>>, &'static str> {
    let (rule, text) = match text.strip_prefix("@@") {
        Some(rest) => (DomainRule::Unblock(None), rest),
        None => (DomainRule::Block, text),
    };
    let one = |pattern| Ok(vec![Said { rule, pattern }]);
    if ["##", "#@#", "#?#", "#$#", "#%#", "$$"]
        .iter()
        .any(|mark| text.contains(mark))
    {
        return Err("hides parts of pages, and says nothing of a domain");
    }
    if text.starts_with('/') || text.starts_with("title/") || text.starts_with("url/") {
        return Err("is a regular expression");
    }
    if let Some(filter) = text.strip_prefix("||") {
        return one(of_filter(filter)?);
    }
    if text.starts_with('|') {
        return Err("is about an address, not about a domain");
    }
    if let Some(exception) = text.strip_prefix('@') {
        // `@1*://…` colours results.
        let pattern =
            of_match_pattern(exception).filter(|_| !exception.starts_with(|c: char| c.is_ascii_digit()));
        let pattern = pattern.unwrap_or(Err("marks results, and says nothing of whether they are shown"))?;
        let rule = DomainRule::Unblock(None);
        return Ok(vec![Said { rule, pattern }]);
    }
    if let Some(pattern) = of_match_pattern(text) {
        return one(pattern?);
    }
    if text.contains('$') || text.contains('^') || text.contains('=') || text.contains('/') {
        return Err("is a filter that is not about a whole domain");
    }
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let Ok(address) = first.parse::<IpAddr>() else {
        if words.next().is_some() {
            return Err("is no domain, no line of a hosts file and no filter");
        }
        return one(first.strip_prefix('.').unwrap_or(first));
    };
    let hosts: Vec<&str> = words.collect();
    if hosts.is_empty() {
        return Err("is an address, not a domain");
    }
    if hosts.iter().all(|host| OF_THE_MACHINE.contains(host)) {
        return Err("names the machine itself");
    }
    if !address.is_unspecified() && !address.is_loopback() {
        return Err("gives a name to an address, which blocks nothing");
    }
    let blocked = hosts.into_iter().filter(|host| !OF_THE_MACHINE.contains(host));
    Ok(blocked.map(|pattern| Said { rule, pattern }).collect())
}

/// The domain of `||example.org^$important`, behind its `||`.
fn of_filter(filter: &str) -> Result<&str, &'static str> {
    let (body, modifiers) = filter.split_once('$').unwrap_or((filter, ""));
    if modifiers
        .split(',')
        .any(|modifier| !modifier.is_empty() && !WIDE.contains(&modifier))
    {
        return Err("has modifiers with which it is not about a whole domain");
    }
    let end = body.find(['^', '/']).unwrap_or(body.len());
    match body.split_at(end) {
        (domain, "" | "^" | "^|" | "/" | "/*" | "^*") => Ok(domain),
        _ => Err("is about a part of a domain's pages"),
    }
}

/// The domain of `*://*.example.org/*`; `None` if the text has no scheme.
fn of_match_pattern(text: &str) -> Option<Result<&str, &'static str>> {
    let (scheme, rest) = text.split_once("://")?;
    if !matches!(scheme, "*" | "http" | "https" | "http*") {
        return Some(Err("is about another scheme than http and https"));
    }
    let Some((host, path)) = rest.split_once('/') else {
        return Some(Err(
            "is an address, not a pattern of addresses: its path is missing",
        ));
    };
    Some(match (host, path) {
        ("*", _) => Err("is about every domain"),
        // Of `*.` there is a bare domain: unlike here, it covers the domain itself.
        (host, "*") => Ok(host.strip_prefix("*.").unwrap_or(host)),
        _ => Err("is about a part of a domain's pages"),
    })
}

impl Record {
    /// A decision about the sources that a pattern covers.
    fn of_domain(pattern: String, rule: DomainRule) -> Self {
        Self {
            kind: Kind::DomainRule,
            input: pattern,
            choice: rule.decision().name().to_owned(),
            relation: None,
            system_choice: String::new(),
            user_id: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each line says, or why it is passed over.
    fn all(text: &str) -> Vec<(u64, String)> {
        let mut rows = Vec::new();
        read(text.as_bytes(), &mut |line, row| {
            rows.push((
                line,
                match row {
                    Ok(record) => format!("{} {}", record.choice, record.input),
                    Err(error) if error.is_passed_over() => format!("– {error}"),
                    Err(error) => format!("! {error}"),
                },
            ));
            true
        });
        rows
    }

    #[test]
    fn each_form_of_line_is_read_and_what_is_not_taken_says_why() {
        for (line, expected) in [
            // Plain.
            ("Spam.Example.", &["block spam.example"][..]),
            (".spam.example  # copies others", &["block spam.example"]),
            ("*.spam.example", &["block *.spam.example"]),
            ("# spam.example", &[]),
            ("com", &["– com is at or above a public suffix"]),
            ("203.0.113.7", &["– is an address, not a domain"]),
            (
                "https://spam.example",
                &["– is an address, not a pattern of addresses: its path is missing"],
            ),
            (
                "spam.example/path",
                &["– is a filter that is not about a whole domain"],
            ),
            (
                "two words",
                &["– is no domain, no line of a hosts file and no filter"],
            ),
            (
                "ads*.example",
                &[
                    "– \"ads*.example\" may have one wildcard, a leading *. for subdomains only: *.example.org",
                ],
            ),
            // Hosts files.
            (
                "0.0.0.0 spam.example\twww.spam.example",
                &["block spam.example", "block www.spam.example"],
            ),
            ("::1 spam.example", &["block spam.example"]),
            ("127.0.0.1 localhost", &["– names the machine itself"]),
            (
                "192.168.1.7 printer.example",
                &["– gives a name to an address, which blocks nothing"],
            ),
            // AdGuard.
            ("||spam.example^", &["block spam.example"]),
            ("||spam.example^$important,all", &["block spam.example"]),
            ("@@||docs.spam.example^|", &["unblock docs.spam.example"]),
            (
                "||spam.example^$third-party",
                &["– has modifiers with which it is not about a whole domain"],
            ),
            ("||spam.example/ads/*", &["– is about a part of a domain's pages"]),
            (
                "|https://spam.example",
                &["– is about an address, not about a domain"],
            ),
            (
                "spam.example##.banner",
                &["– hides parts of pages, and says nothing of a domain"],
            ),
            (
                "##.banner",
                &["– hides parts of pages, and says nothing of a domain"],
            ),
            ("/^ads?[0-9]/", &["– is a regular expression"]),
            ("! Title: a list", &[]),
            ("[Adblock Plus 2.0]", &[]),
            // uBlacklist.
            ("*://*.spam.example/*", &["block spam.example"]),
            ("https://www.spam.example/*", &["block www.spam.example"]),
            ("@*://docs.spam.example/*", &["unblock docs.spam.example"]),
            (
                "@1*://*.good.example/*",
                &["– marks results, and says nothing of whether they are shown"],
            ),
            (
                "*://spam.example/blog/*",
                &["– is about a part of a domain's pages"],
            ),
            ("*://*/*spam*", &["– is about every domain"]),
            ("title/Spam/", &["– is a regular expression"]),
        ] {
            let found: Vec<_> = all(line).into_iter().map(|(_, said)| said).collect();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn an_exception_wins_over_a_block_of_the_same_pattern_wherever_it_stands() {
        let list = "---\nname: Spam\n---\nspam.example\n@@||spam.example^\n*://spam.example/*\nother.example\nOTHER.example\n";
        let expected = [
            (4, "– spam.example is an exception on line 5"),
            (5, "unblock spam.example"),
            (6, "– spam.example is an exception on line 5"),
            (7, "block other.example"),
            (8, "– other.example is on line 7 already"),
        ];
        assert_eq!(all(list), expected.map(|(line, said)| (line, said.to_owned())));
    }
}
