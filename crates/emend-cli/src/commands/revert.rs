//! `emend revert`: reverts a revision.

use emend_proto::learning::v1::RevertRevisionRequest;
use serde_json::json;

use crate::{context::Context, failure::Result, output::Output};

/// Which revision to revert, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  emend revert 17 --reason \"the wrong fund\" --by dana

What was there before is restored as a new revision; nothing is erased. Where a key has a newer
revision, nothing is done and every such key is listed (exit code 4). What was reverted comes
back only by a person's decision.")]
pub struct Args {
    /// The revision to revert, as `log` shows it
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    revision: i64,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Who decided it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
}

/// Reverts the revision.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let request = RevertRevisionRequest {
        namespace: context.namespace(),
        revision: args.revision,
        reason: args.reason,
        on_behalf_of: args.by,
    };
    let response = context
        .resources()
        .await?
        .revert_revision(context.request(request))
        .await?
        .into_inner();
    output.result(&json!({"revision": response.revision}), || {
        format!(
            "Revision {} is reverted by revision {}",
            args.revision, response.revision
        )
    })
}
