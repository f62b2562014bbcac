//! What an AI makes, as people rate it: targets, improvements of their prompts, ratings, and profiles.

pub(crate) mod improvements;
pub(crate) mod profiles;
pub(crate) mod ratings;
mod target;
mod targets;

use askama::Template;
use emend_proto::learning::v1::{GenerateImprovementRequest, GetOutputStatsResponse};
use http::StatusCode;

use self::targets::Target;
pub(crate) use self::{
    target::{put, show as target},
    targets::{names, own},
};
use crate::{
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::{Choice, chart::Shares, tabs::Tab},
    told::Told,
};

/// The page of all targets.
#[derive(Debug, Template)]
#[template(path = "outputs.html")]
struct Outputs {
    page: Page,
    tabs: Vec<Tab>,
    rows: Vec<Row>,
    may_generate: bool,
}

/// A target.
#[derive(Debug)]
struct Row {
    name: String,
    href: String,
    shares: Shares,
    since_current: Shares,
    current: i32,
    state: State,
}

/// Whether a better prompt can be generated, and why not.
#[derive(Debug)]
struct State {
    can_generate: bool,
    /// In words; empty if it can.
    why: String,
    /// Where what is missing can be done; empty if nowhere.
    href: String,
    bad_since: i64,
}

/// The tabs of all pages of outputs that the visitor may see.
fn tabs(visitor: &Visitor, current: &str) -> Vec<Tab> {
    let tab = |path, label| Tab::of(visitor, Part::Outputs, path, label, current);
    let mut tabs = vec![
        tab("", ("Statistics", "統計")),
        tab("pending", ("Awaiting review", "レビュー待ち")),
        tab("history", ("History", "履歴")),
    ];
    if visitor.may("feedback.v1.FeedbackService/ListFeedback") {
        tabs.push(tab("ratings", ("Ratings", "評価一覧")));
    }
    if visitor
        .access
        .may_for_users("learning.v1.ProfileService/GetProfile")
    {
        tabs.push(tab("profiles", ("Profiles", "プロフィール")));
    }
    tabs
}

/// The address of a target's page.
fn address(visitor: &Visitor, name: &str) -> String {
    visitor.within(
        Part::Outputs,
        &["target"],
        &Fields::default().with("target", name),
    )
}

fn state(visitor: &Visitor, name: &str, stats: &GetOutputStatsResponse) -> State {
    let missing = stats.bad_missing;
    let (why, href) = match &*stats.cannot_reason {
        "" => (String::new(), String::new()),
        "TOO_FEW_RATINGS" => {
            let why = match visitor.language {
                crate::text::Language::English => format!("{missing} more bad ratings are needed"),
                crate::text::Language::Japanese => format!("悪い評価があと {missing} 件必要です"),
            };
            (why, String::new())
        }
        "NO_PROMPT" => (
            visitor.t("no prompt is set", "プロンプトが未設定です").to_owned(),
            format!("{}#prompt", address(visitor, name)),
        ),
        "IMPROVEMENT_OPEN" => (
            visitor
                .t(
                    "an improvement awaits your decision",
                    "承認待ちの改善案があります",
                )
                .to_owned(),
            visitor.within(Part::Outputs, &["pending"], &Fields::default()),
        ),
        other => (other.to_owned(), String::new()),
    };
    State {
        can_generate: stats.can_generate,
        why,
        href,
        bad_since: stats.bad_since_proposal,
    }
}

/// Lists all targets with their ratings.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let mut targets = targets::all(visitor).await?;
    // What was rated stands first.
    targets.sort_by_key(|target| target.shares().total() == 0);
    let row = |target: Target| Row {
        href: address(visitor, &target.name),
        shares: target.shares(),
        since_current: target.since_current(),
        current: target.stats.current_version,
        state: state(visitor, &target.name, &target.stats),
        name: target.name,
    };
    let shown = Outputs {
        tabs: tabs(visitor, ""),
        rows: targets.into_iter().map(row).collect(),
        may_generate: visitor.may("learning.v1.OutputService/GenerateImprovement"),
        page: visitor.page(Part::Outputs, visitor.t("Outputs", "AI出力"), fields),
    };
    Ok(html(StatusCode::OK, &shown))
}

/// Generates a better prompt, which then awaits review.
pub(crate) async fn generate(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = GenerateImprovementRequest {
        namespace: visitor.namespace.clone(),
        target: fields.get("target").to_owned(),
        label: fields.get("label").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut outputs = visitor.services.outputs();
    outputs
        .generate_improvement(visitor.services.model_call(request))
        .await?;
    let told = Told::new("generated").of(fields.get("target"));
    visitor.go(&visitor.within(Part::Outputs, &["pending"], &visitor.telling(told)))
}

/// These names as choices.
fn choices(names: &[String], chosen: &str) -> Vec<Choice> {
    let names = names.iter();
    names
        .map(|name| Choice {
            value: name.clone(),
            label: name.clone(),
            is_chosen: name == chosen,
        })
        .collect()
}
