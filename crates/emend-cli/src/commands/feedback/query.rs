//! What is known of a rated query, as lines of text.

use std::fmt::Write as _;

use emend_core::search::is_click;
use emend_proto::feedback::v1::Query;

use crate::view;

/// A line for each thing that is known.
pub(super) fn lines(query: &Query) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            // Writing to a String can't fail.
            let _ = writeln!(text, "  {name:<14} {value}");
        }
    };
    line("text", &query.query_text);
    line("answer", &query.answer_text);
    line("classification", &query.classification);
    line("namespaces", &query.namespaces.join(", "));
    if let Some(score) = query.min_score {
        line("min_score", &score.to_string());
    }
    let hits = query.hit_count.map(|hits| hits.to_string());
    line("hits", hits.as_deref().unwrap_or("unknown"));
    for result in &query.top_results {
        let clicked = query
            .interactions
            .iter()
            .any(|action| action.object_id == result.object_id && is_click(&action.action));
        let mark = if clicked { ", clicked" } else { "" };
        line("result", &format!("{} ({:.3}{mark})", result.title, result.score));
    }
    line("embedding", &query.embedding_version);
    line("index", &query.index_version);
    line("client", &query.client_version);
    line("build", &query.build);
    line("variant", &query.variant);
    line("session", &query.session_id);
    if query.searched_at.is_some() {
        line("searched", &view::short_time(query.searched_at.as_ref()));
    }
    text
}

#[cfg(test)]
mod tests {
    use emend_proto::feedback::v1::{QueryInteraction, QueryResult};

    use super::*;

    #[test]
    fn all_that_was_recorded_of_the_query_is_shown() {
        let result = |id: &str, score| QueryResult {
            title: format!("Card {id}"),
            score,
            object_id: id.into(),
        };
        let query = Query {
            query_text: "draw".into(),
            answer_text: "Nothing, sorry".into(),
            classification: "an effect".into(),
            namespaces: ["effects", "combined"].map(str::to_owned).into(),
            min_score: Some(0.4),
            hit_count: Some(2),
            top_results: vec![result("a", 0.75), result("b", 0.5)],
            embedding_version: "e5".into(),
            index_version: "7".into(),
            client_version: "web/4.2".into(),
            build: "b17".into(),
            variant: "A".into(),
            session_id: "s-1".into(),
            interactions: vec![QueryInteraction {
                object_id: "b".into(),
                action: "click".into(),
                ..QueryInteraction::default()
            }],
            ..Query::default()
        };
        let expected = "  text           draw
  answer         Nothing, sorry
  classification an effect
  namespaces     effects, combined
  min_score      0.4
  hits           2
  result         Card a (0.750)
  result         Card b (0.500, clicked)
  embedding      e5
  index          7
  client         web/4.2
  build          b17
  variant        A
  session        s-1
";
        assert_eq!(lines(&query), expected);
        assert_eq!(lines(&Query::default()), "  hits           unknown\n");
    }
}
