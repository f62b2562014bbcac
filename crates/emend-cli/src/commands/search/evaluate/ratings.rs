//! Judgements from what users rated and clicked.
//!
//! A query is all searches with one text and type, whatever their case and width. Of each search that was rated, what was clicked
//! has grade 2; if nothing was and it was rated up, its best result has grade 1; what was shown and not clicked in a search that was
//! rated down has grade 0. A result's grade is the mean over the query's searches, rounded. What nobody clicked or rated is not
//! judged.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use emend_core::{
    NormalizedKey,
    search::{Judged, is_click},
};
use emend_proto::feedback::v1::{
    ExportFeedbackRequest, ExportFormat, ListQueriesRequest, Query as RecordedQuery, SearchRatingFilter,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    commands::export,
    context::Context,
    failure::{Failure, Result},
    output::counted,
    words,
};
use emend_lab::evaluate::{BadLine, Queries, Query, json as parse_json, lines};

/// The grade of what was clicked.
const CLICKED: u32 = 2;
/// The grade of the best result of a search that was rated up and in which nothing was clicked.
const POSITIVE: u32 = 1;
/// The grade of what was shown, but not clicked, in a search that was rated down.
const NEGATIVE: u32 = 0;

/// Which ratings judge.
#[derive(Debug, clap::Args)]
pub(super) struct Source {
    /// Judge by what users rated and what they clicked then, instead of a file
    #[arg(long, conflicts_with = "judgements")]
    pub(super) ratings: bool,
    /// Only ratings stored at this time or later
    #[arg(long, value_name = "TIME", value_parser = words::instant, requires = "ratings")]
    rated_from: Option<prost_types::Timestamp>,
    /// Only ratings stored before this time
    #[arg(long, value_name = "TIME", value_parser = words::instant, requires = "ratings")]
    rated_before: Option<prost_types::Timestamp>,
    /// Only ratings of queries of this type
    #[arg(
        long = "type",
        value_name = "TYPE",
        requires = "ratings",
        default_value = "",
        hide_default_value = true
    )]
    query_type: String,
    /// Judge by clicks in recorded queries that nobody rated, too
    #[arg(long, requires = "ratings")]
    clicks: bool,
    /// Only queries with at least so many ratings, or searches with clicks
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) min_ratings: u16,
}

impl Source {
    /// Whether not all ratings are asked for.
    pub(super) fn is_filtered(&self) -> bool {
        !self.query_type.is_empty() || self.rated_from.is_some() || self.rated_before.is_some()
    }
}

/// Judged queries, and what they are judged by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ByUsers {
    pub(super) queries: Queries,
    pub(super) counts: Counts,
}

/// What queries are judged by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Ratings that count.
    ratings: usize,
    /// Those of searches in which something was clicked.
    with_clicks: usize,
    /// Searches with clicks that nobody rated.
    clicked_searches: usize,
    /// Queries.
    queries: usize,
    /// Judged results of grade 0, 1 and 2.
    grades: [usize; 3],
    /// Ratings of whose query nothing is known.
    unknown: usize,
    /// Queries with too few ratings.
    too_few: usize,
    /// How many are too few.
    min_ratings: usize,
}

/// A line of `emend export ratings --format jsonl`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RatingLine {
    query_id: String,
    rating: i8,
    query_type: String,
    query_text: String,
    top_results: Vec<ResultLine>,
    #[serde(default)]
    clicked: Vec<ResultLine>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultLine {
    object_id: String,
}

/// Reads ratings as they were exported, the newest first.
pub(super) fn parse(text: &str, min_ratings: usize) -> Result<ByUsers, BadLine> {
    let mut judging = Judging::default();
    for (line, text) in lines(text) {
        judging.rated(&parse_json(line, text)?);
    }
    Ok(judging.finish(min_ratings))
}

/// Asks feedback-svc for ratings, and for recorded queries with clicks.
pub(super) async fn fetch(context: &Context, source: &Source) -> Result<ByUsers> {
    let of_type = SearchRatingFilter {
        query_type: source.query_type.clone(),
        ..SearchRatingFilter::default()
    };
    let request = ExportFeedbackRequest {
        namespace: context.namespace(),
        search_ratings: (!source.query_type.is_empty()).then_some(of_type),
        received_from: source.rated_from,
        received_before: source.rated_before,
        format: ExportFormat::Jsonl.into(),
        mark_processed: false,
    };
    let mut text = String::new();
    export::parts(context, request, |part| {
        text.push_str(&part.text);
        Ok(())
    })
    .await?;
    let mut judging = Judging::default();
    for (line, text) in lines(&text) {
        let rating = parse_json(line, text).map_err(|bad| {
            Failure::failed(format!(
                "feedback-svc exported a rating that can't be read: {bad}"
            ))
        })?;
        judging.rated(&rating);
    }
    if source.clicks {
        let request = ListQueriesRequest {
            namespace: context.namespace(),
            query_type: source.query_type.clone(),
            searched_from: source.rated_from,
            searched_before: source.rated_before,
            ..ListQueriesRequest::default()
        };
        let (recorded, _) = context.list(&request, 0).await?;
        for query in &recorded {
            judging.clicked(query);
        }
    }
    Ok(judging.finish(source.min_ratings.into()))
}

/// What one query is judged by.
#[derive(Default)]
struct OfQuery {
    /// As the newest search has it.
    text: String,
    /// Ratings, and searches with clicks.
    searches: usize,
    /// The sum and the count of each result's grades.
    grades: BTreeMap<String, (u32, u32)>,
}

impl OfQuery {
    fn add(&mut self, id: &str, grade: u32) {
        // What has no id can't be found again.
        if !id.is_empty() {
            let (sum, count) = self.grades.entry(id.to_owned()).or_default();
            (*sum, *count) = (*sum + grade, *count + 1);
        }
    }
}

#[derive(Default)]
struct Judging {
    /// By type and folded text.
    queries: BTreeMap<(String, String), OfQuery>,
    /// The ids of rated searches.
    rated: HashSet<String>,
    counts: Counts,
}

impl Judging {
    fn search(&mut self, query_type: &str, text: &str) -> &mut OfQuery {
        let folded = NormalizedKey::parse(text).map(|key| key.as_str().to_owned());
        let key = (query_type.to_owned(), folded.unwrap_or_else(|_| text.to_owned()));
        let search = self.queries.entry(key).or_default();
        if search.text.is_empty() {
            text.clone_into(&mut search.text);
        }
        search.searches += 1;
        search
    }

    fn rated<'r>(&mut self, rating: &'r RatingLine) {
        self.rated.insert(rating.query_id.clone());
        if rating.query_text.is_empty() {
            self.counts.unknown += 1;
            return;
        }
        self.counts.ratings += 1;
        self.counts.with_clicks += usize::from(!rating.clicked.is_empty());
        let search = self.search(&rating.query_type, &rating.query_text);
        let ids = |results: &'r [ResultLine]| results.iter().map(|result| &*result.object_id);
        let clicked: HashSet<&str> = ids(&rating.clicked).collect();
        for id in &clicked {
            search.add(id, CLICKED);
        }
        let mut others = ids(&rating.top_results).filter(|id| !clicked.contains(id));
        match rating.rating {
            1 if rating.clicked.is_empty() => {
                if let Some(best) = others.next() {
                    search.add(best, POSITIVE);
                }
            }
            -1 => others.for_each(|id| search.add(id, NEGATIVE)),
            _ => {}
        }
    }

    fn clicked(&mut self, query: &RecordedQuery) {
        let clicks = query
            .interactions
            .iter()
            .filter(|interaction| is_click(&interaction.action));
        let clicked: HashSet<&str> = clicks.map(|interaction| &*interaction.object_id).collect();
        if clicked.is_empty() || query.query_text.is_empty() || self.rated.contains(&query.query_id) {
            return;
        }
        self.counts.clicked_searches += 1;
        let search = self.search(&query.query_type, &query.query_text);
        for id in clicked {
            search.add(id, CLICKED);
        }
    }

    fn finish(self, min_ratings: usize) -> ByUsers {
        let mut counts = Counts {
            min_ratings,
            ..self.counts
        };
        let mut types: HashMap<String, usize> = HashMap::new();
        for search in self.queries.values() {
            *types.entry(search.text.clone()).or_default() += 1;
        }
        let mut queries = Queries::new();
        for ((query_type, _), search) in self.queries {
            if search.searches < min_ratings {
                counts.too_few += 1;
                continue;
            }
            let grade = |(id, (sum, count)): (String, (u32, u32))| (id, (2 * sum + count) / (2 * count));
            let grades: Vec<(String, u32)> = search.grades.into_iter().map(grade).collect();
            for (_, grade) in &grades {
                let place = usize::try_from(*grade).unwrap_or_default();
                if let Some(count) = counts.grades.get_mut(place) {
                    *count += 1;
                }
            }
            // Of one text searched in several ways each is a query of its own.
            let id = if types.get(&search.text).is_some_and(|count| *count > 1) {
                format!("{} ({query_type})", search.text)
            } else {
                search.text.clone()
            };
            let query = Query {
                text: search.text,
                query_type,
                judged: Judged::new(grades),
            };
            queries.insert(id, query);
        }
        counts.queries = queries.len();
        ByUsers { queries, counts }
    }
}

impl Counts {
    /// Whether there was nothing to judge by.
    pub(super) fn is_empty(&self) -> bool {
        self.ratings + self.clicked_searches + self.unknown == 0
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "ratings": self.ratings,
            "ratingsWithClicks": self.with_clicks,
            "clickedSearches": self.clicked_searches,
            "queries": self.queries,
            "judgementsOfGrade": self.grades,
            "unknownQueries": self.unknown,
            "tooFewRatings": self.too_few,
        })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratings = counted(self.ratings, "rating", "ratings");
        write!(f, "Judged by {ratings}, {} of them with clicks", self.with_clicks)?;
        if self.clicked_searches > 0 {
            let searches = counted(self.clicked_searches, "search", "searches");
            write!(f, ", and {searches} with clicks that nobody rated")?;
        }
        let [negative, positive, clicked] = self.grades;
        let judgements = counted(negative + positive + clicked, "judgement", "judgements");
        let queries = counted(self.queries, "query", "queries");
        write!(
            f,
            ".\n{queries} with {judgements}: {clicked} of grade 2, {positive} of grade 1, {negative} of grade 0"
        )?;
        if self.unknown > 0 {
            let ratings = counted(self.unknown, "rating", "ratings");
            write!(f, "\n{ratings} left out: nothing is known of the query")?;
        }
        if self.too_few > 0 {
            let queries = counted(self.too_few, "query", "queries");
            write!(f, "\n{queries} left out: fewer than {} ratings", self.min_ratings)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use emend_proto::feedback::v1::QueryInteraction;

    use super::*;

    fn line(id: &str, text: &str, rating: i8, shown: &[&str], clicked: &[&str]) -> String {
        let results: Vec<_> = shown
            .iter()
            .map(|id| json!({"objectId": id, "score": 0.5}))
            .collect();
        json!({
            "feedbackId": "f", "queryId": id, "rating": rating, "queryType": "HYBRID", "queryText": text,
            "topResults": results,
            "clicked": clicked.iter().map(|id| json!({"objectId": id, "position": 1})).collect::<Vec<_>>(),
        })
        .to_string()
    }

    fn grades(rated: &ByUsers, id: &str) -> [u32; 3] {
        ["a", "b", "c"].map(|result| rated.queries[id].judged.grade(result))
    }

    #[test]
    fn what_was_clicked_is_better_than_what_was_the_best_and_that_than_what_was_rated_down() {
        let rated = [
            line("1", "Draw", 1, &["a", "b"], &["b"]),
            line("2", "ｄｒａｗ", 1, &["a", "b"], &[]),
            line("3", "storm", -1, &["a", "b"], &["b"]),
            line("4", "storm", -1, &["b", "a"], &[]),
            line("5", "", -1, &["a"], &[]),
            line("6", "ward", 0, &["a"], &[]),
        ];
        let judged = parse(&rated.join("\n"), 1).unwrap();
        assert_eq!(grades(&judged, "Draw"), [1, 2, 0]);
        assert_eq!(grades(&judged, "storm"), [0, 1, 0]);
        assert_eq!(judged.queries["ward"].judged.relevant(), 0);
        assert_eq!(
            judged.counts.to_string(),
            "Judged by 5 ratings, 2 of them with clicks.\n3 queries with 4 judgements: 1 of grade 2, 2 of grade 1, 1 of \
             grade 0\n1 rating left out: nothing is known of the query"
        );
        let judged = parse(&rated.join("\n"), 2).unwrap();
        assert_eq!((judged.queries.len(), judged.counts.too_few), (2, 1));
        assert_eq!(
            parse("{}", 1).unwrap_err().to_string(),
            "line 1: missing field `queryId` at line 1 column 2"
        );
    }

    #[test]
    fn clicks_judge_what_nobody_rated() {
        let mut judging = Judging::default();
        let rated: RatingLine = serde_json::from_str(&line("1", "draw", 1, &["a"], &[])).unwrap();
        judging.rated(&rated);
        let query = |id: &str, query_type: &str, clicked: &[&str]| {
            let click = |id: &&str| QueryInteraction {
                object_id: (*id).to_owned(),
                action: "item_click".into(),
                ..QueryInteraction::default()
            };
            RecordedQuery {
                query_id: id.into(),
                query_text: "draw".into(),
                query_type: query_type.into(),
                interactions: clicked.iter().map(click).collect(),
                ..RecordedQuery::default()
            }
        };
        judging.clicked(&query("1", "HYBRID", &["c"]));
        judging.clicked(&query("2", "HYBRID", &["b", "b"]));
        judging.clicked(&query("3", "SEMANTIC", &["c"]));
        judging.clicked(&query("4", "SEMANTIC", &[]));
        let judged = judging.finish(1);
        assert_eq!(grades(&judged, "draw (HYBRID)"), [1, 2, 0]);
        assert_eq!(grades(&judged, "draw (SEMANTIC)"), [0, 0, 2]);
        assert_eq!((judged.counts.ratings, judged.counts.clicked_searches), (1, 2));
    }
}
