//! The queue as reviewers see it: who has what open, its figures, and what changes.

use emend_base::lifecycle::Signals;
use emend_proto::learning::v1::{
    AcquireReviewLeaseRequest, GetQueueStatsRequest, QueueChange, QueueDay, QueueWaiting,
    ReleaseReviewLeaseRequest, WatchQueueRequest, watch_queue_response::Message,
};
use serde_json::json;

use crate::{
    commands::ids,
    context::Context,
    failure::Result,
    output::{Column, Output, Table, counted},
    view,
    words::{self, Kind},
};

/// Which candidate, and who opens or closes it.
#[derive(Debug, clap::Args)]
pub(super) struct OpenArgs {
    /// The candidate's id
    candidate_id: String,
    /// The person on whose behalf you do it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
}

/// How many days.
#[derive(Debug, clap::Args)]
pub(super) struct StatsArgs {
    /// How many UTC days, today included
    #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = clap::value_parser!(i32).range(1..=90))]
    days: i32,
}

/// What to watch.
#[derive(Debug, clap::Args)]
pub(super) struct WatchArgs {
    /// Only candidates of this kind; may be given several times
    #[arg(long, value_enum)]
    kind: Vec<Kind>,
}

/// Opens a candidate.
pub(super) async fn open(args: OpenArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = AcquireReviewLeaseRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, "").await?,
        on_behalf_of: args.by,
    };
    let mut client = context.candidates().await?;
    let answer = client
        .acquire_review_lease(context.request(request))
        .await?
        .into_inner();
    output.result(&view::message(&answer), || {
        let lease = answer.lease.clone().unwrap_or_default();
        let until = view::short_time(lease.expires_at.as_ref());
        if answer.acquired {
            return format!("You have it open until {until}.");
        }
        let actor = lease.actor.unwrap_or_default();
        format!("{} has it open until {until}.", view::actor(&actor))
    })
}

/// Closes a candidate.
pub(super) async fn close(args: OpenArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = ReleaseReviewLeaseRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, "").await?,
        on_behalf_of: args.by,
    };
    let mut client = context.candidates().await?;
    client.release_review_lease(context.request(request)).await?;
    output.result(&json!({}), || "You do not have it open.".to_owned())
}

/// Shows the queue in figures.
pub(super) async fn stats(args: StatsArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = GetQueueStatsRequest {
        namespace: context.namespace(),
        days: args.days,
    };
    let mut client = context.candidates().await?;
    let stats = client
        .get_queue_stats(context.request(request))
        .await?
        .into_inner();
    let width = output.width();
    output.result(&view::message(&stats), || {
        let days = if stats.days.is_empty() {
            format!(
                "Nothing was received or decided in {}.",
                counted(args.days, "day", "days")
            )
        } else {
            days(&stats.days).render(width)
        };
        let waits = if stats.waiting.is_empty() {
            "Nothing waits for a person.".to_owned()
        } else {
            waiting(&stats.waiting).render(width)
        };
        format!("{}\n\n{waits}", days.trim_end())
    })
}

fn days(days: &[QueueDay]) -> Table {
    Table::new([
        ("DAY", Column::Fixed),
        ("KIND", Column::Text),
        ("RECEIVED", Column::Number),
        ("APPLIED", Column::Number),
        ("REJECTED", Column::Number),
        ("WITHDRAWN", Column::Number),
    ])
    .with_rows(days, |day| {
        [
            day.day.clone(),
            words::kind_name(day.kind),
            day.received_count.to_string(),
            day.applied_count.to_string(),
            day.rejected_count.to_string(),
            day.withdrawn_count.to_string(),
        ]
    })
}

fn waiting(waiting: &[QueueWaiting]) -> Table {
    Table::new([
        ("WAITING", Column::Text),
        ("COUNT", Column::Number),
        ("OLDEST", Column::Time),
    ])
    .with_rows(waiting, |waiting| {
        [
            words::kind_name(waiting.kind),
            waiting.count.to_string(),
            view::short_time(waiting.oldest_created_at.as_ref()),
        ]
    })
}

/// Prints what changes until a signal arrives, the service stops or the output is closed.
pub(super) async fn watch(args: WatchArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let mut signals = Signals::listen()?;
    let request = WatchQueueRequest {
        namespace: context.namespace(),
        kinds: words::kind_numbers(&args.kind),
    };
    let mut client = context.candidates().await?;
    // A watch has no end of its own, so no deadline either.
    let mut messages = client
        .watch_queue(context.request_without_deadline(request))
        .await?
        .into_inner();
    loop {
        let message = tokio::select! {
            _ = signals.recv() => return Ok(()),
            message = messages.message() => message?,
        };
        let Some(message) = message else { return Ok(()) };
        let json = view::message(&message);
        match message.message {
            Some(Message::Opened(_)) => output.result(&json, || "watching".to_owned())?,
            Some(Message::Change(change)) => output.result(&json, || change_text(&change))?,
            Some(Message::Resync(_)) => output.result(&json, || {
                "(changes were left out: list the candidates anew)".to_owned()
            })?,
            Some(Message::KeepAlive(_)) | None => {}
        }
    }
}

/// A change as a line: what, and what became of it.
fn change_text(change: &QueueChange) -> String {
    let key = change.key.clone().unwrap_or_default();
    let what = format!(
        "{} {} ({})",
        words::kind_name(key.kind),
        key.key,
        change.candidate_id
    );
    let status = words::status_name(change.status);
    match (&change.decided_by, &change.lease) {
        (Some(actor), _) if change.status == change.previous_status => {
            format!("{what}: {status}, approved once by {}", view::actor(actor))
        }
        (Some(actor), _) => format!("{what}: {status}, by {}", view::actor(actor)),
        (None, Some(lease)) => {
            let actor = lease.actor.clone().unwrap_or_default();
            format!("{what}: {} has it open", view::actor(&actor))
        }
        (None, None) => format!("{what}: closed or commented on"),
    }
}
