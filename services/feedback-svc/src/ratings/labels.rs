//! Changing the labels of ratings.

use emend_base::Error;
use feedback_store::{
    ports::Labelled,
    records::{
        feedback::Feedback,
        labels::{LabelChange, MAX_TAGS},
    },
};

use crate::ratings::Ratings;

impl Ratings {
    /// Changes the labels of a rating. Idempotent.
    pub(crate) async fn label(&self, change: &LabelChange) -> Result<Feedback, Error> {
        match self.store.label(change).await? {
            Labelled::Done => self.corrections.read(&change.namespace, change.id, None).await,
            Labelled::NotFound => Err(Error::not_found("feedback", change.id.to_string())),
            Labelled::NotARating => Err(Error::FailedPrecondition {
                reason: "NOT_A_SEARCH_RATING",
                message: "only ratings of search answers have labels".to_owned(),
                violations: Vec::new(),
            }),
            Labelled::TooMany => Err(Error::FailedPrecondition {
                reason: "TOO_MANY_TAGS",
                message: format!("a rating has at most {MAX_TAGS} tags: clear some of those that it has"),
                violations: Vec::new(),
            }),
        }
    }
}
