//! Exports of ratings: tables, pairs for training, and judgments.

mod rows;

use std::fmt::Write as _;

use emend_base::Error;
use emend_core::{AcceptOrder, FeedbackId, search::SearchRating};
use emend_proto::feedback::v1::{Query, QueryResult};
use emend_store::CorruptRow;
use feedback_store::records::{
    feedback::{Feedback, FeedbackQuery},
    ratings::{EncodedQuery, RatingState},
};
use prost::Message as _;
use serde_json::json;

use crate::{page::Page, ratings::Ratings};

/// Ratings in one part.
const PART: u32 = 200;

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Rows with a header.
    Csv,
    /// JSON objects.
    Jsonl,
    /// Pairs of titles for training.
    Pairs,
    /// TREC's judgments.
    Qrels,
}

/// Which ratings to export, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Export {
    /// The ratings.
    pub(crate) query: FeedbackQuery,
    /// The form.
    pub(crate) format: Format,
    /// Whether those that gave a line are marked as processed.
    pub(crate) mark_processed: bool,
}

/// A part of an export.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Whole lines.
    pub(crate) text: String,
    /// The ratings that gave lines, in their order.
    pub(crate) given: Vec<Given>,
    /// The last rating that was looked at; one without a query gives no pairs.
    pub(crate) last: Option<AcceptOrder>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// A rating that gave lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    /// Its place among all feedback.
    pub(crate) order: AcceptOrder,
    /// Its id.
    pub(crate) id: FeedbackId,
    /// How many lines.
    pub(crate) lines: usize,
}

/// A rating with its query.
#[derive(Debug)]
struct Rated {
    feedback: Feedback,
    state: RatingState,
    query: Query,
}

impl Ratings {
    /// The part of an export that follows this rating.
    pub(crate) async fn export(&self, export: &Export, after: Option<AcceptOrder>) -> Result<Part, Error> {
        let query = FeedbackQuery {
            after,
            limit: PART,
            ..export.query.clone()
        };
        let Page { items, more } = self.corrections.list(query).await?;
        let ratings = items.into_iter().map(Rated::try_from);
        let ratings = ratings.collect::<Result<Vec<_>, CorruptRow>>();
        let ratings = ratings.map_err(Error::internal)?;
        let mut text = String::new();
        if after.is_none() && export.format == Format::Csv {
            rows::header(&mut text);
        }
        let mut given = Vec::new();
        for rated in &ratings {
            let before = text.len();
            rated.write(export.format, &mut text);
            if text.len() > before {
                given.push(Given {
                    order: rated.order(),
                    id: rated.feedback.id,
                    lines: text[before..].lines().count(),
                });
            }
        }
        Ok(Part {
            text,
            given,
            last: ratings.last().map(Rated::order),
            more,
        })
    }

    /// Marks ratings as processed.
    pub(crate) async fn mark_processed(&self, given: &[Given]) -> Result<(), Error> {
        let orders: Vec<_> = given.iter().map(|given| given.order).collect();
        Ok(self.store.mark_processed(&orders).await?)
    }
}

impl TryFrom<Feedback> for Rated {
    type Error = CorruptRow;

    fn try_from(mut feedback: Feedback) -> Result<Self, CorruptRow> {
        let mut state = feedback.search_rating.take().unwrap_or_else(RatingState::pending);
        let query = state.query.take().map(|EncodedQuery(bytes)| Query::decode(bytes));
        let query = query
            .transpose()
            .map_err(|error| CorruptRow::new("search_ratings", "query", feedback.accepted.order, error))?;
        Ok(Self {
            feedback,
            state,
            query: query.unwrap_or_default(),
        })
    }
}

impl Rated {
    fn order(&self) -> AcceptOrder {
        self.feedback.accepted.order
    }

    fn value(&self) -> SearchRating {
        let rating = self.feedback.submission.correction.search_rating();
        rating.unwrap_or(SearchRating::Neutral)
    }

    fn tags(&self) -> Vec<String> {
        self.state.tags.iter().map(ToString::to_string).collect()
    }

    fn is_clicked(&self, result: &QueryResult) -> bool {
        let mut clicks = self.query.interactions.iter();
        clicks.any(|click| click.object_id == result.object_id)
    }

    /// The results that were good and those that were not.
    fn judged(&self) -> (Vec<&QueryResult>, Vec<&QueryResult>) {
        let results = self.query.top_results.iter();
        let (mut good, others): (Vec<_>, Vec<_>) = results.partition(|result| self.is_clicked(result));
        if good.is_empty() && self.value() == SearchRating::Up {
            good.extend(others.first());
        }
        let bad = if self.value() == SearchRating::Down {
            others
        } else {
            Vec::new()
        };
        (good, bad)
    }

    fn write(&self, format: Format, text: &mut String) {
        let query = &self.query;
        match format {
            Format::Csv => self.write_csv(text),
            Format::Jsonl => self.write_jsonl(text),
            Format::Pairs => {
                if query.query_text.is_empty() {
                    return;
                }
                let (good, bad) = self.judged();
                let titles = |results: Vec<&QueryResult>| -> Vec<Option<String>> {
                    let titles: Vec<_> = results
                        .into_iter()
                        .map(|result| Some(result.title.clone()))
                        .collect();
                    if titles.is_empty() { vec![None] } else { titles }
                };
                for positive in titles(good) {
                    for negative in titles(bad.clone()) {
                        if positive.is_some() || negative.is_some() {
                            let pair = json!({
                                "query": query.query_text,
                                "positive": positive,
                                "negative": negative,
                            });
                            rows::line(text, &pair);
                        }
                    }
                }
            }
            Format::Qrels => {
                let (good, bad) = self.judged();
                for (grade, results) in [(1, good), (0, bad)] {
                    for result in results {
                        // What holds white space is no id in TREC's form.
                        let ids = [&self.feedback.submission.query_id, &result.object_id];
                        if ids
                            .iter()
                            .all(|id| !id.is_empty() && !id.contains(char::is_whitespace))
                        {
                            let _ = writeln!(text, "{} 0 {} {grade}", ids[0], ids[1]);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use emend_core::search::SearchRating::{Down, Neutral, Up};
    use emend_proto::feedback::v1::QueryInteraction;
    use feedback_store::{
        records::{feedback::Accepted, labels::Tag, outbox::DeliveryState},
        testing::search_rated,
    };
    use jiff::Timestamp;

    use super::*;

    fn click(object_id: &str) -> QueryInteraction {
        QueryInteraction {
            object_id: object_id.into(),
            position: 2,
            ..QueryInteraction::default()
        }
    }

    pub(super) fn rated(value: SearchRating, clicked: &[&str]) -> Rated {
        let new = search_rated(["jane", "", ""], "q1", value);
        let mut submission = new.submission;
        submission.reason = "no \"hits\", none".into();
        let result = |id: &str| QueryResult {
            title: format!("Card {id}"),
            score: 0.5,
            object_id: id.into(),
        };
        Rated {
            feedback: Feedback {
                id: new.id,
                submission,
                caller: new.caller,
                accepted: Accepted {
                    order: AcceptOrder(1),
                    at: Timestamp::UNIX_EPOCH,
                },
                retraction: None,
                outcome: None,
                delivery: DeliveryState::Delivered,
                redaction: None,
                search_rating: None,
            },
            state: RatingState {
                query_type: "SEMANTIC".into(),
                tags: ["low_recall", "x"].map(|tag| Tag::parse(tag).unwrap()).into(),
                ..RatingState::pending()
            },
            query: Query {
                query_text: "back to the hand".into(),
                top_results: ["a", "b", "c"].map(result).into(),
                interactions: clicked.iter().map(|id| click(id)).collect(),
                ..Query::default()
            },
        }
    }

    pub(super) fn written(format: Format, rated: &Rated) -> String {
        let mut text = String::new();
        rated.write(format, &mut text);
        text
    }

    #[test]
    fn what_was_clicked_is_positive_and_what_was_not_is_negative_where_the_query_was_rated_down() {
        for (rating, clicked, qrels) in [
            (Down, &["b"][..], "q1 0 b 1\nq1 0 a 0\nq1 0 c 0\n"),
            (Down, &[], "q1 0 a 0\nq1 0 b 0\nq1 0 c 0\n"),
            (Up, &[], "q1 0 a 1\n"),
            (Up, &["c"], "q1 0 c 1\n"),
            (Neutral, &[], ""),
            (Neutral, &["c"], "q1 0 c 1\n"),
        ] {
            assert_eq!(written(Format::Qrels, &rated(rating, clicked)), qrels);
        }
        let pair = |positive: Option<&str>, negative: Option<&str>| {
            let pair = json!({"query": "back to the hand", "positive": positive, "negative": negative});
            format!("{pair}\n")
        };
        let down = written(Format::Pairs, &rated(Down, &["b"]));
        assert_eq!(
            down,
            pair(Some("Card b"), Some("Card a")) + &pair(Some("Card b"), Some("Card c"))
        );
        assert_eq!(
            written(Format::Pairs, &rated(Up, &[])),
            pair(Some("Card a"), None)
        );
        assert_eq!(written(Format::Pairs, &rated(Neutral, &[])), "");
    }
}
