//! `emend settings`: what feedback-svc does with the feedback of a namespace.

use clap::Subcommand;
use emend_proto::feedback::v1::{GetSettingsRequest, Settings, UpdateSettingsRequest};
use prost_types::FieldMask;

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
struct SetArgs {
    /// How long personal parts are kept, 1h to 3650d; `none`: until they are redacted
    #[arg(long, value_name = "SPAN", value_parser = words::span_or_none)]
    personal_retention: SpanOrNone,
    /// Only if they still have this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// Who decided it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
}

/// Gets or sets the settings.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let mut client = context.settings().await?;
    let settings = match args.action {
        Action::Get => {
            let request = GetSettingsRequest {
                namespace: context.namespace(),
            };
            let response = client.get_settings(context.request(request)).await?;
            response.into_inner().settings
        }
        Action::Set(set) => {
            let request = update(set, context.namespace())?;
            let response = client.update_settings(context.request(request)).await?;
            response.into_inner().settings
        }
    };
    let settings = settings.ok_or_else(|| Failure::failed("feedback-svc answered without the settings"))?;
    output.result(&view::settings(&settings), || text(&settings))
}

fn update(set: SetArgs, namespace: String) -> Result<UpdateSettingsRequest> {
    let SpanOrNone(retention) = set.personal_retention;
    let personal_retention = retention
        .map(prost_types::Duration::try_from)
        .transpose()
        .map_err(|_| Failure::usage("--personal-retention is too long"))?;
    Ok(UpdateSettingsRequest {
        settings: Some(Settings {
            namespace,
            personal_retention,
            etag: set.etag,
            ..Settings::default()
        }),
        update_mask: Some(FieldMask {
            paths: vec!["personal_retention".into()],
        }),
        on_behalf_of: set.by,
        reason: set.reason,
    })
}

fn text(settings: &Settings) -> String {
    let retention = settings.personal_retention.as_ref().map_or_else(
        || "none: personal parts are kept until they are redacted".into(),
        view::span_text,
    );
    let version = match settings.version {
        0 => "0 (the default; never set)".into(),
        version => format!(
            "{version}, set at {}",
            view::short_time(settings.updated_at.as_ref())
        ),
    };
    [
        ("namespace", &settings.namespace),
        ("personal retention", &retention),
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
        Ok(update(set, "fund-admin".into()).expect("settings"))
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
    fn settings_are_shown_in_words() {
        let mut settings = Settings {
            namespace: "fund-admin".into(),
            ..Settings::default()
        };
        assert!(text(&settings).contains("none: personal parts are kept"));
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
