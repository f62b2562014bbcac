//! How often the model was wrong, by what people said of its edges.

use emend_base::Error;
use learning_store::evidence::{ReviewCount, ReviewFilter};

use crate::evidence::Evidence;

/// How often the model was wrong. Each edge counts once, by the ruling in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReviewStats {
    /// Edges that a person reviewed.
    pub(crate) reviewed: u64,
    /// Of these, edges where that person disagreed with the model.
    pub(crate) corrected: u64,
    /// The same for each pair of labels that there is.
    pub(crate) pairs: Vec<ReviewCount>,
}

impl ReviewStats {
    fn of(pairs: Vec<ReviewCount>) -> Self {
        let corrected = pairs.iter().filter(|pair| pair.predicted != pair.correct);
        Self {
            reviewed: pairs.iter().map(|pair| pair.edges).sum(),
            corrected: corrected.map(|pair| pair.edges).sum(),
            pairs,
        }
    }

    /// The share of reviewed edges that were corrected; 0 where none was reviewed.
    #[expect(clippy::cast_precision_loss, reason = "a share of fewer edges than 2^53")]
    pub(crate) fn error_rate(&self) -> f64 {
        self.corrected as f64 / self.reviewed.max(1) as f64
    }
}

impl Evidence {
    /// Counts reviewed edges.
    pub(crate) async fn review_stats(&self, filter: &ReviewFilter) -> Result<ReviewStats, Error> {
        Ok(ReviewStats::of(self.graph().review_counts(filter).await?))
    }
}
