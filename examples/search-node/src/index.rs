//! The full-text index on disk: what is in it, and what becomes of it when the corpus has changed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Write,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, Result};
use emend_client::Timestamp;
use serde_json::json;
use tantivy::{
    Index, IndexReader, IndexWriter, Searcher, TantivyDocument, Term,
    directory::MmapDirectory,
    schema::{Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value as _},
    tokenizer::{PreTokenizedString, Token},
};

use crate::{corpus::Record, words::Words};

/// How much the writer holds before it writes, in bytes; tantivy's least.
const WRITER_BYTES: usize = 15_000_000;

/// The fields of a record in the index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    pub(crate) id: Field,
    pub(crate) of: Field,
    pub(crate) title: Field,
    pub(crate) text: Field,
    pub(crate) namespace: Field,
    pub(crate) url: Field,
    pub(crate) host: Field,
    /// The terms of title and text.
    pub(crate) terms: Field,
}

/// An index of records.
pub struct SearchIndex {
    index: Index,
    reader: IndexReader,
    /// Which write it holds, counted by tantivy.
    version: AtomicU64,
    pub(crate) fields: Fields,
    pub(crate) words: Words,
}

impl std::fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchIndex").finish_non_exhaustive()
    }
}

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
}

impl SearchIndex {
    /// Opens the index of a directory, which is created if it is not there.
    pub fn open(directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        let mut schema = Schema::builder();
        let positions = TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let fields = Fields {
            id: schema.add_text_field("id", STRING | STORED),
            of: schema.add_text_field("of", STRING | STORED),
            title: schema.add_text_field("title", STORED),
            text: schema.add_text_field("text", STORED),
            namespace: schema.add_text_field("namespace", STRING | STORED),
            url: schema.add_text_field("url", STORED),
            host: schema.add_text_field("host", STRING),
            terms: schema.add_text_field("terms", TextOptions::default().set_indexing_options(positions)),
        };
        let index = Index::open_or_create(MmapDirectory::open(directory)?, schema.build())
            .with_context(|| format!("{} is no index of this version", directory.display()))?;
        Ok(Self {
            version: AtomicU64::new(index.load_metas()?.opstamp),
            reader: index.reader()?,
            index,
            fields,
            words: Words::new(),
        })
    }

    /// Makes the index hold these records, writing only what has changed. One line of JSON for each record goes to `audit`.
    /// Nothing is changed by a dry run.
    pub fn update(
        &self,
        records: &[Record],
        is_dry_run: bool,
        now: Timestamp,
        audit: &mut dyn Write,
    ) -> Result<BTreeMap<String, Counts>> {
        let mut held = self.held()?;
        let mut writer: IndexWriter = self.index.writer_with_num_threads(1, WRITER_BYTES)?;
        let mut summary: BTreeMap<String, Counts> = BTreeMap::new();
        let mut note = |record: &Record, upserted: bool, skipped_reason: Option<&str>| {
            let line = json!({
                "id": record.id,
                "namespace": record.namespace,
                "upserted": upserted && !is_dry_run,
                "skipped_reason": skipped_reason.or((upserted && is_dry_run).then_some("dry_run")),
                "text_len": record.text.chars().count(),
                "ts": now.to_string(),
            });
            writeln!(audit, "{line}")
        };
        for record in records {
            let counts = summary.entry(record.namespace.clone()).or_default();
            // What has no text is not held, and what was held of it is removed below.
            if record.text.trim().is_empty() {
                counts.empty += 1;
                note(record, false, Some("empty"))?;
                continue;
            }
            let before = held.remove(&record.id);
            if before.as_ref() == Some(record) {
                counts.unchanged += 1;
                note(record, false, Some("unchanged"))?;
                continue;
            }
            counts.upserted += 1;
            note(record, true, None)?;
            if !is_dry_run {
                writer.delete_term(Term::from_field_text(self.fields.id, &record.id));
                writer.add_document(self.document(record))?;
            }
        }
        let gone: BTreeSet<String> = held.keys().cloned().collect();
        for id in gone {
            let record = &held[&id];
            summary.entry(record.namespace.clone()).or_default().removed += 1;
            note(record, false, Some("removed"))?;
            if !is_dry_run {
                writer.delete_term(Term::from_field_text(self.fields.id, &id));
            }
        }
        if is_dry_run {
            writer.rollback()?;
        } else {
            let version = writer.commit()?;
            self.reader.reload()?;
            self.version.store(version, Ordering::Relaxed);
        }
        Ok(summary)
    }

    /// The name of what the index holds, which changes with each write.
    pub(crate) fn version(&self) -> String {
        format!("write-{}", self.version.load(Ordering::Relaxed))
    }

    /// What is in the index, at one moment.
    pub(crate) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    /// The record of a document.
    pub(crate) fn record(&self, document: &TantivyDocument) -> Record {
        let text = |field| {
            let value = document
                .get_first(field)
                .and_then(|value| value.as_str().map(str::to_owned));
            value.unwrap_or_default()
        };
        Record {
            id: text(self.fields.id),
            title: text(self.fields.title),
            text: text(self.fields.text),
            namespace: text(self.fields.namespace),
            url: text(self.fields.url),
        }
    }

    /// The hosts that records were taken from.
    pub(crate) fn hosts(&self) -> Result<BTreeSet<String>> {
        let mut hosts = BTreeSet::new();
        for segment in self.searcher().segment_readers() {
            let inverted = segment.inverted_index(self.fields.host)?;
            let mut terms = inverted.terms().stream()?;
            while let Some((host, _)) = terms.next() {
                hosts.insert(String::from_utf8_lossy(host).into_owned());
            }
        }
        Ok(hosts)
    }

    fn held(&self) -> Result<HashMap<String, Record>> {
        let mut held = HashMap::new();
        for segment in self.searcher().segment_readers() {
            let store = segment.get_store_reader(1)?;
            for document in store.iter::<TantivyDocument>(segment.alive_bitset()) {
                let record = self.record(&document?);
                held.insert(record.id.clone(), record);
            }
        }
        Ok(held)
    }

    fn document(&self, record: &Record) -> TantivyDocument {
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
        // Two values, so that no phrase reaches from the title into the text.
        for text in [&record.title, &record.text] {
            let words = self.words.of(text);
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
        document
    }
}
