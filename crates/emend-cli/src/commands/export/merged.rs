//! What many ratings say together, where each of them says it in lines of its own.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
};

use emend_core::normalize;
use emend_proto::feedback::v1::ExportFeedbackResponse;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};

/// Judgements of many ratings in TREC's form, in which a document is judged once for a query: where ratings differ, the best
/// grade counts.
#[derive(Default)]
pub(super) struct Judgements {
    /// The line without its grade, in the order of the ratings.
    order: Vec<String>,
    grades: HashMap<String, String>,
}

impl Judgements {
    /// Adds whole lines.
    pub(super) fn add(&mut self, lines: &str) {
        for (judged, grade) in lines.lines().filter_map(|line| line.rsplit_once(' ')) {
            match self.grades.get_mut(judged) {
                Some(best) if grade > best.as_str() => grade.clone_into(best),
                Some(_) => {}
                None => {
                    self.order.push(judged.to_owned());
                    self.grades.insert(judged.to_owned(), grade.to_owned());
                }
            }
        }
    }
}

impl fmt::Display for Judgements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for judged in &self.order {
            writeln!(f, "{judged} {}", self.grades[judged])?;
        }
        Ok(())
    }
}

/// A pair as it is written: of two titles the better one first, or one of them alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pair {
    query: String,
    positive: Option<String>,
    negative: Option<String>,
}

/// Pairs of many ratings, of which each comes once, as the majority of the ratings has it. Queries that differ only in case, width
/// or spaces are one.
#[derive(Default)]
pub(super) struct Preferences {
    /// As each was said first, with how many ratings say so less how many say the opposite; in the order of the ratings.
    pairs: Vec<(Pair, i64)>,
    /// Where a pair is: by its query in normal form and its titles, whichever is better.
    places: HashMap<(String, [Option<String>; 2]), usize>,
    /// The feedback id of each rating, and which pairs it said.
    ratings: Vec<(String, Vec<usize>)>,
}

impl Preferences {
    /// Adds what ratings say.
    pub(super) fn add(&mut self, part: &ExportFeedbackResponse) -> Result {
        let mut lines = part.text.lines();
        for rating in &part.ratings {
            let count = usize::try_from(rating.line_count).unwrap_or(0);
            let said = lines.by_ref().take(count).map(|line| self.say(line));
            let said = said.collect::<Result<_>>()?;
            self.ratings.push((rating.feedback_id.clone(), said));
        }
        Ok(())
    }

    /// Counts a line for its pair, whose place is returned.
    fn say(&mut self, line: &str) -> Result<usize> {
        let pair: Pair = serde_json::from_str(line).map_err(|error| {
            Failure::failed(format!(
                "feedback-svc exported a pair that can't be read: {error}"
            ))
        })?;
        let mut titles = [pair.positive.clone(), pair.negative.clone()];
        titles.sort();
        let place = match self.places.entry((normalize(&pair.query), titles)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.pairs.push((pair.clone(), 0));
                *new.insert(self.pairs.len() - 1)
            }
        };
        let (first, net) = &mut self.pairs[place];
        *net += i64::from(pair.positive == first.positive) - i64::from(pair.positive == first.negative);
        Ok(place)
    }

    /// The feedback ids of the ratings of which any pair is written.
    pub(super) fn given(&self) -> impl Iterator<Item = &str> {
        let is_written = |place: &usize| self.pairs[*place].1 != 0;
        let given = self
            .ratings
            .iter()
            .filter(move |(_, said)| said.iter().any(is_written));
        given.map(|(id, _)| id.as_str())
    }

    /// How many pairs are not written: as many ratings say the one as the other.
    pub(super) fn ties(&self) -> usize {
        self.pairs.iter().filter(|(_, net)| *net == 0).count()
    }
}

impl fmt::Display for Preferences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (pair, net) in &self.pairs {
            let mut pair = pair.clone();
            if *net < 0 {
                (pair.positive, pair.negative) = (pair.negative, pair.positive);
            }
            if *net != 0 {
                writeln!(f, "{}", serde_json::to_string(&pair).map_err(|_| fmt::Error)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use emend_proto::feedback::v1::ExportedRating;

    use super::*;

    #[test]
    fn a_document_is_judged_once_for_a_query_and_the_best_grade_counts() {
        let mut judgements = Judgements::default();
        judgements.add("q1 0 c1 0\nq1 0 c2 1\nq2 0 c1 0\n");
        judgements.add("q1 0 c1 1\nq1 0 c2 0\nq1 0 c2 1\n");
        assert_eq!(judgements.to_string(), "q1 0 c1 1\nq1 0 c2 1\nq2 0 c1 0\n");
    }

    #[test]
    fn pairs_are_written_as_most_ratings_have_them_and_ties_are_left_out() {
        let line = |query: &str, positive: Option<&str>, negative: Option<&str>| {
            let [positive, negative] = [positive, negative].map(|title| title.map(str::to_owned));
            let query = query.to_owned();
            serde_json::to_string(&Pair {
                query,
                positive,
                negative,
            })
            .unwrap()
                + "\n"
        };
        let mut preferences = Preferences::default();
        let ratings = [
            ("draw", Some("A"), Some("B")),
            ("DRAW", Some("B"), Some("A")),
            ("ｄｒａｗ", Some("B"), Some("A")),
            ("draw", Some("A"), Some("C")),
            ("draw", Some("C"), Some("A")),
            ("draw", Some("A"), None),
            ("draw", Some("A"), None),
            ("draw", None, Some("A")),
            ("draw", None, Some("C")),
            ("draw", Some("D"), Some("D")),
            ("storm", Some("A"), Some("B")),
        ];
        for (number, (query, positive, negative)) in ratings.into_iter().enumerate() {
            let part = ExportFeedbackResponse {
                text: line(query, positive, negative),
                rating_count: 1,
                ratings: vec![ExportedRating {
                    feedback_id: number.to_string(),
                    line_count: 1,
                }],
            };
            preferences.add(&part).unwrap();
        }
        let expected = [
            line("draw", Some("B"), Some("A")),
            line("draw", Some("A"), None),
            line("draw", None, Some("C")),
            line("storm", Some("A"), Some("B")),
        ];
        assert_eq!(preferences.to_string(), expected.concat());
        assert_eq!(preferences.ties(), 2);
        // Those that only said what is left out were not given.
        let given: Vec<&str> = preferences.given().collect();
        assert_eq!(given, ["0", "1", "2", "5", "6", "7", "8", "10"]);
    }
}
