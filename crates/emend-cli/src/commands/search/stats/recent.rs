//! What was searched most, and how often results were clicked, as a table.

use emend_proto::feedback::v1::{ClickThrough, RecentSearches};

use super::{interval, percent};
use crate::output::{Column, Table, counted};

/// The table, and what it leaves out; nothing where no query is kept.
pub(super) fn text(recent: &RecentSearches, width: usize) -> Option<String> {
    let all = recent.all.as_ref().filter(|all| all.search_count > 0)?;
    let mut table = Table::new([
        ("QUERY", Column::Text),
        ("VARIANT", Column::Text),
        ("SEARCHES", Column::Number),
        ("CLICKED", Column::Number),
        ("SHARE", Column::Number),
        ("95 %", Column::Fixed),
        ("NO HITS", Column::Number),
    ]);
    rows(&mut table, "(all)", all, &recent.variants);
    for query in &recent.top_queries {
        if let Some(all) = &query.all {
            rows(&mut table, &query.query_text, all, &query.variants);
        }
    }
    let mut text = table.render(width);
    for (count, one, many) in [
        (recent.left_out_query_count, "query", "queries"),
        (recent.left_out_variant_count, "variant", "variants"),
    ] {
        if count > 0 {
            let more = counted(count, &format!("more {one}"), &format!("more {many}"));
            text = format!("{}\nNot listed: {more} with fewer searches.", text.trim_end());
        }
    }
    Some(text)
}

/// A row for all, and where there are several variants, one for each.
fn rows(table: &mut Table, query: &str, all: &ClickThrough, variants: &[ClickThrough]) {
    let mut row = |query: &str, variant: &str, counted: &ClickThrough| {
        table.row([
            query.to_owned(),
            variant.to_owned(),
            counted.search_count.to_string(),
            counted.clicked_count.to_string(),
            counted.click_through.map(percent).unwrap_or_default(),
            interval(counted.click_through_low, counted.click_through_high),
            counted.zero_hit_count.to_string(),
        ]);
    };
    if let [only] = variants {
        row(query, &only.variant, all);
        return;
    }
    row(query, "", all);
    for counted in variants {
        let name = if counted.variant.is_empty() {
            "–"
        } else {
            &counted.variant
        };
        row("", name, counted);
    }
}

#[cfg(test)]
mod tests {
    use emend_proto::feedback::v1::TopQuery;

    use super::*;

    fn counted(variant: &str, searches: i64, clicked: i64) -> ClickThrough {
        ClickThrough {
            variant: variant.into(),
            search_count: searches,
            clicked_count: clicked,
            click_through: Some(0.5),
            click_through_low: Some(0.25),
            click_through_high: Some(0.75),
            zero_hit_count: 1,
            ..ClickThrough::default()
        }
    }

    #[test]
    fn queries_are_listed_with_their_clicks_and_by_variant_where_there_are_several() {
        let recent = RecentSearches {
            all: Some(counted("", 20, 10)),
            variants: vec![counted("A", 15, 8), counted("", 5, 2)],
            top_queries: vec![
                TopQuery {
                    query_text: "draw cards that return to the hand of the one who played them".into(),
                    all: Some(counted("", 12, 6)),
                    variants: vec![counted("A", 8, 5), counted("", 4, 1)],
                },
                TopQuery {
                    query_text: "ward".into(),
                    all: Some(counted("", 3, 1)),
                    variants: vec![counted("A", 3, 1)],
                },
            ],
            left_out_query_count: 7,
            left_out_variant_count: 0,
        };
        let text = text(&recent, 80).unwrap();
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert!(
            lines.contains(&"(all) 20 10 50.0 % 25.0 to 75.0 % 1".to_owned()),
            "{text}"
        );
        assert!(
            lines.contains(&"– 4 1 50.0 % 25.0 to 75.0 % 1".to_owned()),
            "{text}"
        );
        assert!(
            lines.contains(&"ward A 3 1 50.0 % 25.0 to 75.0 % 1".to_owned()),
            "{text}"
        );
        assert!(
            text.ends_with("\nNot listed: 7 more queries with fewer searches."),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(super::text(&RecentSearches::default(), 80), None);
    }
}
