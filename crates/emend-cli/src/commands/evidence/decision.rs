//! What the commands that decide about domains, claims and edges have in common.

use emend_proto::common::v1::correction::Correction as Form;
use emend_wire::kinds::task_of;

use crate::{commands::submit::Sender, context::Context, failure::Result, output::Output};

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
    #[command(flatten)]
    sender: Sender,
    /// The research task in which it is decided
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    task: String,
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
    by.sender.submit(form, reason, context, output).await
}
