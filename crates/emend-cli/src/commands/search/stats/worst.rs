//! What most people rated down, as a table.

use emend_proto::feedback::v1::WorstQueries;

use crate::output::{Column, Table};

/// The table, and what it leaves out; nothing where nobody rated anything down.
pub(super) fn text(worst: &WorstQueries, width: usize) -> Option<String> {
    if worst.queries.is_empty() {
        return None;
    }
    let mut table = Table::new([
        ("RATED DOWN", Column::Text),
        ("TYPE", Column::Text),
        ("PEOPLE", Column::Number),
    ]);
    for query in &worst.queries {
        let text = if query.query_text.is_empty() {
            &query.query_id
        } else {
            &query.query_text
        };
        table.row([
            text.clone(),
            query.query_type.clone(),
            query.person_count.to_string(),
        ]);
    }
    let text = table.render(width);
    Some(match worst.left_out_query_count {
        0 => text,
        1 => format!("{}\n1 more query is not listed.", text.trim_end()),
        count => format!("{}\n{count} more queries are not listed.", text.trim_end()),
    })
}

#[cfg(test)]
mod tests {
    use emend_proto::feedback::v1::WorstQuery;

    use super::*;

    #[test]
    fn queries_are_listed_with_how_many_people_rated_them_down() {
        let query = |text: &str, people| WorstQuery {
            query_text: text.into(),
            query_id: "q-1".into(),
            query_type: "HYBRID".into(),
            person_count: people,
            ..WorstQuery::default()
        };
        let mut worst = WorstQueries {
            queries: vec![query("returns", 3), query("", 1)],
            left_out_query_count: 2,
        };
        let text = text(&worst, 80).unwrap();
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines[1..],
            [
                "returns HYBRID 3",
                "q-1 HYBRID 1",
                "2 more queries are not listed."
            ]
        );
        worst.left_out_query_count = 1;
        let text = super::text(&worst, 80).unwrap();
        assert!(text.ends_with("\n1 more query is not listed."), "{text}");
        assert_eq!(super::text(&WorstQueries::default(), 80), None);
    }
}
