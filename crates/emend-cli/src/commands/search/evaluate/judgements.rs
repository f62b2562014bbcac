//! Judged queries, as files have them: JSON lines of our own, TREC's qrels, CSV as Quepid exports it, or ratings.

use std::collections::BTreeMap;

use emend_core::search::Judged;
use emend_lab::evaluate::{BadLine, Queries, Query, bad, columns, json, lines, number};
use serde::Deserialize;

use super::ratings;
use crate::transfer::{RowError, source::csv::Records};

/// How judgements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// One JSON object for each query, with its type and its judgements
    Jsonl,
    /// TREC's qrels: query, iteration, document, grade
    Trec,
    /// CSV with the columns query, docid and rating, as Quepid exports it
    Quepid,
    /// Ratings and clicks, as `emend export ratings --format jsonl` writes them
    Ratings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryLine {
    query_id: String,
    #[serde(default)]
    query: String,
    #[serde(default)]
    query_type: String,
    judgements: Vec<GradeLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GradeLine {
    id: String,
    grade: u32,
}

/// Parses judgements. A query that comes again, or a result that is judged again, is bad.
pub(super) fn judgements(text: &str, format: Format) -> Result<Queries, BadLine> {
    let mut grades = Grades::default();
    match format {
        Format::Jsonl => {
            for (line, text) in lines(text) {
                let query: QueryLine = json(line, text)?;
                if grades.0.contains_key(&query.query_id) {
                    return Err(bad(
                        line,
                        format!("the query {:?} is there twice", query.query_id),
                    ));
                }
                let of_query = grades.0.entry(query.query_id.clone()).or_default();
                (of_query.text, of_query.query_type) = (query.query, query.query_type);
                for GradeLine { id, grade } in query.judgements {
                    grades.add(line, &query.query_id, &id, grade)?;
                }
            }
        }
        Format::Trec => {
            for (line, text) in lines(text) {
                let [query, _, id, grade] = columns(line, text)?;
                // Negative grades mark spam in some collections: not relevant.
                let grade: i64 = number(line, "grade", grade)?;
                let grade = u32::try_from(grade.max(0)).unwrap_or(u32::MAX);
                grades.add(line, query, id, grade)?;
            }
        }
        Format::Quepid => quepid(text, &mut grades)?,
        Format::Ratings => return ratings::parse(text, 1).map(|by| by.queries),
    }
    Ok(grades.finish())
}

/// Grades as they are read, by query.
#[derive(Default)]
struct Grades(BTreeMap<String, OfQuery>);

#[derive(Default)]
struct OfQuery {
    text: String,
    query_type: String,
    /// Of each result.
    grades: BTreeMap<String, u32>,
}

impl Grades {
    fn add(&mut self, line: usize, query: &str, id: &str, grade: u32) -> Result<(), BadLine> {
        let of_query = self.0.entry(query.to_owned()).or_default();
        if of_query.grades.insert(id.to_owned(), grade).is_some() {
            return Err(bad(line, format!("{id:?} is judged twice for {query:?}")));
        }
        Ok(())
    }

    fn finish(self) -> Queries {
        let query = |(id, query): (String, OfQuery)| {
            let query = Query {
                text: query.text,
                query_type: query.query_type,
                judged: Judged::new(query.grades),
            };
            (id, query)
        };
        self.0.into_iter().map(query).collect()
    }
}

fn quepid(text: &str, grades: &mut Grades) -> Result<(), BadLine> {
    let opened = Records::of(text.as_bytes()).map_err(|(line, error)| bad_row(line, &error))?;
    let mut records = opened.ok_or_else(|| bad(1, "has no header".to_owned()))?;
    let place = |names: &[&str]| {
        records.header().iter().position(|header| {
            let header: String = header.chars().filter(char::is_ascii_alphanumeric).collect();
            names.contains(&&*header.to_ascii_lowercase())
        })
    };
    let required =
        |names: &[&str]| place(names).ok_or_else(|| bad(1, format!("has no column {}", names.join(" or "))));
    let query = required(&["query", "querytext"])?;
    let id = required(&["docid"])?;
    let rating = required(&["rating"])?;
    let query_type = place(&["querytype"]);
    while let Some((line, row)) = records.next_record() {
        let row = row.map_err(|error| bad_row(line, &error))?;
        let line = usize::try_from(line).unwrap_or(usize::MAX);
        let cell = |place: usize| row.get(place).map_or("", |cell| cell.trim());
        // Quepid lists results that nobody has rated, too.
        if matches!(cell(rating), "" | "--") {
            continue;
        }
        // Averages of several people's ratings have a fraction.
        let rating: f64 = number(line, "rating", cell(rating))?;
        if !(0.0..=1_000.0).contains(&rating) {
            return Err(bad(line, format!("the rating must be 0 to 1000, is {rating}")));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within its bounds"
        )]
        let grade = rating.round() as u32;
        grades.add(line, cell(query), cell(id), grade)?;
        if let (Some(place), Some(of_query)) = (query_type, grades.0.get_mut(cell(query))) {
            cell(place).clone_into(&mut of_query.query_type);
        }
    }
    Ok(())
}

fn bad_row(line: u64, error: &RowError) -> BadLine {
    bad(usize::try_from(line).unwrap_or(usize::MAX), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graded(queries: &Queries) -> Vec<(&str, &str, u32, u32)> {
        queries
            .iter()
            .map(|(id, query)| {
                (
                    &**id,
                    &*query.query_type,
                    query.judged.grade("a"),
                    query.judged.grade("b"),
                )
            })
            .collect()
    }

    #[test]
    fn the_three_formats_say_the_same() {
        let jsonl = "{\"query_id\": \"q1\", \"query\": \"two words\", \"query_type\": \"HYBRID\", \"judgements\": [{\"id\": \"a\", \"grade\": 3}, {\"id\": \"b\", \"grade\": 0}]}\n\n{\"query_id\": \"q2\", \"judgements\": []}\n";
        let jsonl = judgements(jsonl, Format::Jsonl).unwrap();
        assert_eq!(graded(&jsonl), [("q1", "HYBRID", 3, 0), ("q2", "", 0, 0)]);
        assert_eq!(
            (jsonl["q1"].text("q1"), jsonl["q2"].text("q2")),
            ("two words", "q2")
        );
        let trec = judgements("q1 0 a 3\nq1\t0\tb\t-2\n", Format::Trec).unwrap();
        assert_eq!(graded(&trec), [("q1", "", 3, 0)]);
        let quepid = "Query Text,Doc ID,Title,Rating,query_type\n\"two words\",a,\"A, b\",2.6,HYBRID\ntwo words,b,B,,HYBRID\n";
        let quepid = judgements(quepid, Format::Quepid).unwrap();
        assert_eq!(graded(&quepid), [("two words", "HYBRID", 3, 0)]);
        assert_eq!(quepid["two words"].judged.relevant(), 1);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, format, expected) in [
            ("q1 0 a", Format::Trec, "line 1: must have 4 columns, has 3"),
            (
                "\nq1 0 a x",
                Format::Trec,
                "line 2: the grade must be a number, is \"x\"",
            ),
            (
                "q1 0 a 1\nq1 0 a 2",
                Format::Trec,
                "line 2: \"a\" is judged twice for \"q1\"",
            ),
            ("query,rating\n", Format::Quepid, "line 1: has no column docid"),
            (
                "query,docid,rating\r\n\r\nq,a,-1\r\n",
                Format::Quepid,
                "line 3: the rating must be 0 to 1000, is -1",
            ),
            (
                "query,docid,rating\nq,a,1\n\"q,b,1\nq,c,1\n",
                Format::Quepid,
                "line 3: has a quote that is not closed",
            ),
            (
                "query;docid;rating\n",
                Format::Quepid,
                "line 1: columns are separated by ;, expected commas",
            ),
        ] {
            assert_eq!(judgements(text, format).unwrap_err().to_string(), expected);
        }
        assert!(
            judgements("{}", Format::Jsonl)
                .unwrap_err()
                .why
                .contains("query_id")
        );
    }
}
