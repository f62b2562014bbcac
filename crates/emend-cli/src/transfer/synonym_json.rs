//! Synonyms as the interfaces of Typesense, Meilisearch, Algolia and Elasticsearch export them, told apart by their fields.
//!
//! | from | a set | one way |
//! |---|---|---|
//! | Typesense | `{"id", "synonyms": ["a", "b"]}` | with `"root": "a"`: it finds the others |
//! | Meilisearch | `{"a": ["b"], "b": ["a"]}` | `{"a": ["b"]}`: `a` finds `b` |
//! | Algolia | `{"type": "synonym", "synonyms": ["a", "b"]}` | `oneWaySynonym` (`input`), `altCorrection1`, `altCorrection2` (`word`) |
//! | Elasticsearch | `{"synonyms": "a, b"}` | `{"synonyms": "a => b"}` |
//!
//! Entries may be a list, one a line, or within what the interfaces put around them: `synonyms`, `items`, `hits`,
//! `synonyms_set`. In Meilisearch's form terms are a set where each of them names all the others; where they don't, a pair
//! that goes both ways is two of one way, so that no term finds what it does not name.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::BufRead,
};

use super::{
    json_tree::{self, Node, Value},
    record::{Record, RowError},
    solr,
    synonyms::Pairs,
};

/// What is around the entries.
const AROUND: [&str; 4] = ["synonyms_set", "hits", "items", "synonyms"];

/// Reads all pairs, then passes each to `take` with the line of its entry, until there are no more or `take` returns false.
pub(super) fn read(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
    let mut pairs = Pairs::default();
    match json_tree::read(from) {
        Ok(nodes) => {
            for node in &nodes {
                add(&mut pairs, node);
            }
        }
        Err((line, error)) => pairs.not_taken(line, error),
    }
    pairs.pass_on(take);
}

fn add(pairs: &mut Pairs, node: &Node) {
    if let Some(entries) = node.list() {
        for entry in entries {
            add(pairs, entry);
        }
        return;
    }
    let Value::Map(entries) = &node.value else {
        let why = "is no entry of synonyms; expected an object as Typesense, Meilisearch, Algolia or \
                   Elasticsearch exports it";
        pairs.not_taken(node.line, RowError::row(why));
        return;
    };
    if node.get("type").and_then(Node::text).is_some() {
        add_algolia(pairs, node);
    } else if let Some(rule) = node.get("synonyms").and_then(Node::text) {
        if let Err(error) = solr::add_line(pairs, node.line, rule) {
            pairs.not_taken(node.line, error);
        }
    } else if let Some(texts) = node.get("synonyms").and_then(texts)
        && (!texts.is_empty() || node.get("id").is_some())
    {
        match node
            .get("root")
            .and_then(Node::text)
            .filter(|root| !root.trim().is_empty())
        {
            Some(root) => one_way(pairs, node.line, root, &texts),
            None => set(pairs, node.line, &texts),
        }
    } else if let Some(inner) = AROUND.iter().find_map(|name| node.get(name)) {
        match &inner.value {
            Value::Map(entries) => add_associations(pairs, entries),
            _ => add(pairs, inner),
        }
    } else if entries.iter().all(|(_, node)| texts(node).is_some()) {
        add_associations(pairs, entries);
    } else {
        let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
        let why = format!(
            "is no entry of Typesense, Meilisearch, Algolia or Elasticsearch; it has the fields {}",
            names.join(", ")
        );
        pairs.not_taken(node.line, RowError::row(why));
    }
}

/// The texts of a list, if there is nothing else in it.
fn texts(node: &Node) -> Option<Vec<&str>> {
    let texts = node.list()?.iter().map(Node::text);
    texts.collect()
}

fn add_algolia(pairs: &mut Pairs, node: &Node) {
    let kind = node.get("type").and_then(Node::text).unwrap_or_default();
    let from = |name| node.get(name).and_then(Node::text).map(str::trim);
    let many = |name| node.get(name).and_then(texts);
    let missing = |pairs: &mut Pairs, names: &str| {
        pairs.not_taken(node.line, RowError::row(format!("is a {kind} without {names}")));
    };
    match kind.to_ascii_lowercase().as_str() {
        "synonym" => match many("synonyms") {
            Some(terms) => set(pairs, node.line, &terms),
            None => missing(pairs, "a list synonyms"),
        },
        "onewaysynonym" => match (from("input"), many("synonyms")) {
            (Some(input), Some(terms)) => one_way(pairs, node.line, input, &terms),
            _ => missing(pairs, "input and a list synonyms"),
        },
        "altcorrection1" | "altcorrection2" => match (from("word"), many("corrections")) {
            (Some(word), Some(terms)) => one_way(pairs, node.line, word, &terms),
            _ => missing(pairs, "word and a list corrections"),
        },
        "placeholder" => {
            let why = "is a placeholder within records, not a synonym";
            pairs.not_taken(node.line, RowError::passed_over(why));
        }
        _ => {
            let why = "must be synonym, oneWaySynonym, altCorrection1, altCorrection2 or placeholder";
            pairs.not_taken(node.line, RowError::field("type", format!("{why}, is {kind}")));
        }
    }
}

/// Adds terms that find each other.
fn set(pairs: &mut Pairs, line: u64, terms: &[&str]) {
    let terms: Vec<String> = terms.iter().map(|term| term.trim().to_owned()).collect();
    solr::add(pairs, line, &terms, None);
}

/// Adds that a term finds others.
fn one_way(pairs: &mut Pairs, line: u64, term: &str, others: &[&str]) {
    let others: Vec<String> = others.iter().map(|term| term.trim().to_owned()).collect();
    solr::add(pairs, line, &[term.trim().to_owned()], Some(&others));
}

/// Adds what Meilisearch says: of each term, what else it finds.
fn add_associations(pairs: &mut Pairs, entries: &[(String, Node)]) {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (term, node) in entries {
        match texts(node) {
            Some(others) => {
                let others = others
                    .into_iter()
                    .map(str::trim)
                    .filter(|other| *other != term.trim());
                found.entry(term.trim()).or_default().extend(others);
            }
            None => pairs.not_taken(node.line, RowError::field(term, "must be a list of texts")),
        }
    }
    let finds = |term: &str, other: &str| found.get(term).is_some_and(|others| others.contains(other));
    let mut said: BTreeSet<&str> = BTreeSet::new();
    for (term, node) in entries {
        let term = term.trim();
        let Some(others) = found.get(term).filter(|_| said.insert(term)) else {
            continue;
        };
        let both: Vec<&str> = others
            .iter()
            .copied()
            .filter(|other| finds(other, term))
            .collect();
        // Each finds all the others, and none finds one of a second set both ways.
        let is_set = !both.is_empty()
            && both.iter().all(|one| {
                let of_one = found.get(one).into_iter().flatten();
                let back: BTreeSet<&str> = of_one.copied().filter(|other| finds(other, one)).collect();
                back.len() == both.len()
                    && back.contains(term)
                    && both.iter().all(|other| other == one || back.contains(other))
            });
        let (equal, ways): (Vec<&str>, Vec<&str>) = others
            .iter()
            .copied()
            .partition(|other| is_set && both.contains(other));
        if is_set && !equal.iter().any(|other| said.contains(other)) {
            let members: Vec<&str> = std::iter::once(term).chain(equal).collect();
            set(pairs, node.line, &members);
        }
        if !ways.is_empty() {
            one_way(pairs, node.line, term, &ways);
        }
    }
}

#[cfg(test)]
mod tests {
    use emend_core::Relation;

    use super::*;

    /// `line: term → representative (relation)` of each row, or what is wrong.
    fn all(text: &str) -> Vec<String> {
        let mut rows = Vec::new();
        read(text.as_bytes(), &mut |line, row| {
            rows.push(match row {
                Ok(row) => {
                    let relation = row.relation.unwrap_or_default();
                    let arrow = if relation == Relation::OneWay {
                        "→"
                    } else {
                        "↔"
                    };
                    format!("{line}: {} {arrow} {}", row.input, row.choice)
                }
                Err(error) if error.is_passed_over() => format!("{line}: – {error}"),
                Err(error) => format!("{line}: ! {error}"),
            });
            true
        });
        rows
    }

    #[test]
    fn each_engines_export_is_read_with_the_line_of_each_entry() {
        for (name, text, expected) in [
            (
                "Typesense",
                "{\"synonyms\": [\n {\"id\": \"coat\", \"root\": \"\", \"synonyms\": [\"blazer\", \"coat\", \"jacket\"]},\n {\"id\": \"smart\", \"root\": \"smart phone\", \"synonyms\": [\"iphone\"]}\n]}",
                &[
                    "2: coat ↔ blazer",
                    "2: jacket ↔ blazer",
                    "3: smart phone → iphone",
                ][..],
            ),
            (
                "Typesense's sets",
                "[{\"name\": \"clothes\",\n \"items\": [\n {\"id\": \"coat\", \"synonyms\": [\"blazer\", \"coat\"]}]}]",
                &["3: coat ↔ blazer"],
            ),
            (
                "Meilisearch",
                "{\n \"wolverine\": [\"xmen\", \"logan\"],\n \"logan\": [\"wolverine\"],\n \"wow\": [\"world of warcraft\"],\n \"world of warcraft\": [\"wow\"]\n}",
                &[
                    "2: logan ↔ wolverine",
                    "2: wolverine → xmen",
                    "4: world of warcraft ↔ wow",
                ],
            ),
            (
                "Meilisearch, of two sets that share a term",
                "{\"a\": [\"b\"], \"b\": [\"a\", \"c\"], \"c\": [\"b\"]}",
                &["1: a → b", "1: b → a", "1: b → c", "1: c → b"],
            ),
            (
                "Meilisearch's settings",
                "{\"rankingRules\": [\"words\"], \"synonyms\": {\n\"phone\": [\"iphone\"]}}",
                &["2: phone → iphone"],
            ),
            (
                "Algolia",
                "{\"hits\": [\n{\"objectID\": \"1\", \"type\": \"synonym\", \"synonyms\": [\"car\", \"auto\"]},\n{\"objectID\": \"2\", \"type\": \"oneWaySynonym\", \"input\": \"tablet\", \"synonyms\": [\"ipad\"]},\n{\"objectID\": \"3\", \"type\": \"altCorrection1\", \"word\": \"tee\", \"corrections\": [\"shirt\"]},\n{\"objectID\": \"4\", \"type\": \"placeholder\", \"placeholder\": \"<number>\", \"replacements\": [\"1\"]},\n{\"objectID\": \"5\", \"type\": \"other\"}],\n\"nbHits\": 5}",
                &[
                    "2: auto ↔ car",
                    "3: tablet → ipad",
                    "4: tee → shirt",
                    "5: – is a placeholder within records, not a synonym",
                    "6: ! type: must be synonym, oneWaySynonym, altCorrection1, altCorrection2 or placeholder, is other",
                ],
            ),
            (
                "Algolia, an entry a line",
                "{\"type\": \"synonym\", \"synonyms\": [\"car\", \"auto\"]}\n{\"type\": \"synonym\", \"synonyms\": [\"tv\", \"\", \"television\"]}\n",
                &["1: auto ↔ car", "2: – has an empty term", "2: television ↔ tv"],
            ),
            (
                "Elasticsearch",
                "{\"count\": 2, \"synonyms_set\": [\n{\"id\": \"1\", \"synonyms\": \"hello, hi\"},\n{\"id\": \"2\", \"synonyms\": \"bye => goodbye\"}]}",
                &["2: hi ↔ hello", "3: bye → goodbye"],
            ),
            (
                "none of them",
                "[{\"term\": \"a\",\n\"variants\": [\"b\"], \"n\": 1},\n7]",
                &[
                    "1: ! is no entry of Typesense, Meilisearch, Algolia or Elasticsearch; it has the fields term, variants, n",
                    "3: ! is no entry of synonyms; expected an object as Typesense, Meilisearch, Algolia or Elasticsearch exports it",
                ],
            ),
        ] {
            assert_eq!(all(text), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_json_ends_the_file_with_its_line() {
        let mut ended = Vec::new();
        read(&b"{\"synonyms\": [\n{\"id\": ]}"[..], &mut |line, row| {
            ended.push((line, row.unwrap_err().ends_file()));
            true
        });
        assert_eq!(ended, [(2, true)]);
    }
}
