//! Synonyms as engines keep them: a rule for each term, in the format that Solr, Lucene and OpenSearch read, and one more for the
//! probe query.

use std::collections::BTreeSet;

use super::content::{Entries, Mark, Seen, Stamp, Writer};

/// What a probe query asks for: the set stands it for its stamp.
pub(super) const PROBE: &str = "emendprobe";
/// In a set that is being written and has no mark.
pub(super) const WRITING: &str = "emendwriting";

/// The mark of a set.
pub(super) fn mark(entries: &Entries) -> Mark {
    let rules: Vec<String> = entries.iter().map(|(term, all)| rule(term, all)).collect();
    Mark::of(rules.iter().map(String::as_str))
}

/// The set with what a probe query asks for.
pub(super) fn with_probe(entries: &Entries, stamp: &Stamp) -> Entries {
    let mut all = entries.clone();
    all.extend([probe(stamp)]);
    all
}

/// What a probe query asks for, and what stands for it.
pub(super) fn probe(stamp: &Stamp) -> (String, BTreeSet<String>) {
    let stands_for = stamp.words().chain([PROBE.to_owned()]);
    (PROBE.to_owned(), stands_for.collect())
}

/// The rules of a set, with the probe's.
pub(super) fn rules(entries: &Entries, stamp: &Stamp) -> Vec<String> {
    with_probe(entries, stamp)
        .iter()
        .map(|(term, all)| rule(term, all))
        .collect()
}

/// The rule of a term: what is searched for in its place.
pub(super) fn rule(term: &str, all: &BTreeSet<String>) -> String {
    let all: Vec<String> = all.iter().map(|term| escaped(term)).collect();
    format!("{} => {}", escaped(term), all.join(", "))
}

/// A term as a rule has it.
fn escaped(term: &str) -> String {
    let mut text = String::with_capacity(term.len());
    for (place, c) in term.char_indices() {
        let is_special = matches!(c, '\\' | ',' | '=' | '>') || (place == 0 && c == '#');
        if is_special {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// The entries of rules; `None` if they are no rules of a sink.
pub(super) fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Option<Entries> {
    rules.into_iter().map(parse_rule).collect()
}

fn parse_rule(rule: &str) -> Option<(String, BTreeSet<String>)> {
    let (term, all) = rule.split_once(" => ")?;
    let (mut parts, mut part, mut chars) = (BTreeSet::new(), String::new(), all.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => part.push(chars.next()?),
            ',' => drop(parts.insert(std::mem::take(&mut part).trim().to_owned())),
            c => part.push(c),
        }
    }
    parts.insert(part.trim().to_owned());
    let (mut unescaped, mut chars) = (String::new(), term.chars());
    while let Some(c) = chars.next() {
        unescaped.push(if c == '\\' { chars.next()? } else { c });
    }
    Some((unescaped, parts))
}

/// What a set is that was found.
pub(super) fn seen(found: &Entries) -> Seen {
    if found.is_empty() {
        return Seen::Empty;
    }
    if found.contains_key(WRITING) {
        return Seen::Unfinished;
    }
    let Some(probe) = found.get(PROBE) else {
        return Seen::Foreign(format!("{} synonyms", found.len()));
    };
    let mut rest = found.clone();
    rest.remove(PROBE);
    let is = mark(&rest);
    let said = probe
        .iter()
        .filter(|word| **word != *PROBE && **word != is.as_str());
    let said: Vec<&String> = said.collect();
    let writer = match said[..] {
        [] => Some(None),
        [writer] => Writer::parse(writer).map(Some),
        _ => None,
    };
    if let Some(writer) = writer
        && probe.contains(PROBE)
        && probe.contains(is.as_str())
    {
        return Seen::Intact(Stamp { mark: is, writer });
    }
    Seen::Changed(format!(
        "{} synonyms that are not those that were written",
        rest.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(all: &[(&str, &[&str])]) -> Entries {
        let of = |(term, all): &(&str, &[&str])| {
            let all = all.iter().map(|&term| term.to_owned());
            ((*term).to_owned(), all.collect())
        };
        all.iter().map(of).collect()
    }

    fn stamp(entries: &Entries) -> Stamp {
        Stamp {
            mark: mark(entries),
            writer: Some(Writer::new("solr:cards", ["shop"], "epoch", 7)),
        }
    }

    #[test]
    fn a_rule_keeps_whatever_a_term_has() {
        let all = entries(&[
            ("a, b => c", &["a, b => c", "x\\y", "#1"]),
            ("#hash", &["#hash", "c#"]),
            ("laptop computer", &["laptop computer", "notebook"]),
        ]);
        let stamp = stamp(&all);
        let written = rules(&all, &stamp);
        let read = parse(written.iter().map(String::as_str)).unwrap();
        assert_eq!(read, with_probe(&all, &stamp));
        assert_eq!(
            rule("laptop computer", &all["laptop computer"]),
            "laptop computer => laptop computer, notebook"
        );
    }

    #[test]
    fn a_set_is_known_again_by_its_mark_and_a_change_is_seen() {
        let all = entries(&[("a", &["a", "b"]), ("b", &["a", "b"])]);
        let stamp = stamp(&all);
        let kept = with_probe(&all, &stamp);
        assert_eq!(seen(&kept), Seen::Intact(stamp.clone()));
        let older = Stamp {
            writer: None,
            ..stamp.clone()
        };
        assert_eq!(seen(&with_probe(&all, &older)), Seen::Intact(older));
        // Two that wrote at once.
        let mut both = kept.clone();
        let other = Writer::new("solr:cards", ["shop"], "epoch", 8);
        both.get_mut(PROBE).unwrap().insert(other.to_string());
        assert!(matches!(seen(&both), Seen::Changed(_)));
        let mut changed = kept.clone();
        changed.remove("a");
        assert!(matches!(seen(&changed), Seen::Changed(_)));
        let mut begun = kept;
        begun.remove(PROBE);
        assert!(matches!(seen(&begun), Seen::Foreign(_)));
        begun.extend(entries(&[(WRITING, &[WRITING])]));
        assert_eq!(seen(&begun), Seen::Unfinished);
        assert_eq!(seen(&Entries::new()), Seen::Empty);
    }
}
