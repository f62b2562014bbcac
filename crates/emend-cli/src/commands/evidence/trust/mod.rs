//! `emend evidence trust`: applies trust files, and makes them of what others keep.

mod convert;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use emend_proto::learning::v1::{
    ApplyTrustFileRequest, ApplyTrustFileResponse, TrustFileApplied, TrustFileFormat,
};
use tonic::Status;

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table},
    transfer::source,
    view,
};

/// The bytes of a file at most.
const MAX_BYTES: u64 = 16 << 20;

/// What to do.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence trust apply trust.yaml
  emend evidence trust apply - --format toml < trust.toml
  emend evidence trust convert hosts.txt --file-version 7 > trust.yaml
  emend evidence trust convert config/domains.yaml --file-version 7 > trust.yaml

  $ cat trust.yaml
  namespaces: [research]
  version: 7
  domains:
    - { pattern: gov, level: government }
    - { pattern: \"*.ac.jp\", level: academic }
    - { pattern: wikipedia.org, level: low }
  blocked: [spam.example]
  dangerous_patterns: [prompt_injection]

The file is for the namespaces that it names, not for that of --namespace. It says all that the
trust file says: rules that it no longer names end. Raise its version with each change; where
that version or a newer one is in force, nothing is done; where that version has other content, the
exit code is 4. Decisions of people come before the file.

Convert makes a trust file for --namespace of a list of domains to block (plain, a hosts file,
AdGuard, uBlacklist), or of YAML with domains and user_overrides, each entry with domain,
trust_level, reason and added_at; overrides win. Standard error names each line that is passed
over, and why, and the keys that are ignored.")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Apply a trust file
    Apply {
        /// The file; - for standard input
        file: PathBuf,
        /// The file format [default: by the file's extension]
        #[arg(long, value_enum)]
        format: Option<Format>,
        /// The person on whose behalf you do it
        #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
        by: String,
    },
    /// Make a trust file of a list of domains or of levels that others keep
    Convert(convert::Args),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Yaml,
    Toml,
}

/// Applies a trust file and prints what it did.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let (file, format, by) = match args.action {
        Action::Apply { file, format, by } => (file, format, by),
        Action::Convert(args) => return convert::run(&args, context, output),
    };
    let format = match format.map_or_else(|| format_of(&file), Ok)? {
        Format::Yaml => TrustFileFormat::Yaml,
        Format::Toml => TrustFileFormat::Toml,
    };
    let request = ApplyTrustFileRequest {
        content: source::text(&file, MAX_BYTES)?,
        format: format.into(),
        on_behalf_of: by,
    };
    let mut client = context.evidence().await?;
    // A file of 100,000 domains takes longer than other calls may.
    let done = client
        .apply_trust_file(context.request_without_deadline(request))
        .await
        .map_err(refusal)?
        .into_inner();
    let width = output.width();
    output.result(&view::trust_file(&done), || table(&done).render(width))?;
    let differing = done.namespaces.iter().filter(|applied| applied.differs);
    let differing: Vec<&str> = differing.map(|applied| applied.namespace.as_str()).collect();
    if differing.is_empty() {
        return Ok(());
    }
    Err(Failure::Conflict(format!(
        "the file's version is in force in {} with other content: raise it",
        differing.join(", ")
    )))
}

/// Why a file is refused. One with fields of its own may be what others keep.
fn refusal(status: Status) -> Failure {
    let mut failure = Failure::from(status);
    if let Failure::Refused(explained) = &mut failure {
        let unknown = explained
            .field_violations
            .iter_mut()
            .filter(|violation| violation.description.contains("unknown field"));
        for violation in unknown {
            violation.description +=
                "; of YAML that others keep, `emend evidence trust convert` makes a trust file";
        }
    }
    failure
}

fn format_of(file: &Path) -> Result<Format> {
    let extension = file.extension().and_then(|extension| extension.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("yaml" | "yml") => Ok(Format::Yaml),
        Some("toml") => Ok(Format::Toml),
        _ => Err(Failure::usage(format!(
            "{}: is it yaml or toml? Say so with --format",
            file.display()
        ))),
    }
}

fn table(done: &ApplyTrustFileResponse) -> Table {
    Table::new([
        ("NAMESPACE", Column::Text),
        ("VERSION", Column::Number),
        ("SET", Column::Number),
        ("ENDED", Column::Number),
        ("REVISION", Column::Number),
        ("RESULT", Column::Text),
    ])
    .with_rows(&done.namespaces, |applied| {
        [
            applied.namespace.clone(),
            applied.version.to_string(),
            applied.set.to_string(),
            applied.ended.to_string(),
            if applied.revision == 0 {
                "–".to_owned()
            } else {
                applied.revision.to_string()
            },
            result(applied).to_owned(),
        ]
    })
}

fn result(applied: &TrustFileApplied) -> &'static str {
    match applied {
        applied if applied.applied => "applied",
        applied if applied.differs => "not applied: that version has other content",
        applied if applied.is_older => "not applied: a newer version is in force",
        _ => "nothing to do: that version was in force",
    }
}
