//! What becomes of the index when the corpus or the embedding model has changed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Write,
};

use anyhow::Result;
use emend_client::Timestamp;
use serde_json::json;
use tantivy::{
    IndexWriter, TantivyDocument, Term,
    schema::Value as _,
    tokenizer::{PreTokenizedString, Token},
};

use crate::{
    corpus::Record,
    embedding::{Embedded, Vector},
    index::SearchIndex,
    vectors::stored,
};

/// How much the writer holds before it writes, in bytes; tantivy's least.
const WRITER_BYTES: usize = 15_000_000;

/// What became of the records of one namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// New or changed.
    pub upserted: usize,
    /// As they were.
    pub unchanged: usize,
    /// Without text.
    pub empty: usize,
    /// In the index, and no longer in the corpus.
    pub removed: usize,
    /// New, changed or unchanged, with a vector made now.
    pub embedded: usize,
    /// Those of which a vector was to be made and could not.
    pub not_embedded: usize,
}

/// A record as the index holds it.
#[derive(Debug)]
struct Held {
    record: Record,
    /// What its vector is called; empty: it has none.
    embedding_version: String,
}

impl Held {
    /// Whether this is the record, with a vector of this version.
    fn is(&self, record: &Record, embedding_version: &str) -> bool {
        self.record == *record && self.embedding_version == embedding_version
    }
}

impl SearchIndex {
    /// The records of which the index has no vector of their text and this version.
    pub(crate) fn to_embed<'r>(&self, records: &'r [Record], version: &str) -> Result<Vec<&'r Record>> {
        let held = self.held()?;
        let is_held = |record: &Record| held.get(&record.id).is_some_and(|held| held.is(record, version));
        let with_text = records.iter().filter(|record| !record.is_empty());
        Ok(with_text.filter(|record| !is_held(record)).collect())
    }

    /// The records that the index holds, by their ids.
    pub(crate) fn records(&self) -> Result<Vec<Record>> {
        let held = self.held()?.into_values();
        let mut records: Vec<Record> = held.map(|held| held.record).collect();
        records.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        Ok(records)
    }

    /// Writes the vectors of those records that the index still holds as they are here, and nothing else: the corpus may have
    /// been indexed since they were embedded.
    pub(crate) fn add_vectors(&self, records: &[Record], embedded: &Embedded) -> Result<()> {
        let mut writer = self.only_writer()?;
        let held = self.held()?;
        let version = &*embedded.version;
        for record in records {
            let is_wanted =
                |held: &Held| held.record == *record && held.embedding_version != embedded.version;
            if let Some(vector) = embedded.vectors.get(&record.id)
                && held.get(&record.id).is_some_and(is_wanted)
            {
                writer.delete_term(Term::from_field_text(self.fields.id, &record.id));
                writer.add_document(self.document(record, Some((version, vector)))?)?;
            }
        }
        let version = writer.commit()?;
        self.reload(version)
    }

    /// What writes into the index. Until it is dropped nobody else does, and the next searcher sees all that others wrote.
    fn only_writer(&self) -> Result<IndexWriter> {
        let writer = self.writer(WRITER_BYTES)?;
        self.catch_up()?;
        Ok(writer)
    }

    /// Makes the index hold these records, with these vectors, writing only what has changed; `None`: a record that is as it was
    /// keeps its vector. One line of JSON for each record goes to `audit`. Nothing is changed by a dry run.
    pub fn update(
        &self,
        records: &[Record],
        embedded: Option<&Embedded>,
        is_dry_run: bool,
        now: Timestamp,
        audit: &mut dyn Write,
    ) -> Result<BTreeMap<String, Counts>> {
        let mut writer = self.only_writer()?;
        let mut held = self.held()?;
        let mut summary: BTreeMap<String, Counts> = BTreeMap::new();
        let mut note = |record: &Record, upserted: bool, embedded: bool, skipped_reason: Option<&str>| {
            let line = json!({
                "id": record.id,
                "namespace": record.namespace,
                "upserted": upserted && !is_dry_run,
                "embedded": embedded,
                "skipped_reason": skipped_reason.or((upserted && is_dry_run).then_some("dry_run")),
                "text_len": record.text.chars().count(),
                "ts": now.to_string(),
            });
            writeln!(audit, "{line}")
        };
        for record in records {
            let counts = summary.entry(record.namespace.clone()).or_default();
            // What has no text is not held, and what was held of it is removed below.
            if record.is_empty() {
                counts.empty += 1;
                note(record, false, false, Some("empty"))?;
                continue;
            }
            let before = held.remove(&record.id);
            let is_unchanged = before.as_ref().is_some_and(|held| held.record == *record);
            let is_to_embed = embedded.is_some_and(|embedded| {
                before
                    .as_ref()
                    .is_none_or(|held| !held.is(record, &embedded.version))
            });
            let vector = embedded
                .filter(|_| is_to_embed)
                .and_then(|embedded| Some((&*embedded.version, embedded.vectors.get(&record.id)?)));
            if is_to_embed && (is_dry_run || vector.is_some()) {
                counts.embedded += 1;
            } else if is_to_embed {
                counts.not_embedded += 1;
            }
            let skipped_reason = is_unchanged.then_some("unchanged");
            note(record, !is_unchanged, vector.is_some(), skipped_reason)?;
            if is_unchanged {
                counts.unchanged += 1;
            } else {
                counts.upserted += 1;
            }
            if !is_dry_run && (vector.is_some() || !is_unchanged) {
                writer.delete_term(Term::from_field_text(self.fields.id, &record.id));
                writer.add_document(self.document(record, vector)?)?;
            }
        }
        let gone: BTreeSet<String> = held.keys().cloned().collect();
        for id in gone {
            let record = &held[&id].record;
            summary.entry(record.namespace.clone()).or_default().removed += 1;
            note(record, false, false, Some("removed"))?;
            if !is_dry_run {
                writer.delete_term(Term::from_field_text(self.fields.id, &id));
            }
        }
        if is_dry_run {
            writer.rollback()?;
        } else {
            let version = writer.commit()?;
            self.reload(version)?;
        }
        Ok(summary)
    }

    fn held(&self) -> Result<HashMap<String, Held>> {
        let mut all = HashMap::new();
        for segment in self.searcher().segment_readers() {
            let store = segment.get_store_reader(1)?;
            for document in store.iter::<TantivyDocument>(segment.alive_bitset()) {
                let document = document?;
                let version = document.get_first(self.fields.embedding_version);
                let held = Held {
                    record: self.fields.record(&document),
                    embedding_version: version
                        .and_then(|version| version.as_str().map(str::to_owned))
                        .unwrap_or_default(),
                };
                all.insert(held.record.id.clone(), held);
            }
        }
        Ok(all)
    }

    fn document(&self, record: &Record, vector: Option<(&str, &Vector)>) -> Result<TantivyDocument> {
        let fields = &self.fields;
        let mut document = TantivyDocument::default();
        document.add_text(fields.id, &record.id);
        document.add_text(fields.of, record.of());
        document.add_text(fields.title, &record.title);
        document.add_text(fields.text, &record.text);
        document.add_text(fields.namespace, &record.namespace);
        document.add_text(fields.url, &record.url);
        if let Some(host) = record.host() {
            document.add_text(fields.host, host);
        }
        if let Some((version, vector)) = vector {
            document.add_text(fields.embedding_version, version);
            document.add_bytes(fields.vector, &stored(vector));
        }
        // Two values, so that no phrase reaches from the title into the text.
        for text in [&record.title, &record.text] {
            let words = self.words.of(text)?;
            let tokens = words.iter().flat_map(|word| {
                word.terms().map(|term| Token {
                    position: word.position,
                    text: term.to_owned(),
                    ..Token::default()
                })
            });
            let tokens = tokens.collect();
            let text = text.clone();
            document.add_pre_tokenized_text(fields.terms, PreTokenizedString { text, tokens });
        }
        Ok(document)
    }
}
