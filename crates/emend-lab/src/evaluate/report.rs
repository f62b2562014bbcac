//! The measures of one or two runs, over all queries and by query type.

use std::collections::BTreeMap;

use emend_core::search::{mean, ndcg, paired_randomisation, precision, recall, reciprocal_rank};

use super::{Queries, Query, runs::Run};

/// A measure of one query.
type Of = fn(&Query, &[String], usize) -> Option<f64>;

/// The measures; `None` of a query of which nothing is relevant.
const MEASURES: [(&str, Of); 4] = [
    ("precision", |query, ranked, k| {
        (query.judged.relevant() > 0).then(|| precision(&query.judged, ranked, k))
    }),
    ("recall", |query, ranked, k| recall(&query.judged, ranked, k)),
    ("mrr", |query, ranked, _| {
        (query.judged.relevant() > 0).then(|| reciprocal_rank(&query.judged, ranked))
    }),
    ("ndcg", |query, ranked, k| ndcg(&query.judged, ranked, k)),
];

/// The measures of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// How many results of a query count.
    pub k: usize,
    /// Queries of which nothing is relevant; they are left out.
    pub without_relevant: usize,
    /// Over all queries first, then by query type, if there is more than one.
    pub groups: Vec<Group>,
    /// Each query that counts.
    pub each: Vec<OfQuery>,
}

impl Report {
    /// How many queries differ in a measure between the two runs; `None` of one run.
    pub fn changed(&self) -> Option<usize> {
        let is_compared = self
            .groups
            .iter()
            .any(|group| group.measures.iter().any(|measure| measure.after.is_some()));
        is_compared.then(|| self.each.iter().filter(|query| query.is_changed()).count())
    }
}

/// The measures of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct OfQuery {
    /// Its id.
    pub id: String,
    /// What was searched for.
    pub text: String,
    /// Its type; empty if nobody says.
    pub query_type: String,
    /// Each measure of the first run, and of the second if there is one, in the order of a group's.
    pub measures: Vec<(f64, Option<f64>)>,
}

impl OfQuery {
    /// Whether a measure differs.
    pub fn is_changed(&self) -> bool {
        self.change() > 0.0
    }

    /// How far the measures are apart, all together.
    pub fn change(&self) -> f64 {
        let apart = |(before, after): &(f64, Option<f64>)| after.map_or(0.0, |after| (after - before).abs());
        self.measures.iter().map(apart).sum()
    }
}

/// The measures over some queries.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The query type; empty for all queries.
    pub query_type: String,
    /// How many queries.
    pub queries: usize,
    /// Means, in a fixed order.
    pub measures: Vec<Measure>,
}

/// The mean of one measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// Its name: precision@10, recall@10, mrr, ndcg@10.
    pub name: String,
    /// Of the first run, 0.0 to 1.0.
    pub before: f64,
    /// Of the second run, with the p-value of the two being equally good.
    pub after: Option<(f64, f64)>,
}

/// Measures runs against judgements. A query that a run does not have found nothing in it.
pub fn measure(queries: &Queries, before: &Run, after: Option<&Run>, k: usize) -> Report {
    let relevant: Vec<(&str, &Query)> = queries
        .iter()
        .filter(|(_, query)| query.judged.relevant() > 0)
        .map(|(id, query)| (&**id, query))
        .collect();
    let mut by_type: BTreeMap<&str, Vec<(&str, &Query)>> = BTreeMap::new();
    for (id, query) in &relevant {
        by_type.entry(&query.query_type).or_default().push((id, query));
    }
    let group = |query_type: &str, queries: &[(&str, &Query)]| Group {
        query_type: query_type.to_owned(),
        queries: queries.len(),
        measures: measures(queries, before, after, k),
    };
    let mut groups = vec![group("", &relevant)];
    if by_type.len() > 1 {
        let name = |query_type: &str| {
            if query_type.is_empty() {
                "no type"
            } else {
                query_type
            }
            .to_owned()
        };
        groups.extend(
            by_type
                .iter()
                .map(|(query_type, queries)| group(&name(query_type), queries)),
        );
    }
    Report {
        k,
        without_relevant: queries.len() - relevant.len(),
        groups,
        each: relevant
            .iter()
            .map(|query| of_query(query, before, after, k))
            .collect(),
    }
}

fn of_query((id, query): &(&str, &Query), before: &Run, after: Option<&Run>, k: usize) -> OfQuery {
    let value = |measure: Of, run: &Run| {
        let ranked = run.get(*id).map_or(&[][..], Vec::as_slice);
        // An empty list of results has a gain of -0.0, which people should not see.
        measure(query, ranked, k).unwrap_or_default() + 0.0
    };
    let measures = MEASURES
        .iter()
        .map(|(_, measure)| (value(*measure, before), after.map(|run| value(*measure, run))));
    OfQuery {
        id: (*id).to_owned(),
        text: query.text(id).to_owned(),
        query_type: query.query_type.clone(),
        measures: measures.collect(),
    }
}

fn measures(queries: &[(&str, &Query)], before: &Run, after: Option<&Run>, k: usize) -> Vec<Measure> {
    let named = |name: &str| match name {
        "mrr" => name.to_owned(),
        name => format!("{name}@{k}"),
    };
    let values = |measure: Of, run: &Run| -> Vec<f64> {
        let value = |(id, query): &(&str, &Query)| {
            let ranked = run.get(*id).map_or(&[][..], Vec::as_slice);
            measure(query, ranked, k)
        };
        queries.iter().filter_map(value).collect()
    };
    MEASURES
        .iter()
        .map(|(name, measure)| {
            let first = values(*measure, before);
            let after = after.map(|run| {
                let second = values(*measure, run);
                let pairs: Vec<(f64, f64)> = first.iter().copied().zip(second.iter().copied()).collect();
                let p = paired_randomisation(&pairs).unwrap_or(1.0);
                (mean_of(&second), p)
            });
            Measure {
                name: named(name),
                before: mean_of(&first),
                after,
            }
        })
        .collect()
}

/// The mean; of nothing it is 0. An empty list of results has a gain of -0.0, which people should not see.
fn mean_of(values: &[f64]) -> f64 {
    mean(values).unwrap_or_default() + 0.0
}

#[cfg(test)]
mod tests {
    use emend_core::search::Judged;

    use super::{super::runs::parse as run, *};

    fn judged(id: &str, query_type: &str, grades: &[(&str, u32)]) -> (String, Query) {
        let grades: BTreeMap<String, u32> =
            grades.iter().map(|&(id, grade)| (id.to_owned(), grade)).collect();
        let query = Query {
            query_type: query_type.to_owned(),
            judged: Judged::new(grades),
            ..Query::default()
        };
        (id.to_owned(), query)
    }

    #[test]
    fn runs_are_compared_over_all_queries_and_by_type() {
        let queries = Queries::from([
            judged("q1", "HYBRID", &[("a", 1)]),
            judged("q2", "SEMANTIC", &[("b", 2), ("c", 1)]),
            judged("q3", "", &[("d", 0)]),
        ]);
        let before = run("q2 Q0 x 1 2.0 t\nq2 Q0 b 2 1.0 t").unwrap();
        let after = run("q1 Q0 a 1 1.0 t\nq2 Q0 b 1 2.0 t\nq2 Q0 c 2 1.0 t").unwrap();
        let report = measure(&queries, &before, Some(&after), 2);
        assert_eq!(report.without_relevant, 1);
        let groups: Vec<_> = report
            .groups
            .iter()
            .map(|group| (&*group.query_type, group.queries))
            .collect();
        assert_eq!(groups, [("", 2), ("HYBRID", 1), ("SEMANTIC", 1)]);
        assert_eq!(report.changed(), Some(2));
        let each: Vec<_> = report
            .each
            .iter()
            .map(|query| (&*query.id, query.measures[2]))
            .collect();
        assert_eq!(each, [("q1", (0.0, Some(1.0))), ("q2", (0.5, Some(1.0)))]);
        let all: Vec<_> = report.groups[0]
            .measures
            .iter()
            .map(|measure| (&*measure.name, measure.before, measure.after.unwrap().0))
            .collect();
        let ndcg = 2.0 / 3f64.log2() / (2.0 + 1.0 / 3f64.log2()) / 2.0;
        let expected = [
            ("precision@2", 0.25, 0.75),
            ("recall@2", 0.25, 1.0),
            ("mrr", 0.25, 1.0),
            ("ndcg@2", ndcg, 1.0),
        ];
        for ((name, before, after), expected) in all.iter().zip(expected) {
            assert_eq!(*name, expected.0);
            assert!(
                (before - expected.1).abs() < 1e-9 && (after - expected.2).abs() < 1e-9,
                "{all:?}"
            );
        }
        // Of two pairs that both differ, two of four exchanges are as far apart.
        assert!((report.groups[0].measures[2].after.unwrap().1 - 0.5).abs() < 1e-9);
        let nothing = measure(&queries, &Run::new(), None, 2);
        for measure in &nothing.groups[0].measures {
            assert_eq!(
                (format!("{:.1}", measure.before), measure.after),
                ("0.0".to_owned(), None)
            );
        }
    }
}
