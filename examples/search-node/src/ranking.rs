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
    query::{BooleanQuery, ConstScoreQuery, EnableScoring, Occur, PhraseQuery, Query, TermQuery},
    schema::{Field, IndexRecordOption},
};

use crate::{
    any::{AnyQuery, TIE_BREAK_MAX},
    corpus::Record,
    embedding::Vector,
    index::SearchIndex,
    query::{Part, Wanted},
    vectors::Closeness,
};

/// How many records one title has at most, nearly always.
const RECORDS_OF_A_TITLE: usize = 14;
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
        let shares = ranking.weighed(parts)?;
        let limit = bounds.top_k * RECORDS_OF_A_TITLE;
        let closeness = meaning.and_then(|meaning| {
            let vectors = self.vectors(&searcher, meaning.version)?;
            let is_as_long = vectors.dimensions() == meaning.vector.dimensions();
            is_as_long.then(|| (vectors.compared(meaning.vector), meaning.weights))
        });
        let with_vectors = closeness.is_some();
        let found = match closeness {
            Some((closeness, weights)) => {
                // Where vectors add to the score, any share counts.
                let fits = shares.query(0.0);
                let by_words = self.by_words(&searcher, fits.as_deref(), bounds, limit)?;
                let close = closeness.closest(bounds, limit);
                let shares = ranking.shares(fits.as_deref(), by_words, &close)?;
                merged(&shares, &closeness, weights)
            }
            None => self.by_words(
                &searcher,
                shares.query(bounds.min_score).as_deref(),
                bounds,
                limit,
            )?,
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
        fits: Option<&dyn Query>,
        bounds: &Bounds,
        limit: usize,
    ) -> Result<Vec<(f64, DocAddress)>> {
        let Some(fits) = fits else { return Ok(Vec::new()) };
        let any_of = |field: Field, texts: &mut dyn Iterator<Item = &String>| -> Box<dyn Query> {
            let term = |text| Term::from_field_text(field, text);
            let terms = texts.map(|text| Box::new(TermQuery::new(term(text), IndexRecordOption::Basic)) as _);
            Box::new(AnyQuery::new(terms.collect(), 0.0))
        };
        let fields = &self.fields;
        let namespaces = any_of(fields.namespace, &mut bounds.namespaces.iter());
        let query = BooleanQuery::new(vec![
            (Occur::Must, fits.box_clone()),
            (Occur::Must, Box::new(ConstScoreQuery::new(namespaces, 0.0))),
            (Occur::MustNot, any_of(fields.of, &mut bounds.prohibited.iter())),
            (Occur::MustNot, any_of(fields.host, &mut bounds.blocked.iter())),
        ]);
        let found = searcher.search(&query, &TopDocs::with_limit(limit).order_by_score())?;
        let as_found = |(score, address)| (f64::from(score), address);
        Ok(found.into_iter().map(as_found).collect())
    }

    /// The record that tells most of a card or product: its whole text, else the first of its texts.
    pub(crate) fn record_of(&self, subject: &str) -> Result<Option<Record>> {
        Ok(self.records_of(subject)?.into_iter().next())
    }

    /// The records of one card or product: its whole text, then the others by their ids.
    pub(crate) fn records_of(&self, subject: &str) -> Result<Vec<Record>> {
        let searcher = self.searcher();
        let query = TermQuery::new(
            Term::from_field_text(self.fields.of, subject),
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

    /// The parts of a query, with what each of them is of it.
    fn weighed(&self, parts: &[Part]) -> Result<Shares> {
        let mut weighed = Vec::new();
        for part in parts {
            let (ways, records) = self.ways(part)?;
            weighed.push((ways, self.weight(records)));
        }
        let all: f32 = weighed.iter().map(|(_, weight)| weight).sum();
        weighed.retain(|(ways, _)| !ways.is_empty());
        let share = |(ways, weight)| Share {
            ways,
            share: weight / all,
        };
        let mut shares: Vec<Share> = weighed.into_iter().map(share).collect();
        shares.sort_by(|one, other| one.share.total_cmp(&other.share));
        Ok(Shares(shares))
    }

    /// The ways in which a part of a query may be written in a record, of those that any record has, and in how many records
    /// it is, at most.
    fn ways(&self, part: &Part) -> Result<(Vec<Way>, u64)> {
        let (mut known, mut records) = (Vec::new(), 0);
        let mut add = |way: Way| -> Result<()> {
            let frequency = self.frequency(&way)?;
            if frequency > 0 {
                known.push(way);
                records += frequency;
            }
            Ok(())
        };
        for wanted in &part.0 {
            match wanted {
                Wanted::Word(word) => {
                    add(Way::Term(self.term(word.stem())))?;
                    if !word.pairs().is_empty() {
                        add(Way::All(
                            word.pairs().iter().map(|pair| self.term(pair)).collect(),
                        ))?;
                    }
                    for (one, other) in word.cuts() {
                        add(Way::All(vec![self.term(one), self.term(other)]))?;
                    }
                }
                Wanted::Phrase(words) => {
                    let terms = words.iter().map(|word| (word.position, self.term(word.stem())));
                    add(Way::Phrase(terms.collect()))?;
                }
            }
        }
        Ok((known, records))
    }

    fn term(&self, text: &str) -> Term {
        Term::from_field_text(self.terms, text)
    }

    /// In how many records it is written so, at most.
    fn frequency(&self, way: &Way) -> Result<u64> {
        let mut least = u64::MAX;
        for term in way.terms() {
            least = least.min(self.searcher.doc_freq(term)?);
            if least == 0 {
                break;
            }
        }
        Ok(least)
    }

    /// The square of the inverse document frequency of what so many records have, at most.
    fn weight(&self, records: u64) -> f32 {
        let all = self.searcher.num_docs();
        #[expect(clippy::cast_precision_loss, reason = "counts of records are far below 2^23")]
        let inverse = ((all + 1) as f32 / (records.min(all) as f32 + 0.5)).ln();
        inverse * inverse
    }
}

/// A part of a query that some record may have.
struct Share {
    ways: Vec<Way>,
    /// What it is of the query, 0.0 to 1.0.
    share: f32,
}

impl Share {
    fn query(&self) -> Box<dyn Query> {
        let ways = self.ways.iter().map(Way::query).collect();
        Box::new(AnyQuery::new(ways, self.share))
    }
}

/// The parts of a query that some record may have, the smallest share first.
struct Shares(Vec<Share>);

impl Shares {
    /// How many of the first parts need not be searched for; `None` if none has to be.
    fn adding(&self, least: f64) -> Option<usize> {
        let mut together = EPSILON;
        self.0.iter().position(|Share { share, .. }| {
            together += f64::from(share + TIE_BREAK_MAX);
            together >= least
        })
    }

    /// What finds the records from that score on; `None` if there is nothing to search for.
    ///
    /// Small parts which all together would be less are not searched for: they only add to the score of what the others found
    /// (`MaxScore`; Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995).
    fn query(&self, least: f64) -> Option<Box<dyn Query>> {
        let (adding, searched) = self.0.split_at(self.adding(least)?);
        let any = searched.iter().map(|share| (Occur::Should, share.query()));
        let found: Box<dyn Query> = Box::new(BooleanQuery::new(any.collect()));
        // One by one, as tantivy would read ahead in a union of them.
        Some(adding.iter().fold(found, |found, share| {
            let clauses = vec![(Occur::Must, found), (Occur::Should, share.query())];
            Box::new(BooleanQuery::new(clauses))
        }))
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
    fn terms(&self) -> Box<dyn Iterator<Item = &Term> + '_> {
        match self {
            Self::Term(term) => Box::new([term].into_iter()),
            Self::All(terms) => Box::new(terms.iter()),
            Self::Phrase(terms) => Box::new(terms.iter().map(|(_, term)| term)),
        }
    }

    fn query(&self) -> Box<dyn Query> {
        let term = |term: &Term| TermQuery::new(term.clone(), IndexRecordOption::WithFreqs);
        match self {
            Self::Term(word) => Box::new(term(word)),
            Self::All(of) => {
                let all = of.iter().map(|of| Box::new(term(of)) as Box<dyn Query>);
                Box::new(BooleanQuery::intersection(all.collect()))
            }
            Self::Phrase(words) => Box::new(PhraseQuery::new_with_offset(words.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, io::sink, path::Path};

    use emend_base::{Clock as _, SystemClock};
    use emend_client::{ExpandMode, ExpandedText, OrGroup};
    use proptest::prelude::*;

    use super::*;
    use crate::{corpus, query::parts};

    const WORDS: [&str; 12] = [
        "フォロワー",
        "手札",
        "相手の",
        "破壊する",
        "ダメージ",
        "疾走",
        "守護を持つ",
        "竜騎兵",
        "バーンダメージ",
        "ラストワード",
        "無作為な",
        "大鏡台",
    ];

    /// A text of these words, each of which may be written as the others that come with it.
    fn expanded(words: &[(usize, Vec<usize>)]) -> ExpandedText {
        let (mut original, mut groups) = (String::new(), Vec::new());
        for (word, others) in words {
            let start = original.len();
            original.push_str(WORDS[*word]);
            if !others.is_empty() {
                let all = [word].into_iter().chain(others);
                groups.push(OrGroup {
                    span: start..original.len(),
                    alternatives: all.map(|word| WORDS[*word].into()).collect(),
                });
            }
            original.push('、');
        }
        ExpandedText {
            original,
            mode: ExpandMode::Keyword,
            groups,
        }
    }

    #[test]
    fn parts_that_are_not_searched_for_change_nothing_from_the_least_score_on() {
        let directory = tempfile::tempdir().unwrap();
        let index = SearchIndex::open(directory.path()).unwrap();
        let records = corpus::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap();
        let now = SystemClock.now();
        index.update(&records, None, false, now, &mut sink()).unwrap();
        let searcher = index.searcher();
        let ranking = Ranking {
            searcher: &searcher,
            terms: index.fields.terms,
        };
        let namespaces: BTreeSet<String> = ["effects", "products", "qa"].map(str::to_owned).into();
        let found = |shares: &Shares, least, bounds: &Bounds| {
            let query = shares.query(least);
            let found = index
                .by_words(&searcher, query.as_deref(), bounds, records.len())
                .unwrap();
            let found = found.into_iter().map(|(score, address)| (address, score));
            found.collect::<HashMap<_, _>>()
        };
        let not_searched = Cell::new(0);
        let word = 0..WORDS.len();
        let words = prop::collection::vec((word.clone(), prop::collection::vec(word, 0..3)), 1..6);
        let prohibited = prop::collection::vec(prop::sample::select(records.clone()), 0..20);
        let blocked = prop::sample::subsequence(vec!["rulings.example", "shop.example"], 0..=2);
        proptest!(|(words in words, which: prop::sample::Index, prohibited in prohibited, blocked in blocked)| {
            let shares = ranking.weighed(&parts(&index.words, &expanded(&words)).unwrap()).unwrap();
            let everywhere = Bounds { namespaces: namespaces.clone(), ..Bounds::default() };
            let bounds = Bounds {
                prohibited: prohibited.iter().map(|record| record.of().to_owned()).collect(),
                blocked: blocked.into_iter().map(str::to_owned).collect(),
                ..everywhere.clone()
            };
            let mut all = found(&shares, 0.0, &everywhere);
            all.retain(|address, _| {
                let record = index.fields.record(&searcher.doc::<TantivyDocument>(*address).unwrap());
                let is_blocked = record.host().is_some_and(|host| bounds.blocked.iter().any(|host_name| host_name == host));
                !is_blocked && !bounds.prohibited.iter().any(|subject| subject == record.of())
            });
            let mut scores: Vec<f64> = all.values().copied().collect();
            scores.sort_unstable_by(f64::total_cmp);
            let least = if scores.is_empty() { 0.4 } else { *which.get(&scores) };
            let those = found(&shares, least, &bounds);
            for (address, score) in &those {
                prop_assert!(all.contains_key(address), "prohibited or blocked");
                prop_assert!((score - all[address]).abs() < 1e-6, "{} is not {}", score, all[address]);
            }
            for (address, score) in &all {
                prop_assert!(*score < least || those.contains_key(address), "none with {}", score);
            }
            not_searched.set(not_searched.get() + shares.adding(least).unwrap_or_default());
        });
        assert!(not_searched.get() > 0, "all parts were searched for");
    }
}
