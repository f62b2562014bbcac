//! `emend redact`: erases the personal parts of one correction, or everything about a reporter.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use emend_proto::feedback::v1::{
    DeliveryState, Feedback, RedactFeedbackRequest, RedactReporterRequest, RedactReporterResponse,
};
use tokio::time::{Instant, sleep};

use super::feedback;
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    view, words,
};

/// How often a running erasure is asked how far it is.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// What to erase.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("target").required(true).args(["feedback_id", "reporter"]), after_help = "\
Examples:
  emend redact 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10
  emend redact --reporter ana --wait --yes

Of a correction these parts are erased, in both services: reporter, session, client, query, reason,
context. The correction itself, its vote and its outcome stay, so nothing that was learned changes.
With --reporter this is done to all that the reporter said in the namespace, and what was learned
for this reporter alone is deleted.

An erasure can't be undone. On a terminal it is asked for; elsewhere --yes is needed. It may be
repeated: what is erased stays so. Without --wait it goes on in the background; the same command
tells how far it is.")]
pub struct Args {
    /// The feedback's id, as `submit` printed it
    feedback_id: Option<String>,
    /// Erase everything about this reporter
    #[arg(long, value_name = "ID")]
    reporter: Option<String>,
    /// Wait until both services have erased everything, for at most --timeout
    #[arg(long)]
    wait: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Erases and says how far it is.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match (args.feedback_id, args.reporter) {
        (Some(feedback_id), _) => {
            confirm(
                args.yes,
                &format!("Erase the personal parts of feedback {feedback_id}?"),
            )?;
            redact_feedback(feedback_id, args.wait, context, output).await
        }
        (None, Some(reporter)) => {
            let namespace = context.namespace();
            confirm(
                args.yes,
                &format!("Erase everything about {reporter:?} in the namespace {namespace:?}?"),
            )?;
            redact_reporter(&reporter, args.wait, context, output).await
        }
        (None, None) => Err(Failure::usage("give a feedback id or --reporter")),
    }
}

/// Asks on a terminal; elsewhere nobody can answer.
fn confirm(yes: bool, question: &str) -> Result {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("an erasure can't be undone: pass --yes"));
    }
    eprint!("{question} This can't be undone. [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Failure::failed("nothing was erased"))
    }
}

async fn redact_feedback(
    feedback_id: String,
    wait: bool,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    let request = RedactFeedbackRequest {
        namespace: context.namespace(),
        feedback_id: super::ids::feedback(context, feedback_id).await?,
        wait: words::wait(wait) as i32,
    };
    let mut client = context.feedback().await?;
    let response = client.redact_feedback(context.request(request)).await?;
    let feedback = feedback::required(response.into_inner().feedback)?;
    output.result(&view::message(&feedback), || feedback_text(&feedback))
}

fn feedback_text(feedback: &Feedback) -> String {
    let id = &feedback.feedback_id;
    if feedback.delivery_state == DeliveryState::Delivered as i32 {
        format!("The personal parts of feedback {id} are erased.")
    } else {
        format!("The personal parts of feedback {id} are erased in feedback-svc; learning-svc follows.")
    }
}

async fn redact_reporter(reporter: &str, wait: bool, context: &Context, output: &mut Output<'_>) -> Result {
    let mut client = context.feedback().await?;
    let deadline = Instant::now() + context.timeout();
    let mut redacted_count = 0;
    loop {
        let request = RedactReporterRequest {
            namespace: context.namespace(),
            reporter_id: reporter.to_owned(),
        };
        let mut response = client
            .redact_reporter(context.request(request))
            .await?
            .into_inner();
        redacted_count += response.redacted_count;
        response.redacted_count = redacted_count;
        if !wait || is_complete(&response) {
            return output.result(&view::message(&response), || reporter_text(reporter, &response));
        }
        if Instant::now() >= deadline {
            return Err(Failure::Unavailable(format!(
                "not complete after {:?}: {}",
                context.timeout(),
                reporter_text(reporter, &response)
            )));
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn is_complete(response: &RedactReporterResponse) -> bool {
    response.remaining_count == 0 && response.undelivered_count == 0
}

fn reporter_text(reporter: &str, response: &RedactReporterResponse) -> String {
    let count = response.redacted_count;
    let corrections = if count == 1 { "correction" } else { "corrections" };
    let state = if is_complete(response) {
        "both services have erased everything.".to_owned()
    } else {
        format!(
            "{} remain, and learning-svc has not confirmed {} yet.",
            response.remaining_count, response.undelivered_count
        )
    };
    format!("Redacted {count} {corrections} by {reporter:?}; {state}")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::Cli;

    #[test]
    fn either_a_correction_or_a_reporter_is_erased() {
        let parses = |args: &[&str]| Cli::try_parse_from(["emend", "redact"].iter().chain(args)).is_ok();
        assert!(parses(&["0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10"]));
        assert!(parses(&["--reporter", "ana", "--wait", "-y"]));
        assert!(!parses(&[]));
        assert!(!parses(&[
            "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10",
            "--reporter",
            "ana"
        ]));
    }

    #[test]
    fn an_erasure_is_complete_once_both_services_have_erased_everything() {
        let text = |redacted_count, remaining_count, undelivered_count| {
            let response = RedactReporterResponse {
                redacted_count,
                remaining_count,
                undelivered_count,
            };
            reporter_text("ana", &response)
        };
        assert!(text(1, 0, 0).contains("1 correction by \"ana\"; both services have erased everything"));
        assert!(text(500, 20, 0).contains("20 remain"));
        assert!(text(3, 0, 2).contains("not confirmed 2 yet"));
    }
}
