//! The pages, a module for each part of the console.

pub(crate) mod chart;
pub(crate) mod correction;
pub(crate) mod evidence;
pub(crate) mod fleet;
pub(crate) mod learned;
pub(crate) mod log;
pub(crate) mod mine;
pub(crate) mod outputs;
pub(crate) mod policies;
pub(crate) mod rate;
pub(crate) mod resume;
pub(crate) mod review;
pub(crate) mod search;
pub(crate) mod tabs;
pub(crate) mod today;

use emend_core::Kind;

use crate::{
    form::Fields,
    page::{Page, TOLD},
};

/// A choice of a list.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    /// What is sent.
    pub value: String,
    /// What it says.
    pub label: String,
    /// Whether it is chosen.
    pub is_chosen: bool,
}

/// All kinds that people review and look up, as choices; those in `chosen` are.
fn kinds(page: &Page, chosen: &[i32]) -> Vec<Choice> {
    Kind::ALL
        .into_iter()
        .filter(|kind| *kind != Kind::Profile)
        .map(|kind| Choice {
            value: kind.name().to_owned(),
            label: page.language.kind(kind.number()),
            is_chosen: chosen.contains(&kind.number()),
        })
        .collect()
}

/// The numbers of the kinds that these names name; unknown names are left out.
fn kind_numbers(fields: &Fields) -> Vec<i32> {
    let names = fields.filled("kind");
    Kind::ALL
        .into_iter()
        .filter(|kind| names.iter().any(|name| name == kind.name()))
        .map(Kind::number)
        .collect()
}

/// The links to the first and the next page of a list, by its fields and the token of the next one.
fn links(address: &str, fields: &Fields, next: &str) -> (Option<String>, Option<String>) {
    let fields = fields.without(&TOLD);
    let first = fields
        .has("page")
        .then(|| format!("{address}{}", fields.without(&["page"]).query()));
    let next = (!next.is_empty()).then(|| format!("{address}{}", fields.with("page", next).query()));
    (first, next)
}
