//! Ratings one by one, by target, value and day.

use askama::Template;
use emend_core::{Kind, RatingClass, ratings::TARGETS};
use emend_proto::{
    common::v1::{Rating, correction::Correction as Variant},
    feedback::v1::{Feedback, ListFeedbackRequest},
};
use http::StatusCode;

use super::{choices, names, own, tabs};
use crate::{
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::{Choice, links, tabs::Tab},
    text::{Moment, moment},
};

const PAGE: i32 = 30;

/// The page.
#[derive(Debug, Template)]
#[template(path = "ratings.html")]
struct Ratings {
    page: Page,
    tabs: Vec<Tab>,
    targets: Vec<Choice>,
    values: Vec<Choice>,
    day: String,
    zone: String,
    rows: Vec<Row>,
    first: Option<String>,
    next: Option<String>,
    is_filtered: bool,
}

/// A rating.
#[derive(Debug)]
struct Row {
    rating: Rating,
    value: String,
    class: &'static str,
    reason: String,
    who: String,
    state: &'static str,
    at: Moment,
}

fn row(visitor: &Visitor, feedback: Feedback) -> Option<Row> {
    let Some(Variant::Rating(rating)) = feedback.correction?.correction else {
        return None;
    };
    let class = RatingClass::from_number(rating.counts_as);
    let state = if feedback.redacted_at.is_some() {
        visitor.t("redacted", "削除済み")
    } else if feedback.retracted_at.is_some() {
        visitor.t("retracted", "撤回")
    } else {
        ""
    };
    let reporter = feedback.reporter.unwrap_or_default().id;
    Some(Row {
        class: match class {
            Some(RatingClass::Good) => "good",
            Some(RatingClass::Bad) => "bad",
            Some(RatingClass::Neutral) | None => "",
        },
        value: visitor.language.rating(&rating.value),
        rating,
        reason: feedback.reason,
        who: if reporter.is_empty() {
            feedback.caller
        } else {
            reporter
        },
        state,
        at: moment(feedback.received_at.as_ref()),
    })
}

/// The values that a rating of the target may have; none where it is not known.
async fn values(visitor: &Visitor, target: &str) -> Vec<String> {
    if let Some(target) = TARGETS.iter().find(|known| known.name == target) {
        return target.values.iter().map(|value| value.name.to_owned()).collect();
    }
    let own = own(visitor).await.into_iter().find(|own| own.name == target);
    let values = own.map(|own| own.values).unwrap_or_default();
    values.into_iter().map(|value| value.name).collect()
}

/// Lists ratings.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let (target, day) = (fields.get("target"), fields.get("day"));
    let values = values(visitor, target).await;
    // A value that the chosen target does not have is of another target that was chosen before.
    let value = values.iter().find(|value| *value == fields.get("value"));
    let value = value.cloned().unwrap_or_default();
    let request = ListFeedbackRequest {
        namespace: visitor.namespace.clone(),
        kind: Kind::FewShotSet.number(),
        rating_target: target.to_owned(),
        rating_value: value.clone(),
        day: day.to_owned(),
        time_zone: if day.is_empty() {
            String::new()
        } else {
            fields.get("zone").to_owned()
        },
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
        ..ListFeedbackRequest::default()
    };
    let mut feedback = visitor.services.feedback();
    let answer = feedback.list_feedback(visitor.services.call(request)).await?;
    let answer = answer.into_inner();
    let address = visitor.within(Part::Outputs, &["ratings"], &Fields::default());
    let kept = fields.with("value", &value);
    let (first, next) = links(&address, &kept, &answer.next_page_token);
    let rows = answer.feedback.into_iter();
    let shown = Ratings {
        tabs: tabs(visitor, "ratings"),
        targets: choices(&names(visitor).await?, target),
        values: choices(&values, &value)
            .into_iter()
            .map(|choice| Choice {
                label: visitor.language.rating(&choice.value),
                ..choice
            })
            .collect(),
        day: day.to_owned(),
        zone: fields.get("zone").to_owned(),
        rows: rows.filter_map(|feedback| row(visitor, feedback)).collect(),
        first,
        next,
        is_filtered: !target.is_empty() || !day.is_empty(),
        page: visitor.page(Part::Outputs, visitor.t("Ratings", "評価一覧"), fields),
    };
    Ok(html(StatusCode::OK, &shown))
}
