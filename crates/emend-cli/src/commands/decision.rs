//! What the commands that decide about domains, claims and edges have in common.

use emend_proto::{
    common::v1::{Correction, Reporter, correction::Correction as Form},
    feedback::v1::SubmitFeedbackRequest,
};
use emend_wire::kinds::task_of;

use super::submit::send;
use crate::{context::Context, failure::Result, output::Output, words};

/// Why, and by whom.
#[derive(Debug, clap::Args)]
pub(super) struct Why {
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
    #[command(flatten)]
    pub(super) by: By,
}

/// By whom, and in which task.
#[derive(Debug, clap::Args)]
pub(super) struct By {
    /// Who decides
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    reporter: String,
    /// The research task in which it is decided
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    task: String,
    /// An id that makes it safe to repeat the command [default: a random one]
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

/// Submits a decision, waits until it is evaluated, and prints the outcome.
pub(super) async fn submit(
    mut form: Form,
    reason: String,
    by: By,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    if let Some(task) = task_of(&mut form) {
        *task = by.task;
    }
    let request = SubmitFeedbackRequest {
        request_id: by.request_id.unwrap_or_else(|| context.request_id()),
        namespace: context.namespace(),
        reporter: Some(Reporter {
            id: by.reporter,
            client: concat!("emend-cli/", env!("CARGO_PKG_VERSION")).to_owned(),
            ..Reporter::default()
        }),
        reason,
        wait: words::wait(true) as i32,
        correction: Some(Correction {
            correction: Some(form),
        }),
        ..SubmitFeedbackRequest::default()
    };
    send(request, context, output).await
}
