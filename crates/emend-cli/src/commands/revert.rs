//! `emend revert`: reverts a revision or a whole operation.

use emend_proto::learning::v1::{RevertRevisionRequest, RevertRevisionResponse};
use serde_json::json;

use crate::{
    context::Context,
    failure::Result,
    output::{Output, counted},
    view,
};

/// What to revert, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend revert 17 --reason \"the wrong fund\" --by dana
  emend revert 17 --preview --reason \"the wrong fund\"
  emend revert --operation 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10 --preview --reason \"wrong file\"

What was there before is restored as a new revision; nothing is erased. Where a key has a newer
revision, nothing is done and every such key is listed (exit code 4). What was reverted comes
back only by a person's decision.

An operation is an import or another act of many revisions; log and import show its id. All of
its revisions are reverted, each as a new one. What others changed since is left as it is and
listed. If it is interrupted, run it again: it goes on. The operation that reverts it is shown,
and can be reverted itself.")]
pub struct Args {
    /// The revision to revert, as `log` shows it
    #[arg(value_parser = clap::value_parser!(i64).range(1..), required_unless_present = "operation")]
    revision: Option<i64>,
    /// The operation to revert, as `log` and `import` show it
    #[arg(long, value_name = "ID", conflicts_with = "revision")]
    operation: Option<String>,
    /// Only count what would be reverted and what would be left
    #[arg(long)]
    preview: bool,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// The person on whose behalf you do it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
}

/// Reverts it.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let request = RevertRevisionRequest {
        namespace: context.namespace(),
        revision: args.revision.unwrap_or_default(),
        reason: args.reason,
        on_behalf_of: args.by,
        operation_id: args.operation.clone().unwrap_or_default(),
        preview: args.preview,
    };
    let request = match args.operation {
        Some(_) => context.request_without_deadline(request),
        None => context.request(request),
    };
    let response = context
        .resources()
        .await?
        .revert_revision(request)
        .await?
        .into_inner();
    match args.revision {
        Some(revision) if args.preview => {
            let count = response.reverted_count;
            output.result(&json!({"revision": revision, "revertedCount": count}), || {
                let changes = counted(count, "change", "changes");
                format!("{changes} of revision {revision} would be reverted")
            })
        }
        Some(revision) => output.result(&json!({"revision": response.revision}), || {
            format!(
                "Revision {revision} is reverted by revision {}",
                response.revision
            )
        }),
        None => output.result(&view::message(&response), || summary(&response, args.preview)),
    }
}

fn summary(response: &RevertRevisionResponse, preview: bool) -> String {
    let (would_be, left) = if preview {
        ("would be reverted", "would be left")
    } else {
        ("reverted", "left")
    };
    let mut lines = vec![format!(
        "{} {would_be}, {} reverted before, {} {left}",
        counted(response.reverted_count, "change", "changes"),
        response.already_count,
        response.left_count
    )];
    for change in &response.left {
        let key = change.key.clone().unwrap_or_default();
        lines.push(format!(
            "  {} (revision {}): {}",
            key.key, change.revision, change.description
        ));
    }
    let unnamed = response.left_count - i64::try_from(response.left.len()).unwrap_or(0);
    if unnamed > 0 {
        lines.push(format!("  and {unnamed} more"));
    }
    if !preview {
        lines.push(format!("operation {}", response.operation_id));
    }
    lines.join("\n")
}
