//! What is left to do when the day is over, for those who stay and look at the console: a better prompt that waits, and searches that
//! people rated, of which some were bad.

use emend_client::Submission;
use emend_core::search::SearchRating;
use emend_proto::feedback::v1::{
    Query, QueryInteraction, QueryResult, RecordInteractionRequest, RecordQueryRequest,
};

use super::{
    day::Day,
    script::{BadSummaries, NAMESPACE, SUMMARY},
};
use crate::failure::{Failure, Result};

/// A search as a backend records it, and how it was rated.
struct Search {
    text: &'static str,
    answer: &'static str,
    hits: &'static [(&'static str, f64)],
    /// Who rated it, and whether they found it good.
    ratings: &'static [(&'static str, bool, &'static str)],
    /// Whether somebody opened its first hit.
    is_clicked: bool,
}

/// The worst is `redemption gate`: the word in the documents is another one.
const SEARCHES: [Search; 5] = [
    Search {
        text: "redemption gate",
        answer: "I found nothing about that.",
        hits: &[],
        ratings: &[
            ("ana", false, "we have a policy for this"),
            ("ben", false, "nothing found"),
            ("eve", false, ""),
        ],
        is_clicked: false,
    },
    Search {
        text: "redemption suspension",
        answer: "Redemptions may be suspended for up to 90 days (prospectus, 7.3).",
        hits: &[
            ("Prospectus 7.3: suspension of redemptions", 0.91),
            ("Board minutes, March", 0.55),
        ],
        ratings: &[("ben", true, "")],
        is_clicked: true,
    },
    Search {
        text: "NAV of the Lux fund",
        answer: "NAV 101.2 as of yesterday.",
        hits: &[("Daily NAV report", 0.88), ("Fund factsheet", 0.71)],
        ratings: &[
            ("ana", true, ""),
            ("chloe", true, ""),
            ("eve", false, "of the wrong share class"),
        ],
        is_clicked: true,
    },
    Search {
        text: "management fee",
        answer: "1.2 % a year.",
        hits: &[("Fee schedule", 0.83)],
        ratings: &[("ben", true, "")],
        is_clicked: true,
    },
    Search {
        text: "side letter template",
        answer: "",
        hits: &[("Subscription form", 0.41)],
        ratings: &[("chloe", false, "not what I asked for")],
        is_clicked: false,
    },
];

impl Day {
    /// Leaves all of that.
    pub(super) async fn evening(&mut self) -> Result {
        let bad = BadSummaries {
            reporters: &["ana", "ben", "chloe"],
            version: "2",
            input: "NAV 100.9, down 0.3 %. One redemption of EUR 2 m.",
            output: "NAV 100.9. All is well.",
            issue: "leaves out redemptions",
            corrected: "NAV 100.9 (-0.3 %); one redemption of EUR 2 m.",
        };
        self.rate_and_propose(SUMMARY, &bad).await?;
        let searched = |(number, search): (usize, &Search)| Query {
            query_id: id(number),
            query_text: search.text.into(),
            answer_text: search.answer.into(),
            query_type: "SEMANTIC".into(),
            top_results: search.hits.iter().map(hit).collect(),
            hit_count: i32::try_from(search.hits.len()).ok(),
            // The first two are one person's, who found another word.
            session_id: if number < 2 { "ben-1".into() } else { id(number) },
            ..Query::default()
        };
        let request = RecordQueryRequest {
            namespace: NAMESPACE.into(),
            queries: SEARCHES.iter().enumerate().map(searched).collect(),
        };
        let mut queries = self.context.queries().await?;
        queries.record_query(self.context.request(request)).await?;
        let clicked = SEARCHES
            .iter()
            .enumerate()
            .filter(|(_, search)| search.is_clicked);
        let request = RecordInteractionRequest {
            namespace: NAMESPACE.into(),
            interactions: clicked.map(|(number, search)| opened(number, search)).collect(),
        };
        queries.record_interaction(self.context.request(request)).await?;
        for (number, search) in SEARCHES.iter().enumerate() {
            for &(reporter, is_good, reason) in search.ratings {
                let value = if is_good {
                    SearchRating::Up
                } else {
                    SearchRating::Down
                };
                let submission = Submission::search_rating(NAMESPACE, id(number), value)
                    .reporter(reporter)
                    .reason(reason)
                    .client("emend-demo");
                let submitted = self.feedback.submit(submission).await;
                submitted.map_err(|error| Failure::Refused(Box::new(error.0)))?;
            }
        }
        Ok(())
    }
}

fn id(number: usize) -> String {
    format!("search-{}", number + 1)
}

fn hit(&(title, score): &(&str, f64)) -> QueryResult {
    QueryResult {
        title: title.into(),
        score,
        object_id: title.to_lowercase().replace([' ', ':'], "-"),
    }
}

fn opened(number: usize, search: &Search) -> QueryInteraction {
    QueryInteraction {
        query_id: id(number),
        object_id: search
            .hits
            .first()
            .map(|first| hit(first).object_id)
            .unwrap_or_default(),
        action: "click".into(),
        position: 1,
        acted_at: None,
    }
}
