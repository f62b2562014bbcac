//! Single queries: what is measured of each, before and after.

use serde_json::{Value, json};

use crate::output::{Column, Table};
use emend_lab::evaluate::report::{OfQuery, Report};

/// A row for each query: those that changed first, the most changed before the others; of one run the worst first.
pub(super) fn table(report: &Report) -> Table {
    let names: Vec<String> = names(report).map(str::to_uppercase).collect();
    let heading = |place: usize| (names.get(place).map_or("", |name| &**name), Column::Fixed);
    let columns = [
        ("QUERY", Column::Text),
        heading(0),
        heading(1),
        heading(2),
        heading(3),
    ];
    Table::new(columns).with_rows(&sorted(report), |query| {
        let cell = |place: usize| {
            query
                .measures
                .get(place)
                .map_or_else(String::new, |measure| shown(*measure))
        };
        [query.text.clone(), cell(0), cell(1), cell(2), cell(3)]
    })
}

/// The same for programs.
pub(super) fn json(report: &Report) -> Value {
    let query = |query: &&OfQuery| {
        let measures = names(report).zip(&query.measures);
        let measures =
            measures.map(|(name, (before, after))| json!({"name": name, "before": before, "after": after}));
        json!({
            "queryId": query.id,
            "query": query.text,
            "queryType": query.query_type,
            "measures": measures.collect::<Value>(),
        })
    };
    sorted(report).iter().map(query).collect()
}

fn names(report: &Report) -> impl Iterator<Item = &str> {
    let measures = report.groups.first().map_or(&[][..], |all| &all.measures);
    measures.iter().map(|measure| &*measure.name)
}

fn sorted(report: &Report) -> Vec<&OfQuery> {
    let mut each: Vec<&OfQuery> = report.each.iter().collect();
    let measured = |query: &OfQuery| query.measures.iter().map(|(before, _)| before).sum::<f64>();
    // Sorting is stable: equal ones stay in the order of their ids.
    each.sort_by(|one, other| {
        let by_change = other.change().total_cmp(&one.change());
        by_change.then_with(|| measured(one).total_cmp(&measured(other)))
    });
    each
}

/// A value, or what became of it.
fn shown((before, after): (f64, Option<f64>)) -> String {
    match after {
        Some(after) if after.total_cmp(&before).is_ne() => format!("{before:.3} → {after:.3}"),
        _ => format!("{before:.3}"),
    }
}
