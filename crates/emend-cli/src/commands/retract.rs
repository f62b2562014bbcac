//! `emend retract`: retracts a correction.

use emend_proto::feedback::v1::RetractFeedbackRequest;

use super::{feedback, ids, submit::outcome_text};
use crate::{context::Context, failure::Result, output::Output, view, words};

/// Which correction to retract, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  emend retract 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10 --reason \"I misread the deed\" --wait

Its vote no longer counts. Where that brings an applied value's supporters below the threshold,
the value is withdrawn. A decision about a domain ends, and the one before it is in force again, if
you are entitled to decide. A rating's example goes.")]
pub struct Args {
    /// The feedback's id, as `submit` printed it
    feedback_id: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// Wait until the retraction has been evaluated, not only stored
    #[arg(long)]
    wait: bool,
}

/// Retracts the correction and prints the outcome.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let request = RetractFeedbackRequest {
        namespace: context.namespace(),
        feedback_id: ids::feedback(context, args.feedback_id).await?,
        reason: args.reason,
        wait: words::wait(args.wait) as i32,
    };
    let response = context
        .feedback()
        .await?
        .retract_feedback(context.request(request))
        .await?;
    let feedback = feedback::required(response.into_inner().feedback)?;
    let is_evaluated = args.wait;
    output.result(&view::message(&feedback), || {
        if is_evaluated {
            outcome_text(&feedback)
        } else {
            "The retraction is stored. With --wait the command also says what it changed.".to_owned()
        }
    })
}
