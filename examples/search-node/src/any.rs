//! A query for records that have a part of the query in any of the ways in which it may be written.
//!
//! tantivy has such queries, too, but those read ahead in all posting lists. This one reads where it is asked to, so that a part
//! that only adds to the score of what others found costs little, however many records have it.

use tantivy::{
    DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError,
    query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight},
};

/// What BM25 weighs beside the share of the query.
const TIE_BREAK: Score = 1e-5;
/// What it adds to a score at most.
pub(crate) const TIE_BREAK_MAX: f32 = 100.0 * TIE_BREAK;

/// Finds what any of these queries finds. The score is the share, and beside it so little of the best of their scores that this
/// decides among equals only.
#[derive(Debug)]
pub(crate) struct AnyQuery {
    ways: Vec<Box<dyn Query>>,
    share: Score,
}

impl AnyQuery {
    /// A part that may be written in these ways, and is that share of the whole query, 0.0 to 1.0.
    pub(crate) const fn new(ways: Vec<Box<dyn Query>>, share: Score) -> Self {
        Self { ways, share }
    }
}

impl Clone for AnyQuery {
    fn clone(&self) -> Self {
        let ways = self.ways.iter().map(|way| way.box_clone()).collect();
        Self::new(ways, self.share)
    }
}

impl Query for AnyQuery {
    fn weight(&self, enable_scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let ways = self.ways.iter().map(|way| way.weight(enable_scoring));
        Ok(Box::new(AnyWeight {
            ways: ways.collect::<tantivy::Result<_>>()?,
            share: self.share,
        }))
    }
}

struct AnyWeight {
    ways: Vec<Box<dyn Weight>>,
    share: Score,
}

impl Weight for AnyWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut ways = Vec::with_capacity(self.ways.len());
        for way in &self.ways {
            ways.push(way.scorer(reader, boost * TIE_BREAK)?);
        }
        ways.retain(|way| way.doc() != TERMINATED);
        if ways.is_empty() {
            return Ok(Box::new(EmptyScorer));
        }
        Ok(Box::new(AnyScorer {
            doc: first(&ways),
            ways,
            share: boost * self.share,
        }))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > doc || scorer.seek(doc) != doc {
            let told = format!("record {doc} does not have this part");
            return Err(TantivyError::InvalidArgument(told));
        }
        Ok(Explanation::new(
            "the share of the query, and BM25",
            scorer.score(),
        ))
    }
}

struct AnyScorer {
    /// Each at its first record from `doc` on.
    ways: Vec<Box<dyn Scorer>>,
    doc: DocId,
    share: Score,
}

fn first(ways: &[Box<dyn Scorer>]) -> DocId {
    ways.iter().map(DocSet::doc).min().unwrap_or(TERMINATED)
}

impl DocSet for AnyScorer {
    fn advance(&mut self) -> DocId {
        let mut first = TERMINATED;
        for way in &mut self.ways {
            let doc = way.doc();
            first = first.min(if doc == self.doc { way.advance() } else { doc });
        }
        self.doc = first;
        first
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let mut first = TERMINATED;
        for way in &mut self.ways {
            let doc = way.doc();
            first = first.min(if doc < target { way.seek(target) } else { doc });
        }
        self.doc = first;
        first
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        let most = self.ways.iter().map(DocSet::size_hint);
        most.fold(0, u32::saturating_add)
    }

    fn cost(&self) -> u64 {
        self.ways.iter().map(DocSet::cost).sum()
    }
}

impl Scorer for AnyScorer {
    fn score(&mut self) -> Score {
        let there = self.ways.iter_mut().filter(|way| way.doc() == self.doc);
        self.share + there.map(Scorer::score).fold(0.0, Score::max).min(TIE_BREAK_MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tantivy::{
        Index, Term, doc,
        query::{BooleanQuery, TermQuery},
        schema::{IndexRecordOption, Schema, TEXT},
    };

    use super::*;

    /// Records that have each of five terms or not.
    type Records = Vec<[bool; 5]>;

    #[derive(Debug, Clone)]
    enum Step {
        Advance,
        /// So far ahead.
        Seek(DocId),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![Just(Step::Advance), (0..40_u32).prop_map(Step::Seek)];
        prop::collection::vec(step, 0..30)
    }

    proptest! {
        /// Each way is records that have all of its terms.
        #[test]
        fn it_stands_where_any_of_its_ways_does(
            records in prop::collection::vec(any::<[bool; 5]>(), 1..150),
            ways in prop::collection::vec(prop::collection::btree_set(0..5_usize, 1..3), 0..4),
            steps in steps(),
        ) {
            let (records, ways): (Records, Vec<Vec<usize>>) =
                (records, ways.into_iter().map(|way| way.into_iter().collect()).collect());
            let mut schema = Schema::builder();
            let field = schema.add_text_field("terms", TEXT);
            let index = Index::create_in_ram(schema.build());
            let mut writer = index.writer_with_num_threads(1, 15_000_000).unwrap();
            for record in &records {
                let terms: Vec<String> = (0..5).filter(|term| record[*term]).map(|term| format!("t{term}")).collect();
                writer.add_document(doc!(field => terms.join(" "))).unwrap();
            }
            writer.commit().unwrap();
            let searcher = index.reader().unwrap().searcher();
            let term = |of: &usize| -> Box<dyn Query> {
                let term = Term::from_field_text(field, &format!("t{of}"));
                Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
            };
            let query = AnyQuery::new(
                ways.iter()
                    .map(|way| Box::new(BooleanQuery::intersection(way.iter().map(term).collect())) as Box<dyn Query>)
                    .collect(),
                0.5,
            );
            let weight = query.weight(EnableScoring::enabled_from_searcher(&searcher)).unwrap();
            let mut scorer = weight.scorer(searcher.segment_reader(0), 1.0).unwrap();
            let from = |doc: DocId| {
                let mut rest = (doc..).zip(records.iter().skip(doc as usize));
                let has = |record: &[bool; 5]| ways.iter().any(|way| way.iter().all(|term| record[*term]));
                rest.find(|(_, record)| has(record)).map_or(TERMINATED, |(doc, _)| doc)
            };
            let mut at = from(0);
            prop_assert_eq!(scorer.doc(), at);
            for step in &steps {
                if at == TERMINATED {
                    break;
                }
                prop_assert!((0.5..=0.5 + TIE_BREAK_MAX).contains(&scorer.score()));
                (at, _) = match step {
                    Step::Advance => (from(at + 1), scorer.advance()),
                    Step::Seek(ahead) => (from(at + ahead), scorer.seek(at + ahead)),
                };
                prop_assert_eq!(scorer.doc(), at);
            }
        }
    }
}
