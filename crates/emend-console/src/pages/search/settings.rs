//! What feedback-svc keeps of this namespace and for how long, and what can be rated.

use askama::Template;
use emend_proto::feedback::v1::{
    GetSettingsRequest, RatedTarget, RatingLimits, Settings, UpdateSettingsRequest,
};
use emend_wire::rated_targets::{rated_target, written};
use http::StatusCode;
use prost_types::FieldMask;
use tonic::Status;

use super::tabs;
use crate::{
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::tabs::Tab,
    text::{Moment, moment},
    told::Told,
    typed,
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "search_settings.html")]
struct Shown {
    page: Page,
    tabs: Vec<Tab>,
    form: Form,
    version: i64,
    etag: String,
    changed: Moment,
    may_update: bool,
}

/// The settings as the fields of their form; empty: the default.
#[derive(Debug, Default, PartialEq)]
struct Form {
    personal_retention: String,
    query_retention: String,
    max_queries: String,
    per_minute: String,
    per_hour: String,
    rated_targets: String,
}

fn number(number: i32) -> String {
    if number == 0 {
        String::new()
    } else {
        number.to_string()
    }
}

impl Form {
    fn of(settings: &Settings) -> Self {
        let limits = settings.rating_limits.unwrap_or_default();
        let targets: Vec<String> = settings.rated_targets.iter().map(written).collect();
        Self {
            personal_retention: typed::span_text(settings.personal_retention.as_ref()),
            query_retention: typed::span_text(settings.query_retention.as_ref()),
            max_queries: number(settings.max_queries),
            per_minute: number(limits.per_minute),
            per_hour: number(limits.per_hour),
            rated_targets: targets.join("\n"),
        }
    }
}

/// The settings that a form says.
fn said(fields: &Fields) -> Result<Settings, Status> {
    let limits = RatingLimits {
        per_minute: typed::number_or_zero(fields, "per_minute")?,
        per_hour: typed::number_or_zero(fields, "per_hour")?,
    };
    let targets = fields.text("rated_targets").lines().map(str::trim);
    let targets: Result<Vec<RatedTarget>, String> = targets
        .filter(|line| !line.is_empty())
        .map(rated_target)
        .collect();
    Ok(Settings {
        personal_retention: typed::span(fields, "personal_retention")?,
        query_retention: typed::span(fields, "query_retention")?,
        max_queries: typed::number_or_zero(fields, "max_queries")?,
        rating_limits: (limits != RatingLimits::default()).then_some(limits),
        rated_targets: targets
            .map_err(|why| Status::from(emend_base::Error::invalid("rated_targets", why)))?,
        ..Settings::default()
    })
}

/// Shows the settings in force.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = visitor.services.call(GetSettingsRequest {
        namespace: visitor.namespace.clone(),
    });
    let answer = visitor.services.settings().get_settings(request).await?;
    let settings = answer.into_inner().settings.unwrap_or_default();
    let shown = Shown {
        tabs: tabs(visitor, "settings"),
        form: Form::of(&settings),
        version: settings.version,
        changed: moment(settings.updated_at.as_ref()),
        etag: settings.etag,
        may_update: visitor.may("feedback.v1.SettingsService/UpdateSettings"),
        page: visitor.page(Part::Search, visitor.t("What is kept", "保持設定"), fields),
    };
    Ok(html(StatusCode::OK, &shown))
}

/// Changes the settings.
pub(crate) async fn update(visitor: &Visitor, fields: &Fields) -> Answer {
    let settings = Settings {
        namespace: visitor.namespace.clone(),
        etag: typed::etag(fields)?,
        ..said(fields)?
    };
    let paths = [
        "personal_retention",
        "query_retention",
        "max_queries",
        "rating_limits",
        "rated_targets",
    ];
    let request = visitor.services.call(UpdateSettingsRequest {
        settings: Some(settings),
        update_mask: Some(FieldMask {
            paths: paths.map(str::to_owned).to_vec(),
        }),
        on_behalf_of: visitor.on_behalf_of(),
        reason: fields.get("reason").to_owned(),
    });
    visitor.services.settings().update_settings(request).await?;
    let told = visitor.telling(Told::new("saved"));
    visitor.go(&visitor.within(Part::Search, &["settings"], &told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_comes_back_as_the_settings_it_was_made_of() {
        let sent = Fields::default()
            .with("personal_retention", "90d")
            .with("max_queries", "5000")
            .with("per_minute", "10")
            .with("per_hour", "100")
            .with(
                "rated_targets",
                "TRIAGE=RIGHT:good\nCHECK=YES:good,NO:bad (judgement)",
            );
        let settings = said(&sent).unwrap();
        let form = Form::of(&settings);
        assert_eq!((&*form.personal_retention, &*form.query_retention), ("90d", ""));
        assert_eq!(form.rated_targets, sent.get("rated_targets"));
        assert!(settings.rated_targets[1].is_judgement);
        assert_eq!(said(&Fields::default()).unwrap(), Settings::default());
        assert_eq!(Form::of(&Settings::default()), Form::default());
        assert!(said(&Fields::default().with("query_retention", "long")).is_err());
    }
}
