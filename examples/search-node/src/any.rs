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
