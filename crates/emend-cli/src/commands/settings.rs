//! `emend settings`: what feedback-svc does with the feedback of a namespace.

use clap::Subcommand;
use emend_proto::feedback::v1::{
    GetSettingsRequest, RatedTarget, RatingLimits, Settings, UpdateSettingsRequest,
};
use emend_wire::rated_targets::{rated_target, written};
use prost_types::FieldMask;

use super::Decision;
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    view,
    words::{self, SpanOrNone},
};

/// Get or set the settings.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend settings get
  emend settings set --personal-retention 90d --reason \"our data protection policy\" --by dana
  emend settings set --personal-retention none
  emend settings set --query-retention 7d --max-queries 500000
  emend settings set --rated-target 'TRIAGE=RIGHT:good,UNSURE:neutral,WRONG:bad'
  emend settings set --rating-limits 20,200
  emend settings set --rated-judgement 'CHECK=TRUE:good,FALSE:bad' --remove-rated-target TRIAGE

Rated targets are what an application's people can rate beside what can be rated everywhere, with
the values they may give. Ratings that are stored stay as they are, whatever becomes of their
target.

Once a correction is as old as the personal retention, its personal parts (reporter, session,
reason, context and more) are erased in both services, as by `emend redact`. Its vote and what was
learned stay.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the settings in force
    #[command(visible_alias = "show")]
    Get,
    /// Change the given settings and keep the rest
    Set(SetArgs),
}

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("changes").required(true).multiple(true)
    .args(["personal_retention", "rated_targets", "rated_judgements", "removed_targets",
        "query_retention", "max_queries", "rating_limits"])))]
struct SetArgs {
    /// How long personal parts are kept, 1h to 3650d; `none`: until they are redacted
    #[arg(long, value_name = "SPAN", value_parser = words::span_or_none)]
    personal_retention: Option<SpanOrNone>,
    /// Add a target, or give it these values: its name, then each value and what it counts as (good,
    /// neutral or bad); may be repeated
    #[arg(long = "rated-target", value_name = "NAME=VALUE:CLASS,…", value_parser = rated_target)]
    rated_targets: Vec<RatedTarget>,
    /// The same for a target whose output is a judgement, so that a rating may say the right one
    #[arg(long = "rated-judgement", value_name = "NAME=VALUE:CLASS,…", value_parser = rated_target)]
    rated_judgements: Vec<RatedTarget>,
    /// Remove this target; may be repeated
    #[arg(long = "remove-rated-target", value_name = "NAME")]
    removed_targets: Vec<String>,
    /// How long recorded queries are kept, 1h to 90d; `none`: the default, 24 h
    #[arg(long, value_name = "SPAN", value_parser = words::span_or_none)]
    query_retention: Option<SpanOrNone>,
    /// How many recorded queries are kept, 1,000 to 1,000,000; 0: the default, 100,000
    #[arg(long, value_name = "COUNT")]
    max_queries: Option<i32>,
    /// How often one reporter may rate search answers: in a minute and in an hour, such as 10,100
    #[arg(long, value_name = "MINUTE,HOUR", value_parser = rating_limits)]
    rating_limits: Option<RatingLimits>,
    /// Only if they still have this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
    #[command(flatten)]
    decision: Decision,
}

/// Gets or sets the settings.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let mut client = context.settings().await?;
    let get = GetSettingsRequest {
        namespace: context.namespace(),
    };
    let settings = match args.action {
        Action::Get => {
            let response = client.get_settings(context.request(get)).await?;
            response.into_inner().settings
        }
        Action::Set(set) => {
            let mut before = Settings {
                namespace: context.namespace(),
                ..Settings::default()
            };
            if set.changes_targets() {
                let response = client.get_settings(context.request(get)).await?;
                before = response.into_inner().settings.unwrap_or(before);
            }
            let request = update(set, before)?;
            let response = client.update_settings(context.request(request)).await?;
            response.into_inner().settings
        }
    };
    let settings = settings.ok_or_else(|| Failure::failed("feedback-svc answered without the settings"))?;
    output.result(&view::message(&settings), || text(&settings))
}

impl SetArgs {
    fn changes_targets(&self) -> bool {
        !(self.rated_targets.is_empty()
            && self.rated_judgements.is_empty()
            && self.removed_targets.is_empty())
    }
}

/// The update of settings that were `before`. Where it changes targets, it is refused if somebody else changed the settings
/// meanwhile: it would undo that.
fn update(set: SetArgs, before: Settings) -> Result<UpdateSettingsRequest> {
    let mut settings = Settings {
        namespace: before.namespace.clone(),
        ..Settings::default()
    };
    let mut paths = Vec::new();
    if set.changes_targets() {
        paths.push("rated_targets".to_owned());
        settings.etag.clone_from(&before.etag);
        settings.rated_targets = targets(&set, before.rated_targets)?;
    }
    if let Some(limits) = set.rating_limits {
        paths.push("rating_limits".to_owned());
        settings.rating_limits = Some(limits);
    }
    if let Some(SpanOrNone(retention)) = set.personal_retention {
        paths.push("personal_retention".to_owned());
        let retention = retention.map(prost_types::Duration::try_from).transpose();
        settings.personal_retention =
            retention.map_err(|_| Failure::usage("--personal-retention is too long"))?;
    }
    if let Some(SpanOrNone(retention)) = set.query_retention {
        paths.push("query_retention".to_owned());
        let retention = retention.map(prost_types::Duration::try_from).transpose();
        settings.query_retention = retention.map_err(|_| Failure::usage("--query-retention is too long"))?;
    }
    if let Some(max) = set.max_queries {
        paths.push("max_queries".to_owned());
        settings.max_queries = max;
    }
    if !set.etag.is_empty() {
        settings.etag = set.etag;
    }
    Ok(UpdateSettingsRequest {
        settings: Some(settings),
        update_mask: Some(FieldMask { paths }),
        on_behalf_of: set.decision.by,
        reason: set.decision.reason,
    })
}

/// The targets that there are to be, where there were these.
fn targets(set: &SetArgs, mut targets: Vec<RatedTarget>) -> Result<Vec<RatedTarget>> {
    for name in &set.removed_targets {
        let place = targets.iter().position(|target| target.name == *name);
        let place = place
            .ok_or_else(|| Failure::usage(format!("--remove-rated-target: there is no target {name:?}")))?;
        targets.remove(place);
    }
    let judgements = set.rated_judgements.iter().map(|target| RatedTarget {
        is_judgement: true,
        ..target.clone()
    });
    for target in set.rated_targets.iter().cloned().chain(judgements) {
        match targets.iter_mut().find(|known| known.name == target.name) {
            Some(known) => *known = target,
            None => targets.push(target),
        }
    }
    Ok(targets)
}

/// Limits as they are written: `MINUTE,HOUR`.
fn rating_limits(text: &str) -> Result<RatingLimits, String> {
    let parsed = text.split_once(',').and_then(|(minute, hour)| {
        let (per_minute, per_hour) = (minute.trim().parse().ok()?, hour.trim().parse().ok()?);
        Some(RatingLimits { per_minute, per_hour })
    });
    parsed.ok_or_else(|| "must be two numbers, such as 10,100".to_owned())
}

fn text(settings: &Settings) -> String {
    let retention = settings.personal_retention.as_ref().map_or_else(
        || "none: personal parts are kept until they are redacted".into(),
        view::span_text,
    );
    let query_retention = settings
        .query_retention
        .as_ref()
        .map_or_else(|| "24 h (the default)".into(), view::span_text);
    let max_queries = match settings.max_queries {
        0 => "100000 (the default)".into(),
        max => max.to_string(),
    };
    let version = match settings.version {
        0 => "0 (the default; never set)".into(),
        version => format!(
            "{version}, set at {}",
            view::short_time(settings.updated_at.as_ref())
        ),
    };
    let limits = settings.rating_limits.as_ref().map_or_else(
        || "10 a minute, 100 an hour (the default)".to_owned(),
        |RatingLimits { per_minute, per_hour }| format!("{per_minute} a minute, {per_hour} an hour"),
    );
    let targets: Vec<String> = settings.rated_targets.iter().map(written).collect();
    let targets = if targets.is_empty() {
        "none but those that can be rated everywhere".to_owned()
    } else {
        targets.join(&format!("\n{:<18} ", ""))
    };
    [
        ("namespace", &settings.namespace),
        ("personal retention", &retention),
        ("query retention", &query_retention),
        ("max queries", &max_queries),
        ("rated targets", &targets),
        ("rating limits", &limits),
        ("version", &version),
        ("etag", &settings.etag),
    ]
    .map(|(name, value)| format!("{name:<18} {value}"))
    .join("\n")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::{Cli, commands::Command};

    fn parse(args: &[&str]) -> Result<UpdateSettingsRequest, clap::Error> {
        let args = ["emend", "settings", "set"].iter().chain(args);
        let Command::Settings(Args {
            action: Action::Set(set),
        }) = Cli::try_parse_from(args)?.command
        else {
            panic!("not settings set");
        };
        let before = Settings {
            namespace: "fund-admin".into(),
            rated_targets: vec![
                rated_target("TRIAGE=RIGHT:good").unwrap(),
                rated_target("CHECK=YES:good").unwrap(),
            ],
            etag: "7".into(),
            ..Settings::default()
        };
        Ok(update(set, before).expect("settings"))
    }

    #[test]
    fn the_retention_is_set_or_removed() {
        let retention = |text| {
            let request = parse(&["--personal-retention", text]).unwrap();
            assert_eq!(request.update_mask.unwrap().paths, ["personal_retention"]);
            request
                .settings
                .unwrap()
                .personal_retention
                .map(|span| span.seconds)
        };
        assert_eq!(retention("90d"), Some(90 * 86_400));
        assert_eq!(retention("none"), None);
        assert!(parse(&[]).is_err(), "nothing to change");
        assert!(parse(&["--personal-retention", "long"]).is_err());
    }

    #[test]
    fn targets_are_added_replaced_and_removed_by_name() {
        let request = parse(&[
            "--rated-target",
            "TRIAGE=RIGHT:good,a:b:Neutral",
            "--rated-judgement",
            "FACT=TRUE:good,FALSE:bad",
            "--remove-rated-target",
            "CHECK",
        ]);
        let request = request.unwrap();
        assert_eq!(request.update_mask.unwrap().paths, ["rated_targets"]);
        let settings = request.settings.unwrap();
        assert_eq!(settings.etag, "7", "what others changed meanwhile is not undone");
        let targets: Vec<String> = settings.rated_targets.iter().map(written).collect();
        assert_eq!(
            targets,
            [
                "TRIAGE=RIGHT:good,a:b:neutral",
                "FACT=TRUE:good,FALSE:bad (judgement)"
            ]
        );
        for wrong in [
            "TRIAGE",
            "TRIAGE=",
            "TRIAGE=RIGHT",
            "TRIAGE=RIGHT:fine",
            "TRIAGE=RIGHT:good,",
        ] {
            assert!(parse(&["--rated-target", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_are_shown_in_words() {
        let mut settings = Settings {
            namespace: "fund-admin".into(),
            ..Settings::default()
        };
        assert!(text(&settings).contains("none: personal parts are kept"));
        assert!(text(&settings).contains("rated targets      none but"));
        settings.rated_targets = vec![
            rated_target("TRIAGE=RIGHT:good").unwrap(),
            rated_target("CHECK=YES:good").unwrap(),
        ];
        assert!(
            text(&settings)
                .contains("rated targets      TRIAGE=RIGHT:good\n                   CHECK=YES:good\n"),
            "{}",
            text(&settings)
        );
        settings.personal_retention = Some(prost_types::Duration {
            seconds: 90 * 86_400,
            nanos: 0,
        });
        assert!(
            text(&settings).contains("personal retention 90 d\n"),
            "{}",
            text(&settings)
        );
    }
}
