//! The full-text index on disk, and the vectors in it.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result};
use tantivy::{
    Index, IndexReader, IndexWriter, Searcher, TantivyDocument, Warmer,
    directory::MmapDirectory,
    schema::{Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value as _},
};

use crate::{
    corpus::Record,
    vectors::{VectorStates, Vectors},
    words::Words,
};

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
    /// What the vector is called; a record without one has neither.
    pub(crate) embedding_version: Field,
    pub(crate) vector: Field,
}

impl Fields {
    /// The record of a document.
    pub(crate) fn record(&self, document: &TantivyDocument) -> Record {
        let text = |field| {
            let value = document
                .get_first(field)
                .and_then(|value| value.as_str().map(str::to_owned));
            value.unwrap_or_default()
        };
        Record {
            id: text(self.id),
            title: text(self.title),
            text: text(self.text),
            namespace: text(self.namespace),
            url: text(self.url),
        }
    }
}

/// An index of records.
pub struct SearchIndex {
    index: Index,
    reader: IndexReader,
    /// Which write it holds, counted by tantivy.
    version: AtomicU64,
    vectors: Arc<VectorStates>,
    pub(crate) fields: Fields,
    pub(crate) words: Words,
}

impl std::fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchIndex").finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// Opens the index of a directory, of words by ICU, which is created if it is not there.
    pub fn open(directory: &Path) -> Result<Self> {
        Self::open_with(directory, Words::default())
    }

    /// The same, of other words. An index that was made of others is refused.
    pub fn open_with(directory: &Path, words: Words) -> Result<Self> {
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
            terms: schema.add_text_field(
                &format!("terms by {}", words.by()),
                TextOptions::default().set_indexing_options(positions),
            ),
            embedding_version: schema.add_text_field("embedding_version", STRING | STORED),
            vector: schema.add_bytes_field("vector", STORED),
        };
        let index =
            Index::open_or_create(MmapDirectory::open(directory)?, schema.build()).with_context(|| {
                let (directory, by) = (directory.display(), words.by());
                format!("{directory} is no index of this version and of words by {by}")
            })?;
        let vectors = Arc::new(VectorStates::new(fields));
        let warmer: Arc<dyn Warmer> = Arc::clone(&vectors) as _;
        let warmers: Vec<Weak<dyn Warmer>> = vec![Arc::downgrade(&warmer)];
        Ok(Self {
            version: AtomicU64::new(index.load_metas()?.opstamp),
            reader: index.reader_builder().warmers(warmers).try_into()?,
            vectors,
            index,
            fields,
            words,
        })
    }

    /// The name of what the index holds, which changes with each write.
    pub(crate) fn version(&self) -> String {
        format!("write-{}", self.version.load(Ordering::Relaxed))
    }

    /// What is in the index, at one moment.
    pub(crate) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    /// The vectors that a searcher sees of this embedding version; `None` if there are none.
    pub(crate) fn vectors(&self, searcher: &Searcher, embedding_version: &str) -> Option<Arc<Vectors>> {
        self.vectors.of(searcher, embedding_version)
    }

    /// How many numbers a vector of this embedding version has, if there are any.
    pub(crate) fn dimensions(&self, embedding_version: &str) -> Option<usize> {
        let vectors = self.vectors(&self.searcher(), embedding_version);
        vectors.map(|vectors| vectors.dimensions())
    }

    /// What writes into the index.
    pub(crate) fn writer(&self, bytes: usize) -> Result<IndexWriter> {
        Ok(self.index.writer_with_num_threads(1, bytes)?)
    }

    /// Lets the next searcher see this write.
    pub(crate) fn reload(&self, version: u64) -> Result<()> {
        self.reader.reload()?;
        self.version.store(version, Ordering::Relaxed);
        Ok(())
    }

    /// Lets the next searcher see what other processes have written.
    pub(crate) fn catch_up(&self) -> Result<()> {
        self.reload(self.index.load_metas()?.opstamp)
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
}
