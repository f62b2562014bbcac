//! How good searches are: shares of negative ratings, the queue of what was rated down, queries, words that stand out, synonyms; and
//! what decides it: a query tried out, how each type is searched, what is kept.

mod period;
mod queries;
mod ratings;
mod settings;
mod statistics;
mod tried;
mod tuning;
mod words;

pub(crate) use self::{
    queries::show as show_queries,
    ratings::{label, show as show_queue},
    settings::{show as show_settings, update as update_settings},
    statistics::show,
    tried::show as show_tried,
    tuning::{delete as delete_tuning, set as set_tuning, show as show_tuning},
    words::{add_synonym, approve_rewrite, show as show_words},
};
use crate::{
    page::{Part, Visitor},
    pages::tabs::Tab,
};

/// The tabs of the part.
fn tabs(visitor: &Visitor, current: &str) -> Vec<Tab> {
    let may_list = visitor.may("learning.v1.ResourceService/ListResources");
    let may_read_settings = visitor.may("feedback.v1.SettingsService/GetSettings");
    [
        ("", ("Statistics", "統計"), true),
        ("queue", ("Rated down", "低評価"), true),
        ("queries", ("Queries", "クエリ"), true),
        ("words", ("Words and synonyms", "語と同義語"), true),
        ("try", ("Try a query", "クエリを試す"), may_list),
        ("tuning", ("Tuning", "検索設定"), may_list),
        ("settings", ("What is kept", "保持設定"), may_read_settings),
    ]
    .into_iter()
    .filter(|(.., may)| *may)
    .map(|(path, label, _)| Tab::of(visitor, Part::Search, path, label, current))
    .collect()
}

/// A share in per cent; a dash where there is none.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}
