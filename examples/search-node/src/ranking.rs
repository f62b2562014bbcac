//! How well a record fits a query: the share of the query that it has, and how close its vector is.
//!
//! Each part of a query weighs the square of its inverse document frequency, as in the cosine of two vectors of TF-IDF. A
//! record's score by words is the weight of what it has by the weight of all; 1.0: it has everything. So a word that the index
//! does not know outweighs many that it knows, and a query of which the main word is unknown finds nothing rather than anything.
//! Among equals, BM25 decides.
//!
//! Where there are vectors, the score is the mean of that share and of the cosine, by the weights of the tuning: a convex
//! combination (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023). What either list has is
//! scored by both. A record without a vector is scored by its words alone.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anyhow::Result;
use tantivy::{
    DocAddress, DocSet as _, Searcher, TantivyDocument, Term,
    collector::TopDocs,
    query::{
        BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, EnableScoring, Occur, PhraseQuery,
        Query, TermQuery,
    },
    schema::{Field, IndexRecordOption},
};

use crate::{
    corpus::Record,
    embedding::Vector,
    index::SearchIndex,
    query::{Part, Wanted},
    vectors::Closeness,
};

/// How many records one title has at most, nearly always.
const RECORDS_OF_A_TITLE: usize = 14;
/// What BM25 weighs beside the share of the query; it is below 100.
const TIE_BREAK: f32 = 1e-5;
/// Scores differ by less only by rounding.
const EPSILON: f64 = 1e-4;

/// Where to search, and what to leave out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    pub(crate) namespaces: BTreeSet<String>,
    /// The score from which on records count, 0.0 to 1.0.
    pub(crate) min_score: f64,
    /// How many titles.
    pub(crate) top_k: usize,
    /// Cards and products that must not be found.
    pub(crate) prohibited: Vec<String>,
    /// Hosts of which nothing must be found.
    pub(crate) blocked: Vec<String>,
}

/// What the two lists weigh in a record's score; not both 0.0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    pub(crate) keyword: f64,
    pub(crate) embedding: f64,
}

impl Weights {
    fn merged(self, share: f64, closeness: Option<f64>) -> f64 {
        let Some(closeness) = closeness else { return share };
        (self.keyword * share + self.embedding * closeness) / (self.keyword + self.embedding)
    }
}

/// What a query means, beside its words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meaning<'q> {
    /// Of which embedding version the vector is.
    pub(crate) version: &'q str,
    pub(crate) vector: &'q Vector,
    pub(crate) weights: Weights,
}

/// A record that fits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hit {
    pub(crate) record: Record,
    /// 0.0 to 1.0.
    pub(crate) score: f64,
}

/// What a search found.
#[derive(Debug)]
pub(crate) struct Hits {
    /// The best titles, each with its best record.
    pub(crate) titles: Vec<Hit>,
    /// Whether vectors of the query's version and length were there to be searched.
    pub(crate) with_vectors: bool,
}

impl SearchIndex {
    /// The best titles, by the words of a query and, where it is given, by its meaning.
    pub(crate) fn search(
        &self,
        parts: &[Part],
        meaning: Option<Meaning<'_>>,
        bounds: &Bounds,
    ) -> Result<Hits> {
        let searcher = self.searcher();
        let ranking = Ranking {
            searcher: &searcher,
            terms: self.fields.terms,
        };
        let fits = ranking.query(parts)?;
        let limit = bounds.top_k * RECORDS_OF_A_TITLE;
        let by_words = match &fits {
            Some(fits) => self.by_words(&searcher, &**fits, bounds, limit)?,
            None => Vec::new(),
        };
        let closeness = meaning.and_then(|meaning| {
            let vectors = self.vectors(&searcher, meaning.version)?;
            let is_as_long = vectors.dimensions() == meaning.vector.dimensions();
            is_as_long.then(|| (vectors.compared(meaning.vector), meaning.weights))
        });
        let with_vectors = closeness.is_some();
        let found = match closeness {
            Some((closeness, weights)) => {
                let close = closeness.closest(bounds, limit);
                let shares = ranking.shares(fits.as_deref(), by_words, &close)?;
                merged(&shares, &closeness, weights)
            }
            None => by_words,
        };
        let mut titles: Vec<Hit> = Vec::new();
        let mut seen = HashSet::new();
        for (score, address) in found {
            if score + EPSILON < bounds.min_score || titles.len() == bounds.top_k {
                break;
            }
            let record = self.fields.record(&searcher.doc::<TantivyDocument>(address)?);
            // They come by score: the first record of a title is its best.
            if seen.insert(record.title.clone()) {
                let score = (score * 1e3).round().min(1e3) / 1e3;
                titles.push(Hit { record, score });
            }
        }
        Ok(Hits { titles, with_vectors })
    }

    /// The records within bounds that fit best by their words.
    fn by_words(
        &self,
        searcher: &Searcher,
        fits: &dyn Query,
        bounds: &Bounds,
        limit: usize,
    ) -> Result<Vec<(f64, DocAddress)>> {
        let any_of = |field: Field, texts: &mut dyn Iterator<Item = &String>| {
            let terms = texts.map(|text| Term::from_field_text(field, text)).collect();
            Box::new(ConstScoreQuery::new(
                Box::new(BooleanQuery::new_multiterms_query(terms)),
                0.0,
            ))
        };
        let fields = &self.fields;
        let query = BooleanQuery::new(vec![
            (Occur::Must, fits.box_clone()),
            (
                Occur::Must,
                any_of(fields.namespace, &mut bounds.namespaces.iter()),
            ),
            (Occur::MustNot, any_of(fields.of, &mut bounds.prohibited.iter())),
            (Occur::MustNot, any_of(fields.host, &mut bounds.blocked.iter())),
        ]);
        let found = searcher.search(&query, &TopDocs::with_limit(limit).order_by_score())?;
        let as_found = |(score, address)| (f64::from(score), address);
        Ok(found.into_iter().map(as_found).collect())
    }

    /// The record that tells most of a card or product: its whole text, else the first of its texts.
    pub(crate) fn record_of(&self, of: &str) -> Result<Option<Record>> {
        Ok(self.records_of(of)?.into_iter().next())
    }

    /// The records of one card or product: its whole text, then the others by their ids.
    pub(crate) fn records_of(&self, of: &str) -> Result<Vec<Record>> {
        let searcher = self.searcher();
        let query = TermQuery::new(
            Term::from_field_text(self.fields.of, of),
            IndexRecordOption::Basic,
        );
        let found = searcher.search(&query, &TopDocs::with_limit(RECORDS_OF_A_TITLE).order_by_score())?;
        let mut records = Vec::new();
        for (_, address) in found {
            records.push(self.fields.record(&searcher.doc::<TantivyDocument>(address)?));
        }
        records.sort_by_key(|record| (!record.id.ends_with(":combined"), record.id.clone()));
        Ok(records)
    }
}

/// Records by their merged score, the best first.
fn merged(
    shares: &HashMap<DocAddress, f64>,
    closeness: &Closeness,
    weights: Weights,
) -> Vec<(f64, DocAddress)> {
    let scores = shares
        .iter()
        .map(|(address, share)| (weights.merged(*share, closeness.of(*address)), *address));
    let mut scores: Vec<(f64, DocAddress)> = scores.collect();
    scores.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    scores
}

struct Ranking<'s> {
    searcher: &'s Searcher,
    terms: Field,
}

impl Ranking<'_> {
    /// The share of the query that records have: those that were found by words, and others.
    fn shares(
        &self,
        fits: Option<&dyn Query>,
        by_words: Vec<(f64, DocAddress)>,
        others: &[DocAddress],
    ) -> Result<HashMap<DocAddress, f64>> {
        let mut shares: HashMap<DocAddress, f64> = by_words
            .into_iter()
            .map(|(share, address)| (address, share))
            .collect();
        let mut by_segment: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for address in others {
            if !shares.contains_key(address) {
                shares.insert(*address, 0.0);
                by_segment
                    .entry(address.segment_ord)
                    .or_default()
                    .insert(address.doc_id);
            }
        }
        let Some(fits) = fits else { return Ok(shares) };
        let weight = fits.weight(EnableScoring::enabled_from_searcher(self.searcher))?;
        for (segment_ord, records) in by_segment {
            let mut scorer = weight.scorer(self.searcher.segment_reader(segment_ord), 1.0)?;
            for doc_id in records {
                // It only moves forward.
                if scorer.doc() < doc_id {
                    scorer.seek(doc_id);
                }
                if scorer.doc() == doc_id {
                    let address = DocAddress::new(segment_ord, doc_id);
                    shares.insert(address, f64::from(scorer.score()));
                }
            }
        }
        Ok(shares)
    }

    /// `None` if there is nothing to search for.
    fn query(&self, parts: &[Part]) -> Result<Option<Box<dyn Query>>> {
        let mut weighed = Vec::new();
        for part in parts {
            let ways = self.ways(part)?;
            let weight = self.weight(&ways)?;
            weighed.push((ways, weight));
        }
        let all: f32 = weighed.iter().map(|(_, weight)| weight).sum();
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for (ways, weight) in weighed {
            let ways: Vec<Box<dyn Query>> = ways.iter().map(Way::query).collect();
            if ways.is_empty() {
                continue;
            }
            let any: Box<dyn Query> = Box::new(DisjunctionMaxQuery::new(ways));
            let share = ConstScoreQuery::new(any.box_clone(), weight / all);
            clauses.push((Occur::Should, Box::new(share)));
            clauses.push((Occur::Should, Box::new(BoostQuery::new(any, TIE_BREAK))));
        }
        Ok((!clauses.is_empty()).then(|| Box::new(BooleanQuery::new(clauses)) as Box<dyn Query>))
    }

    /// The ways in which a part of a query may be written in a record, of those that any record has.
    fn ways(&self, part: &Part) -> Result<Vec<Way>> {
        let mut ways = Vec::new();
        for wanted in &part.0 {
            match wanted {
                Wanted::Word(word) => {
                    ways.push(Way::Term(self.term(word.stem())));
                    if !word.pairs().is_empty() {
                        ways.push(Way::All(
                            word.pairs().iter().map(|pair| self.term(pair)).collect(),
                        ));
                    }
                    for (one, other) in word.cuts() {
                        ways.push(Way::All(vec![self.term(one), self.term(other)]));
                    }
                }
                Wanted::Phrase(words) => {
                    let terms = words.iter().map(|word| (word.position, self.term(word.stem())));
                    ways.push(Way::Phrase(terms.collect()));
                }
            }
        }
        let mut known = Vec::new();
        for way in ways {
            if self.frequency(&way)? > 0 {
                known.push(way);
            }
        }
        Ok(known)
    }

    fn term(&self, text: &str) -> Term {
        Term::from_field_text(self.terms, text)
    }

    /// In how many records it is written so, at most.
    fn frequency(&self, way: &Way) -> Result<u64> {
        let terms: Vec<&Term> = match way {
            Way::Term(term) => vec![term],
            Way::All(terms) => terms.iter().collect(),
            Way::Phrase(terms) => terms.iter().map(|(_, term)| term).collect(),
        };
        let mut least = u64::MAX;
        for term in terms {
            least = least.min(self.searcher.doc_freq(term)?);
        }
        Ok(least)
    }

    /// The square of the inverse document frequency.
    fn weight(&self, ways: &[Way]) -> Result<f32> {
        let mut records = 0;
        for way in ways {
            records += self.frequency(way)?;
        }
        let all = self.searcher.num_docs();
        #[expect(clippy::cast_precision_loss, reason = "counts of records are far below 2^23")]
        let inverse = ((all + 1) as f32 / (records.min(all) as f32 + 0.5)).ln();
        Ok(inverse * inverse)
    }
}

/// How a part of a query may be written in a record.
enum Way {
    Term(Term),
    /// All of these, wherever they stand.
    All(Vec<Term>),
    /// All of these, so many words from each other.
    Phrase(Vec<(usize, Term)>),
}

impl Way {
    fn query(&self) -> Box<dyn Query> {
        let term = |term: &Term| TermQuery::new(term.clone(), IndexRecordOption::WithFreqs);
        match self {
            Self::Term(of) => Box::new(term(of)),
            Self::All(of) => {
                let all = of.iter().map(|of| Box::new(term(of)) as Box<dyn Query>);
                Box::new(BooleanQuery::intersection(all.collect()))
            }
            Self::Phrase(of) => Box::new(PhraseQuery::new_with_offset(of.clone())),
        }
    }
}
