//! What was searched lately, as a preview asks for it.

use std::collections::{BTreeMap, HashMap};

use emend_core::normalize;
use emend_proto::{
    common::v1::{SearchRatingValue, correction::Correction},
    feedback::v1::{Feedback, Query},
    learning::v1::PreviewQuery,
};

/// The queries of one preview at most.
pub const MOST: usize = 1_000;
/// The longest query that can be a phrase, in characters.
const LONGEST: usize = 512;

/// Recorded queries, each once with how often it was searched and how its answers were rated; those that were searched most first,
/// as many as one preview takes. What is erased or too long for a phrase is left out.
pub fn queries(recorded: &[Query], ratings: &[Feedback]) -> Vec<PreviewQuery> {
    let mut rated = HashMap::<&str, [i64; 2]>::new();
    for rating in ratings.iter().filter(|rating| rating.retracted_at.is_none()) {
        let value = match rating
            .correction
            .as_ref()
            .and_then(|said| said.correction.as_ref())
        {
            Some(Correction::SearchRating(said)) => said.value(),
            _ => continue,
        };
        let counts = rated.entry(&rating.query_id).or_default();
        match value {
            SearchRatingValue::Up => counts[0] += 1,
            SearchRatingValue::Down => counts[1] += 1,
            SearchRatingValue::Neutral | SearchRatingValue::Unspecified => {}
        }
    }
    let mut by_phrase = BTreeMap::<String, PreviewQuery>::new();
    for query in recorded {
        let phrase = normalize(&query.query_text);
        if phrase.is_empty() || phrase.chars().count() > LONGEST || query.query_text.chars().count() > LONGEST
        {
            continue;
        }
        let asked = by_phrase.entry(phrase).or_insert_with(|| PreviewQuery {
            text: query.query_text.clone(),
            ..PreviewQuery::default()
        });
        let [up, down] = rated.get(&*query.query_id).copied().unwrap_or_default();
        asked.search_count += 1;
        asked.rated_up_count += up;
        asked.rated_down_count += down;
    }
    let mut queries: Vec<PreviewQuery> = by_phrase.into_values().collect();
    queries.sort_by_key(|query| std::cmp::Reverse(query.search_count));
    queries.truncate(MOST);
    queries
}

/// The same with judged queries, each beside a choice that is right for it: these first, and as many of the others as one preview
/// takes.
pub fn with_judged(recorded: Vec<PreviewQuery>, judged: Vec<(String, String)>) -> Vec<PreviewQuery> {
    let mut places = HashMap::<String, usize>::new();
    let mut queries = Vec::<PreviewQuery>::new();
    for (text, choice) in judged {
        let place = *places.entry(normalize(&text)).or_insert(queries.len());
        if place == queries.len() {
            queries.push(PreviewQuery {
                text,
                ..PreviewQuery::default()
            });
        }
        queries[place].right_choices.push(choice);
    }
    for query in recorded {
        match places.get(&normalize(&query.text)) {
            Some(&place) => {
                queries[place] = PreviewQuery {
                    right_choices: std::mem::take(&mut queries[place].right_choices),
                    ..query
                }
            }
            None if queries.len() < MOST => queries.push(query),
            None => {}
        }
    }
    queries
}

#[cfg(test)]
mod tests {
    use emend_proto::common::v1::{self as common, SearchRating};

    use super::*;

    #[test]
    fn spellings_of_one_phrase_are_one_query_with_its_ratings() {
        let query = |id: &str, text: &str| Query {
            query_id: id.into(),
            query_text: text.into(),
            ..Query::default()
        };
        let rating = |id: &str, value: SearchRatingValue| Feedback {
            query_id: id.into(),
            correction: Some(common::Correction {
                correction: Some(Correction::SearchRating(SearchRating { value: value.into() })),
            }),
            ..Feedback::default()
        };
        let recorded = [
            query("1", "Set up a CSA"),
            query("2", "set  up a csa"),
            query("3", "wind down"),
            query("4", ""),
            query("5", &"x".repeat(513)),
        ];
        let ratings = [
            rating("1", SearchRatingValue::Down),
            rating("2", SearchRatingValue::Up),
            rating("2", SearchRatingValue::Down),
            rating("9", SearchRatingValue::Down),
        ];
        let asked = queries(&recorded, &ratings);
        let figures =
            |query: &PreviewQuery| (query.search_count, query.rated_up_count, query.rated_down_count);
        assert_eq!(asked.len(), 2);
        assert_eq!((&*asked[0].text, figures(&asked[0])), ("Set up a CSA", (2, 1, 2)));
        assert_eq!((&*asked[1].text, figures(&asked[1])), ("wind down", (1, 0, 0)));
    }
    #[test]
    fn judged_queries_come_first_and_keep_what_was_recorded() {
        let query = |text: &str, searches: i64| PreviewQuery {
            text: text.into(),
            search_count: searches,
            ..PreviewQuery::default()
        };
        let recorded = vec![query("wind down", 9), query("Set up a CSA", 2)];
        let judged = [
            ("set up a csa", "create_csa"),
            ("new", "a"),
            ("Set up  a CSA", "create_isda"),
        ];
        let judged = judged.map(|(text, choice)| (text.to_owned(), choice.to_owned()));
        let asked = with_judged(recorded, judged.into());
        let figures: Vec<_> = asked
            .iter()
            .map(|query| {
                let right = query.right_choices.join(" ");
                format!("{}: {} {right}", query.text, query.search_count)
            })
            .collect();
        assert_eq!(
            figures,
            [
                "Set up a CSA: 2 create_csa create_isda",
                "new: 0 a",
                "wind down: 9 "
            ]
        );
        let many = (0..MOST + 5)
            .map(|number| query(&format!("q {number}"), 1))
            .collect();
        assert_eq!(with_judged(many, vec![("q 3".into(), "a".into())]).len(), MOST);
    }
}
