//! For tests: sinks as edge.toml has them, and what they are to keep.

use std::collections::{BTreeMap, BTreeSet};

use emend_client::proto::common::v1::ResourceKey;

use super::{
    config::{Common, SinkConfig, TargetConfig},
    content::{Content, Entries, Origin, Wanted, Writer},
};

/// A sink with these settings beside its name and its search application.
pub(super) fn sink(settings: &str) -> (Common, TargetConfig) {
    let table = format!("name = \"cards\"\nnamespaces = [\"shop\"]\n{settings}");
    let SinkConfig { common, target } = toml::from_str(&table).expect("a sink");
    (common, target)
}

/// Terms, each with what else is searched for in its place.
pub(super) fn entries(terms: &[(&str, &[&str])]) -> Entries {
    let of = |(term, others): &(&str, &[&str])| {
        let all = others.iter().chain([term]).map(|&term| term.to_owned());
        ((*term).to_owned(), all.collect::<BTreeSet<_>>())
    };
    terms.iter().map(of).collect()
}

/// What a sink is to keep by a revision: these synonyms.
pub(super) fn wanted(terms: &[(&str, &[&str])], revision: i64) -> Wanted {
    let entries = entries(terms);
    let origin = |term: &String| {
        let key = ResourceKey {
            key: term.clone(),
            ..ResourceKey::default()
        };
        (term.clone(), Origin { key, revision })
    };
    let origins: BTreeMap<String, Origin> = entries.keys().map(origin).collect();
    let mut wanted = Wanted::new(Content::Synonyms(entries), origins, Vec::new());
    wanted.writer = Some(writer(revision));
    wanted
}

/// The sink that writes, at a revision.
pub(super) fn writer(revision: i64) -> Writer {
    Writer::new("solr:cards", ["shop", "synonyms"], "epoch", revision)
}
