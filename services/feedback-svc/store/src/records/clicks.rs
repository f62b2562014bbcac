//! What was clicked of a rated query: kept with the rating's copy of the query, because interactions are forgotten.

use emend_proto::feedback::v1::{Query, QueryInteraction};

/// Clicked results that are kept of a query. Its best results are judged by their clicks, so those are kept beyond it.
const MAX_CLICKS: usize = 100;

/// Adds a click to a copy of its query, unless the result was clicked before or there are too many. Returns whether the copy
/// changed.
pub fn add(query: &mut Query, click: QueryInteraction) -> bool {
    let mut clicks = query.interactions.iter_mut();
    if let Some(known) = clicks.find(|known| known.object_id == click.object_id) {
        let at = |click: &QueryInteraction| click.acted_at.map(|at| (at.seconds, at.nanos));
        let is_earlier = at(&click) < at(known);
        if is_earlier {
            *known = click;
        }
        return is_earlier;
    }
    let is_judged = || {
        let mut results = query.top_results.iter();
        results.any(|result| result.object_id == click.object_id)
    };
    if query.interactions.len() >= MAX_CLICKS && !is_judged() {
        return false;
    }
    query.interactions.push(click);
    true
}

#[cfg(test)]
mod tests {
    use emend_proto::feedback::v1::QueryResult;
    use emend_wire::render::timestamp;
    use jiff::Timestamp;

    use super::*;

    fn click(object_id: &str) -> QueryInteraction {
        QueryInteraction {
            object_id: object_id.into(),
            ..QueryInteraction::default()
        }
    }

    #[test]
    fn of_two_clicks_on_a_result_the_earlier_is_kept() {
        let at = |seconds| QueryInteraction {
            acted_at: Some(timestamp(Timestamp::from_second(seconds).unwrap())),
            ..click("a")
        };
        let mut query = Query::default();
        let added = [at(5), at(7), at(2), at(2)].map(|click| add(&mut query, click));
        assert_eq!(added, [true, false, true, false]);
        assert_eq!(query.interactions, [at(2)]);
    }

    #[test]
    fn each_result_is_kept_once_up_to_a_bound_that_the_best_results_are_not_under() {
        let best = QueryResult {
            object_id: "best".into(),
            ..QueryResult::default()
        };
        let mut query = Query {
            top_results: vec![best],
            ..Query::default()
        };
        for number in 0..MAX_CLICKS {
            assert!(add(&mut query, click(&number.to_string())));
        }
        assert!(!add(&mut query, click("7")));
        assert!(!add(&mut query, click("one more")));
        assert!(add(&mut query, click("best")));
        assert!(!add(&mut query, click("best")));
        assert_eq!(query.interactions.len(), MAX_CLICKS + 1);
    }
}
