//! The settings service.

use std::{sync::Arc, time::Duration};

use emend_base::Error;
use emend_core::{
    Caller, Invalid, Namespace, Violations,
    ratings::{MAX_OWN_TARGETS, OwnTarget, check_own_targets},
    violation::bounded_text,
};
use emend_proto::feedback::v1::{self as pb, settings_service_server::SettingsService};
use emend_serve::{auth::Call, caller::caller_of};
use emend_wire::{parse, render};
use feedback_store::records::{
    limits::RatingLimits,
    rated_targets,
    settings::{
        Change, MAX_QUERY_RETENTION, MAX_RETENTION, MIN_RETENTION, QUERY_BOUNDS, Settings, SettingsUpdate,
    },
};
use tonic::{Request, Response, Status};

use crate::{roles::open, settings::NamespaceSettings};

/// The fields that an update may change.
const FIELDS: [&str; 5] = [
    "personal_retention",
    "rated_targets",
    "query_retention",
    "max_queries",
    "rating_limits",
];

/// Implements `emend.feedback.v1.SettingsService`.
#[derive(Debug, Clone)]
pub(crate) struct SettingsEndpoint(pub(crate) Arc<NamespaceSettings>);

#[tonic::async_trait]
impl SettingsService for SettingsEndpoint {
    async fn get_settings(
        &self,
        request: Request<pb::GetSettingsRequest>,
    ) -> Result<Response<pb::GetSettingsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let mut violations = Violations::new();
        let namespace = violations.check("namespace", Namespace::parse(&message.namespace));
        let namespace = violations.finish(namespace).map_err(Error::from)?;
        let settings = self.0.get(namespace).await?;
        Ok(Response::new(pb::GetSettingsResponse {
            settings: Some(self::message(&settings)),
        }))
    }

    async fn update_settings(
        &self,
        request: Request<pb::UpdateSettingsRequest>,
    ) -> Result<Response<pb::UpdateSettingsResponse>, Status> {
        let caller = caller_of(&request);
        let update = update(&caller, &open(request)?.message).map_err(Error::from)?;
        let settings = self.0.update(&update).await?;
        Ok(Response::new(pb::UpdateSettingsResponse {
            settings: Some(message(&settings)),
        }))
    }
}

/// An update, or all its violations.
pub(crate) fn update(
    caller: &Caller,
    request: &pb::UpdateSettingsRequest,
) -> Result<SettingsUpdate, Violations> {
    let mut violations = Violations::new();
    let default = pb::Settings::default();
    let message = request.settings.as_ref().unwrap_or(&default);
    let mut within = Violations::new();
    let namespace = within.check("namespace", Namespace::parse(&message.namespace));
    // One of white space was meant to be one.
    let least = usize::from(!message.etag.is_empty());
    let etag = within.check("etag", bounded_text(&message.etag, least, 64));
    let personal_retention = match &message.personal_retention {
        None => Some(None),
        Some(duration) => within
            .check("personal_retention", retention(duration, MAX_RETENTION, "3,650"))
            .map(Some),
    };
    let query_retention = match &message.query_retention {
        None => Some(None),
        Some(duration) => within
            .check("query_retention", retention(duration, MAX_QUERY_RETENTION, "90"))
            .map(Some),
    };
    let max_queries = within.check("max_queries", max_queries(message.max_queries));
    let targets = within.part("", targets(&message.rated_targets));
    let limits = match message.rating_limits {
        None => Some(None),
        Some(pb::RatingLimits { per_minute, per_hour }) => {
            let limits = RatingLimits::parse(per_minute.into(), per_hour.into());
            within.part("rating_limits", limits).map(Some)
        }
    };
    let paths = request.update_mask.as_ref().map(|mask| &mask.paths);
    for path in paths.into_iter().flatten() {
        if !FIELDS.contains(&path.as_str()) {
            violations.add(
                "update_mask",
                format!("{path:?} is not one of {}", FIELDS.join(", ")),
            );
        }
    }
    let is_named = |field: &str, is_present: bool| match paths {
        None => is_present,
        Some(paths) => paths.iter().any(|path| path == field),
    };
    violations.nest("settings", within);
    let on_behalf_of = violations.check("on_behalf_of", bounded_text(&request.on_behalf_of, 0, 128));
    let reason = violations.check(
        "reason",
        parse::free_text(&request.reason, parse::MAX_REASON_CHARS),
    );
    let parsed = (|| {
        let (etag, personal_retention, targets) = (etag?, personal_retention?, targets?);
        let (query_retention, max_queries) = (query_retention?, max_queries?);
        let limits = limits?;
        Some(SettingsUpdate {
            namespace: namespace?,
            etag: (!etag.is_empty()).then_some(etag),
            personal_retention: if is_named("personal_retention", personal_retention.is_some()) {
                Change::Set(personal_retention)
            } else {
                Change::Keep
            },
            rated_targets: if is_named("rated_targets", !targets.is_empty()) {
                Change::Set(targets)
            } else {
                Change::Keep
            },
            query_retention: if is_named("query_retention", query_retention.is_some()) {
                Change::Set(query_retention)
            } else {
                Change::Keep
            },
            max_queries: if is_named("max_queries", max_queries.is_some()) {
                Change::Set(max_queries)
            } else {
                Change::Keep
            },
            rating_limits: if is_named("rating_limits", limits.is_some()) {
                Change::Set(limits)
            } else {
                Change::Keep
            },
            caller: caller.clone(),
            on_behalf_of: on_behalf_of?,
            reason: reason?.unwrap_or_default(),
        })
    })();
    violations.finish(parsed)
}

fn targets(messages: &[pb::RatedTarget]) -> Result<Vec<OwnTarget>, Violations> {
    let mut violations = Violations::new();
    // No more are looked at than tell that there are too many.
    let read = &messages[..messages.len().min(MAX_OWN_TARGETS + 1)];
    let targets = violations.part("", rated_targets::parse(read));
    let checked = targets.as_deref().map(check_own_targets);
    violations.part("", checked.unwrap_or(Ok(())));
    violations.finish(targets)
}

fn max_queries(raw: i32) -> Result<Option<u32>, Invalid> {
    if raw == 0 {
        return Ok(None);
    }
    match u32::try_from(raw) {
        Ok(count) if QUERY_BOUNDS.contains(&count) => Ok(Some(count)),
        _ => Err(Invalid::new("must be 1,000 to 1,000,000, or 0 for the default")),
    }
}

fn retention(message: &prost_types::Duration, longest: Duration, days: &str) -> Result<Duration, Invalid> {
    let bounds = || Invalid::new(format!("must be 1 h to {days} days"));
    let duration = Duration::try_from(*message).map_err(|_| bounds())?;
    if (MIN_RETENTION..=longest).contains(&duration) {
        Ok(duration)
    } else {
        Err(bounds())
    }
}

fn message(settings: &Settings) -> pb::Settings {
    pb::Settings {
        namespace: settings.namespace.to_string(),
        personal_retention: settings
            .personal_retention
            .and_then(|retention| prost_types::Duration::try_from(retention).ok()),
        rated_targets: rated_targets::render(&settings.rated_targets),
        query_retention: settings
            .query_retention
            .and_then(|retention| prost_types::Duration::try_from(retention).ok()),
        max_queries: settings
            .max_queries
            .and_then(|count| i32::try_from(count).ok())
            .unwrap_or_default(),
        rating_limits: settings.rating_limits.map(|limits| pb::RatingLimits {
            per_minute: i32::try_from(limits.per_minute).unwrap_or(i32::MAX),
            per_hour: i32::try_from(limits.per_hour).unwrap_or(i32::MAX),
        }),
        version: settings.version,
        etag: settings.etag(),
        updated_at: settings.updated_at.map(render::timestamp),
    }
}
