//! A preview of a tuning, as people and programs read it.

use std::fmt::Write as _;

use emend_lab::evaluate::{Queries, report::Report};
use serde_json::{Value, json};

use super::{
    Foreseen, Found, Plans, Results,
    outlook::{Change, Outlook, Search},
};
use crate::{
    commands::search::evaluate::{to_json, to_text},
    failure::Result,
    output::{Column, Output, Table},
    view,
};

/// The most queries that people are shown; programs get all.
const MAX_ROWS: usize = 40;

/// What is previewed.
pub(super) struct Shown<'a> {
    pub(super) query_type: &'a str,
    pub(super) plans: &'a Plans,
    pub(super) queries: &'a Queries,
}

impl Shown<'_> {
    /// The searches of both tunings, and why nothing more is told.
    pub(super) fn nothing(&self, why: &str, output: &mut Output<'_>) -> Result {
        let steps = self.steps().render(output.width());
        output.line(&format!("{steps}\n{why}"))
    }

    /// What can be told of recorded queries; nothing if their results would have other scores.
    pub(super) fn foreseen(&self, foreseen: Option<&[Foreseen]>, output: &mut Output<'_>) -> Result {
        let Some(foreseen) = foreseen else {
            let mut json = self.json();
            json["changed"] = Value::Null;
            if output.is_json() {
                return output.result(&json, String::new);
            }
            let why = "With other weights results have other scores: only a search node tells which (--node HOST:PORT).";
            return self.nothing(why, output);
        };
        let count = |change: Change| foreseen.iter().filter(|query| query.change == change).count();
        let mut json = self.json();
        json["changed"] = foreseen.iter().map(foreseen_json).collect();
        let width = output.width();
        output.result(&json, || {
            let rows = &foreseen[..foreseen.len().min(MAX_ROWS)];
            let table = Table::new([
                ("QUERY", Column::Text),
                ("NOW", Column::Number),
                ("THEN", Column::Number),
                ("STEP", Column::Number),
                ("CHANGE", Column::Fixed),
            ])
            .with_rows(rows, |query| {
                [
                    query.text.clone(),
                    range(query.before),
                    range(query.after),
                    query.after.step.to_string(),
                    query.change.word().to_owned(),
                ]
            });
            let mut text = self.table(&table, foreseen.len(), width);
            let counts = Change::ALL.map(|change| {
                let what = match change {
                    Change::Nothing => "would find nothing",
                    Change::Fewer => "would find fewer results",
                    Change::Retry => "would find their results only in a later step",
                    Change::Unknown => "may find fewer results or none: the recordings do not tell",
                    Change::More => "may find more",
                };
                (count(change), what)
            });
            self.summary(&mut text, " recorded", &counts);
            let goes_on =
                |query: &&Foreseen| query.before.step == 1 && query.before.most > 0 && query.after.step > 1;
            match foreseen.iter().filter(goes_on).count() {
                0 => {}
                count => {
                    let _ = write!(
                        text,
                        "\n{count} would find nothing at first, and take the next steps."
                    );
                }
            }
            if count(Change::Unknown) + count(Change::More) > 0 {
                text.push_str("\nA search node knows more: --node HOST:PORT");
            }
            text
        })
    }

    /// What queries find now and then, and how good that is.
    pub(super) fn results(
        &self,
        results: &Results,
        measured: Option<&Report>,
        output: &mut Output<'_>,
    ) -> Result {
        let nothing = Found::default();
        let found = |id: &String| {
            let before = results.before.get(id).unwrap_or(&nothing);
            (before, results.after.get(id).unwrap_or(&nothing))
        };
        let all = self.queries.iter();
        let mut changed: Vec<_> = all
            .map(|(id, query)| (id, query.text(id), found(id)))
            .filter(|(_, _, (before, after))| before != after)
            .collect();
        changed.sort_by_key(|(_, _, (before, after))| Loss::of(before, after));
        let mut json = self.json();
        json["changed"] = changed
            .iter()
            .map(|(id, text, (before, after))| {
                json!({
                    "queryId": id,
                    "query": text,
                    "foundBefore": before.ids,
                    "foundAfter": after.ids,
                    "stepBefore": before.step,
                    "stepAfter": after.step,
                })
            })
            .collect();
        json["measures"] = measured.map(to_json).into();
        let width = output.width();
        output.result(&json, || {
            let rows = &changed[..changed.len().min(MAX_ROWS)];
            let table = Table::new([
                ("QUERY", Column::Text),
                ("NOW", Column::Number),
                ("THEN", Column::Number),
                ("STEP", Column::Number),
                ("LOST", Column::Text),
                ("NEW", Column::Text),
            ])
            .with_rows(rows, |(_, text, (before, after))| {
                [
                    (*text).to_owned(),
                    before.ids.len().to_string(),
                    after.ids.len().to_string(),
                    after.step.to_string(),
                    missing(&before.ids, &after.ids),
                    missing(&after.ids, &before.ids),
                ]
            });
            let mut text = self.table(&table, changed.len(), width);
            let count = |loss| {
                let is =
                    |(_, _, (before, after)): &&(_, _, (&Found, &Found))| Loss::of(before, after) == loss;
                changed.iter().filter(is).count()
            };
            let counts = [
                (count(Loss::All), "would find nothing any more"),
                (count(Loss::Some), "would lose results"),
                (count(Loss::Gain), "would find something at last"),
                (count(Loss::None), "would find more, or the same otherwise"),
            ];
            self.summary(&mut text, "", &counts);
            if let Some(measured) = measured {
                let _ = write!(text, "\n\n{}", to_text(measured, width));
            }
            text
        })
    }

    /// So many queries of this sort, of which so many would find something else.
    fn summary(&self, text: &mut String, sort: &str, counts: &[(usize, &str)]) {
        let count = self.queries.len();
        let noun = if count == 1 { "query" } else { "queries" };
        let _ = write!(text, "{count}{sort} {noun} of the type {}", self.query_type);
        if counts.iter().all(|(count, _)| *count == 0) {
            text.push_str(": nothing would change");
            return;
        }
        text.push_str(", of which");
        for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
            let _ = write!(text, "\n{count:>5} {what}");
        }
    }

    fn json(&self) -> Value {
        let Plans {
            before,
            after,
            searches_before,
            searches_after,
        } = self.plans;
        let tuning = |tuning: &emend_core::search::Tuning, searches: &[Search]| {
            let message = emend_wire::search::tuning_message(tuning);
            json!({
                "searchTuning": view::message(&message),
                "steps": searches.iter().map(step_json).collect::<Value>(),
            })
        };
        json!({
            "queryType": self.query_type,
            "before": tuning(before, searches_before),
            "after": tuning(after, searches_after),
            "queries": self.queries.len(),
        })
    }

    /// The steps of both tunings, and queries of which there are so many.
    fn table(&self, queries: &Table, count: usize, width: usize) -> String {
        let mut text = self.steps().render(width);
        text.push('\n');
        if count > 0 {
            text.push_str(&queries.render(width));
        }
        if count > MAX_ROWS {
            let _ = writeln!(text, "… and {} more; --json has all", count - MAX_ROWS);
        }
        text.push_str(if count > 0 { "\n" } else { "" });
        text
    }

    /// What is searched step by step, now and then.
    fn steps(&self) -> Table {
        let Plans {
            before,
            after,
            searches_before,
            searches_after,
        } = self.plans;
        let mut table = Table::new([
            ("STEP", Column::Fixed),
            ("NOW", Column::Text),
            ("THEN", Column::Text),
        ]);
        let cell = |searches: &[Search], at: usize| {
            let first = searches.first();
            searches
                .get(at)
                .map(|search| step_text(search, first.filter(|_| at > 0)))
                .unwrap_or_default()
        };
        for at in 0..searches_before.len().max(searches_after.len()) {
            let cells = (cell(searches_before, at), cell(searches_after, at));
            table.row([(at + 1).to_string(), cells.0, cells.1]);
        }
        let named = |named: Vec<(&str, f64)>| {
            let pairs = named.iter().map(|(name, number)| format!("{name}={number}"));
            pairs.collect::<Vec<_>>().join(" ")
        };
        for (what, before, after) in [
            (
                "weights",
                named(before.weights().collect()),
                named(after.weights().collect()),
            ),
            (
                "confidences",
                named(before.confidences().collect()),
                named(after.confidences().collect()),
            ),
        ] {
            if before != after {
                table.row([what.to_owned(), before, after]);
            }
        }
        if before.suggestion() != after.suggestion() {
            let suggestion = |text: &str| match text {
                "" => "the backend's own text".to_owned(),
                text => format!("“{text}”"),
            };
            let (before, after) = (suggestion(before.suggestion()), suggestion(after.suggestion()));
            table.row(["else".to_owned(), before, after]);
        }
        table
    }
}

/// What becomes of a query's results, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    All,
    Some,
    Gain,
    None,
}

impl Loss {
    fn of(before: &Found, after: &Found) -> Self {
        match (before.ids.is_empty(), after.ids.is_empty()) {
            (false, true) => Self::All,
            (true, false) => Self::Gain,
            _ if before.ids.iter().any(|id| !after.ids.contains(id)) => Self::Some,
            _ => Self::None,
        }
    }
}

fn missing(ids: &[String], from: &[String]) -> String {
    let missing: Vec<&str> = ids
        .iter()
        .filter(|id| !from.contains(id))
        .map(String::as_str)
        .collect();
    missing.join(", ")
}

/// At least so many results, at most so many.
fn range(outlook: Outlook) -> String {
    match (outlook.least, outlook.most) {
        (least, most) if least == most => most.to_string(),
        (least, most) => format!("{least}–{most}"),
    }
}

fn foreseen_json(query: &Foreseen) -> Value {
    let outlook =
        |outlook: Outlook| json!({"step": outlook.step, "least": outlook.least, "most": outlook.most});
    json!({
        "queryId": query.id,
        "query": query.text,
        "before": outlook(query.before),
        "after": outlook(query.after),
        "change": query.change.word(),
    })
}

fn step_json(search: &Search) -> Value {
    json!({
        "namespaces": named(search),
        "minScore": search.min_score,
        "topK": search.top_k,
        "expand": search.expand,
    })
}

/// A search in a few words; of a later one where is searched besides.
fn step_text(search: &Search, first: Option<&Search>) -> String {
    let mut text = format!("from {} top {}", search.min_score, search.top_k);
    match first {
        None => {
            let places = named(search).join(",");
            if !places.is_empty() {
                let _ = write!(text, " in {places}");
            }
        }
        Some(first) => {
            for place in search.places.difference(&first.places) {
                let _ = write!(text, " +{place}");
            }
        }
    }
    if search.expand {
        text.push_str(" +synonyms");
    }
    text
}

/// The names of where is searched, as far as they are known.
fn named(search: &Search) -> Vec<&str> {
    let names = search.places.iter().map(String::as_str);
    names.filter(|name| !name.is_empty()).collect()
}
