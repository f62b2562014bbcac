//! Ratings, and the outputs that were rated, in SQL.

use std::collections::HashMap;

use async_trait::async_trait;
use emend_core::{ContestId, FeedbackId, OutputTally, Rated, RatedId};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::database::bytes;
use crate::work::Work;
use crate::{
    batches::{batches, batches_up_to},
    integers::small,
    outputs::{
        KnownRating, NewRating, OfClass, OfOutput, OfVoter, RatingChange, RatingRepository, RatingWrites,
        rows::{KnownRatingRow, OutputRow, RatingRow, class_number},
    },
};

type Result<T> = std::result::Result<T, StoreError>;

/// What is asked for in one statement, at most.
const WANTED: usize = 16;

#[async_trait]
impl RatingRepository for Work {
    async fn known(&mut self, feedback: &[FeedbackId]) -> Result<HashMap<FeedbackId, KnownRating>> {
        let mut known = HashMap::new();
        for feedback in batches(feedback) {
            let mut query = Statement::new(
                "SELECT r.feedback_id, r.contest, r.accept_order, r.voter, r.rated, r.class, r.prompt_version, r.received_at, \
                 r.excluded, r.live, NULL AS input, NULL AS output, NULL AS corrected, NULL AS judgement, NULL AS issues, \
                 c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id \
                 FROM ratings AS r JOIN contests AS c ON c.contest = r.contest WHERE r.feedback_id IN ",
            );
            query.push_list(feedback.iter().map(|id| id.0).map(bytes));
            for row in self.rows::<KnownRatingRow>(query).await? {
                let rating = row.parse()?;
                known.insert(rating.rated.feedback, rating);
            }
        }
        Ok(known)
    }

    async fn of_voters(
        &mut self,
        wanted: &[OfVoter],
        max_text_chars: u32,
    ) -> Result<Vec<(ContestId, Rated)>> {
        let mut found = Vec::new();
        for wanted in batches_up_to(wanted, WANTED) {
            let contests = self.contests(wanted.iter().map(|of| of.contest))?;
            let query = of_voters(wanted, &contests, max_text_chars);
            self.ratings(query, &contests, &mut found).await?;
        }
        Ok(found)
    }

    async fn of_outputs(
        &mut self,
        wanted: &[OfOutput],
        max_text_chars: u32,
    ) -> Result<Vec<(ContestId, Rated)>> {
        let mut found = Vec::new();
        for wanted in batches_up_to(wanted, WANTED) {
            let contests = self.contests(wanted.iter().map(|of| of.contest))?;
            let query = of_outputs(wanted, &contests, max_text_chars);
            self.ratings(query, &contests, &mut found).await?;
        }
        Ok(found)
    }

    async fn outputs(&mut self, wanted: &[(ContestId, RatedId)]) -> Result<Vec<(ContestId, OutputTally)>> {
        let mut found = Vec::new();
        for wanted in batches_up_to(wanted, WANTED) {
            let contests = self.contests(wanted.iter().map(|(contest, _)| *contest))?;
            let query = outputs(wanted, &contests);
            self.tallies(query, &contests, &mut found).await?;
        }
        Ok(found)
    }

    async fn newest_outputs(&mut self, wanted: &[OfClass]) -> Result<Vec<(ContestId, OutputTally)>> {
        let mut found = Vec::new();
        for wanted in batches_up_to(wanted, WANTED) {
            let contests = self.contests(wanted.iter().map(|of| of.contest))?;
            let query = newest_outputs(wanted, &contests);
            self.tallies(query, &contests, &mut found).await?;
        }
        Ok(found)
    }

    async fn save(&mut self, writes: &RatingWrites) -> Result<()> {
        insert(self, &writes.new).await?;
        change(self, &writes.changed).await?;
        save_outputs(self, &writes.outputs).await
    }
}

impl Work {
    /// The keys of contests within the database, but for new ones, of which nothing is stored.
    fn contests(&self, ids: impl Iterator<Item = ContestId>) -> Result<HashMap<ContestId, i64>> {
        let stored = ids.filter(|id| !self.keys.is_new(*id));
        stored.map(|id| Ok((id, self.keys.contest(id)?))).collect()
    }

    async fn ratings(
        &mut self,
        query: Statement,
        contests: &HashMap<ContestId, i64>,
        found: &mut Vec<(ContestId, Rated)>,
    ) -> Result<()> {
        let of: HashMap<i64, ContestId> = contests.iter().map(|(id, key)| (*key, *id)).collect();
        for row in self.rows::<RatingRow>(query).await? {
            if let Some(contest) = of.get(&row.contest) {
                found.push((*contest, row.parse()?));
            }
        }
        Ok(())
    }

    async fn tallies(
        &mut self,
        query: Statement,
        contests: &HashMap<ContestId, i64>,
        found: &mut Vec<(ContestId, OutputTally)>,
    ) -> Result<()> {
        let of: HashMap<i64, ContestId> = contests.iter().map(|(id, key)| (*key, *id)).collect();
        for row in self.rows::<OutputRow>(query).await? {
            if let Some(contest) = of.get(&row.contest) {
                found.push((*contest, row.parse()?));
            }
        }
        Ok(())
    }
}

/// The newest ratings of each voter and output: one bounded read for each, by an index that holds them in this order.
pub(crate) fn of_voters(
    wanted: &[OfVoter],
    contests: &HashMap<ContestId, i64>,
    max_text_chars: u32,
) -> Statement {
    let mut query = Statement::new("");
    for (index, of) in wanted.iter().enumerate() {
        begin(&mut query, index, max_text_chars);
        query
            .push(" WHERE r.excluded = 0 AND r.contest = ")
            .push_bind(contests.get(&of.contest).copied());
        query.push(" AND r.voter = ").push_bind(bytes(of.voter.0));
        query.push(" AND r.rated = ").push_bind(bytes(of.rated.0));
        end(&mut query, index, of.limit);
    }
    query
}

/// The newest live ratings of each output and class: one bounded read for each, by an index that holds them in this order.
pub(crate) fn of_outputs(
    wanted: &[OfOutput],
    contests: &HashMap<ContestId, i64>,
    max_text_chars: u32,
) -> Statement {
    let mut query = Statement::new("");
    for (index, of) in wanted.iter().enumerate() {
        begin(&mut query, index, max_text_chars);
        query
            .push(" WHERE r.live = 1 AND r.contest = ")
            .push_bind(contests.get(&of.contest).copied());
        query.push(" AND r.rated = ").push_bind(bytes(of.rated.0));
        query.push(" AND r.class = ").push_bind(of.class.number());
        end(&mut query, index, of.limit);
    }
    query
}

pub(crate) const OUTPUT: &str = "SELECT o.contest, o.rated, o.good, o.bad, o.class, o.accept_order, o.feedback_id \
                      FROM rated_outputs AS o WHERE o.contest = ";

/// What each output comes to, found by its key.
pub(crate) fn outputs(wanted: &[(ContestId, RatedId)], contests: &HashMap<ContestId, i64>) -> Statement {
    let mut query = Statement::new("");
    for (index, (contest, rated)) in wanted.iter().enumerate() {
        query
            .push(if index > 0 { " UNION ALL " } else { "" })
            .push(OUTPUT);
        query.push_bind(contests.get(contest).copied());
        query.push(" AND o.rated = ").push_bind(bytes(rated.0));
    }
    query
}

/// The newest outputs of each class: one bounded read for each, by an index that holds them in this order.
pub(crate) fn newest_outputs(wanted: &[OfClass], contests: &HashMap<ContestId, i64>) -> Statement {
    let mut query = Statement::new("");
    for (index, of) in wanted.iter().enumerate() {
        query
            .push(if index > 0 { " UNION ALL " } else { "" })
            .push("SELECT * FROM (")
            .push(OUTPUT);
        query.push_bind(contests.get(&of.contest).copied());
        query.push(" AND o.class = ").push_bind(of.class.number());
        query.push(" ORDER BY o.accept_order DESC, o.feedback_id DESC LIMIT ");
        query.push_limit(of.limit);
        query.push(format_args!(") AS wanted_{index}"));
    }
    query
}

/// No more of a text is read than is shown of it.
fn begin(query: &mut Statement, index: usize, max_text_chars: u32) {
    query
        .push(if index > 0 { " UNION ALL " } else { "" })
        .push(
            "SELECT * FROM (SELECT r.feedback_id, r.contest, r.accept_order, r.voter, r.rated, r.class, r.prompt_version, \
             r.received_at, r.excluded, r.live",
        );
    for text in ["input", "output", "corrected"] {
        query.push(format_args!(", substr(t.{text}, 1, "));
        query.push_bind(small(max_text_chars));
        query.push(format_args!(") AS {text}"));
    }
    query.push(
        ", t.judgement, t.issues FROM ratings AS r LEFT JOIN rating_texts AS t ON t.feedback_id = r.feedback_id",
    );
}

fn end(query: &mut Statement, index: usize, limit: u32) {
    query.push(" ORDER BY r.accept_order DESC, r.feedback_id DESC LIMIT ");
    query.push_limit(limit);
    query.push(format_args!(") AS wanted_{index}"));
}

async fn insert(work: &mut Work, new: &[NewRating]) -> Result<()> {
    for new in batches(new) {
        let mut rows = Vec::with_capacity(new.len());
        for rating in new {
            rows.push((work.keys.contest(rating.contest)?, &rating.rated));
        }
        let mut query = Statement::new(
            "INSERT INTO ratings (feedback_id, contest, accept_order, voter, rated, class, prompt_version, \
             received_at, excluded, live) ",
        );
        query.push_values(rows, |mut row, (contest, rated)| {
            row.push_bind(bytes(rated.feedback.0))
                .push_bind(contest)
                .push_bind(rated.accept_order.0)
                .push_bind(bytes(rated.voter.0))
                .push_bind(bytes(rated.rated.0))
                .push_bind(rated.class.number())
                .push_bind(rated.prompt_version.as_str())
                .push_bind(rated.received_at.as_microsecond())
                .push_bind(i32::from(rated.excluded))
                .push_bind(i32::from(rated.live));
        });
        work.run(query).await?;
    }
    let counts: Vec<&Rated> = new
        .iter()
        .map(|new| &new.rated)
        .filter(|rated| !rated.excluded)
        .collect();
    for counts in batches(&counts) {
        let mut query = Statement::new(
            "INSERT INTO rating_texts (feedback_id, input, output, corrected, judgement, issues) ",
        );
        query.push_values(counts, |mut row, rated| {
            let issues = serde_json::to_string(&rated.texts.issues)
                .expect("invariant: a list of strings is always a JSON array");
            row.push_bind(bytes(rated.feedback.0))
                .push_bind(rated.texts.input.as_str())
                .push_bind(rated.texts.output.as_str())
                .push_bind(rated.texts.corrected.as_str())
                .push_bind(rated.texts.judgement.as_str())
                .push_bind(issues);
        });
        work.run(query).await?;
    }
    Ok(())
}

async fn change(work: &mut Work, changed: &[RatingChange]) -> Result<()> {
    for changed in batches(changed) {
        let mut query =
            Statement::new("UPDATE ratings SET live = written.column2, excluded = written.column3 FROM (");
        query.push_values(changed, |mut row, change| {
            row.push_bind(bytes(change.feedback.0))
                .push_bind(i32::from(change.live))
                .push_bind(i32::from(change.excluded));
        });
        query.push(") AS written WHERE ratings.feedback_id = written.column1");
        work.run(query).await?;
    }
    let excluded: Vec<FeedbackId> = changed
        .iter()
        .filter(|change| change.excluded)
        .map(|change| change.feedback)
        .collect();
    for excluded in batches(&excluded) {
        let mut query = Statement::new("DELETE FROM rating_texts WHERE feedback_id IN ");
        query.push_list(excluded.iter().map(|id| id.0).map(bytes));
        work.run(query).await?;
    }
    Ok(())
}

async fn save_outputs(work: &mut Work, outputs: &[(ContestId, OutputTally)]) -> Result<()> {
    for outputs in batches(outputs) {
        let mut rows = Vec::with_capacity(outputs.len());
        for (contest, output) in outputs {
            rows.push((work.keys.contest(*contest)?, output));
        }
        let mut query = Statement::new(
            "INSERT INTO rated_outputs (contest, rated, good, bad, class, accept_order, feedback_id) ",
        );
        query.push_values(rows, |mut row, (contest, output)| {
            row.push_bind(contest)
                .push_bind(bytes(output.rated.0))
                .push_bind(small(output.good))
                .push_bind(small(output.bad))
                .push_bind(class_number(output))
                .push_bind(output.place.map(|(order, _)| order.0))
                .push_bind(output.place.map(|(_, feedback)| bytes(feedback.0)));
        });
        query.push(
            " ON CONFLICT (contest, rated) DO UPDATE SET good = excluded.good, bad = excluded.bad, \
             class = excluded.class, accept_order = excluded.accept_order, feedback_id = excluded.feedback_id",
        );
        work.run(query).await?;
    }
    Ok(())
}
