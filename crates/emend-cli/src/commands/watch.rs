//! `emend watch`: prints what is learned, as it is learned.
//!
//! It subscribes and verifies as a search node does, and is listed among the nodes as long as it runs.

use std::time::Duration;

use emend_base::{Lifecycle, lifecycle::Signals};
use emend_client::{AppliedChange, Code, Explained, Observed, State, SubscriberEvent};
use emend_core::{Kind as CoreKind, Revision};
use emend_proto::learning::v1::SnapshotReason;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Output, counted},
    view,
    words::{self, Kind},
};

/// How long the stream may take to close.
const GRACE: Duration = Duration::from_secs(2);

/// What to watch, and for how long.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend watch
  emend watch --kind prohibition --json | jq 'select(.event == \"change\")'
  emend watch --all-namespaces
  emend watch --until 17 --timeout 5m         ends once everything up to revision 17 is applied

The first lines say how the stream began. Then each change is a line, with the time from commit
until it was applied here. What is lost or unavailable is connected to again; what is refused for
good, such as a namespace without a right to it, ends the command. With --json each line has an `event`: connected, snapshot, resumed,
change, bookmark, disconnected, mismatch, installationMismatch, missed.")]
pub struct Args {
    /// Only resources of this kind; may be given several times
    #[arg(long, value_enum)]
    kind: Vec<Kind>,
    /// Watch all namespaces, not only one
    #[arg(long)]
    all_namespaces: bool,
    /// Include user-scoped resources
    #[arg(long)]
    user_scoped: bool,
    /// End once everything at or below this revision is applied; fails after --timeout
    #[arg(long, value_name = "REVISION")]
    until: Option<i64>,
    /// How often the server confirms that nothing is missing
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = words::duration)]
    bookmarks: Duration,
}

/// Watches until a signal arrives, `--until` is reached or the output is closed.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let lifecycle = Lifecycle::new();
    let mut signals = Signals::listen()?;
    let node_id = format!("watch-{}", &context.entropy.uuid_v4().simple().to_string()[..8]);
    let mut builder = context
        .subscriber(node_id)?
        .version(concat!("emend-cli/", env!("CARGO_PKG_VERSION")))
        .label("program", "emend watch")
        .transient()
        .include_user_scoped(args.user_scoped)
        .bookmark_interval(args.bookmarks)
        .clock(context.clock.clone())
        .entropy(context.entropy.clone());
    if !args.all_namespaces {
        builder = builder.namespace(context.namespace());
    }
    for kind in &args.kind {
        builder = builder.kind(kind.0);
    }
    let (node, mut events) = builder
        .spawn_observed(&lifecycle)
        .await
        .map_err(|error| Failure::usage(error.to_string()))?;
    let until = args.until.map(Revision);
    // Whoever waits for a revision waits as long as for any other answer.
    let timeout = context.timeout();
    let in_time = async {
        match until {
            Some(_) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(in_time);
    let mut is_connected = false;
    let result = loop {
        let observed = tokio::select! {
            _ = signals.recv() => break Ok(()),
            observed = events.next() => observed,
            () = &mut in_time => break Err(too_late(until, node.view().revision(), timeout)),
        };
        let (printed, applied) = match observed {
            None => break Err(Failure::failed("the subscriber has ended")),
            Some(Observed::Missed(count)) => {
                let printed = output.result(&json!({"event": "missed", "count": count}), || {
                    let events = counted(count, "event was missed", "events were missed");
                    format!("({events}: the output is too slow)")
                });
                (printed, Some(node.view().revision()))
            }
            Some(Observed::Event(event)) => {
                if let Some(refused) = refused(&event).filter(|_| !is_connected) {
                    break Err(refused);
                }
                is_connected = match *event {
                    SubscriberEvent::Connected => true,
                    SubscriberEvent::Disconnected { .. } => false,
                    _ => is_connected,
                };
                (print(&event, output), revision_of(&event))
            }
        };
        if let Err(failure) = printed {
            break Err(failure);
        }
        if until.is_some_and(|until| applied.is_some_and(|applied| applied >= until)) {
            break Ok(());
        }
    };
    lifecycle.shutdown(GRACE).await;
    result
}

/// What a server answers that would answer so again: no other try is worth it.
fn refused(event: &SubscriberEvent) -> Option<Failure> {
    let SubscriberEvent::Disconnected {
        status: Some(status), ..
    } = event
    else {
        return None;
    };
    let is_for_good = matches!(
        status.code,
        Code::InvalidArgument
            | Code::NotFound
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
    );
    is_for_good.then(|| {
        let mut explained = Explained::clone(status);
        if explained.code == Code::Unimplemented {
            explained.message += "; --learning-addr says where learning-svc is";
        }
        explained.into()
    })
}

/// `--until` was not reached.
fn too_late(until: Option<Revision>, applied: Revision, timeout: Duration) -> Failure {
    let until = until.map_or(0, |until| until.0);
    Failure::Unavailable(format!(
        "revision {until} was not applied within {timeout:?} (--timeout); applied is revision {applied}"
    ))
}

/// The revision up to which everything is applied and printed, if the event gives one.
fn revision_of(event: &SubscriberEvent) -> Option<Revision> {
    match event {
        SubscriberEvent::Snapshot { snapshot, .. } => Some(snapshot.revision),
        SubscriberEvent::Updated { update, .. } => Some(update.to),
        SubscriberEvent::Resumed { revision } | SubscriberEvent::Bookmark { revision, .. } => Some(*revision),
        _ => None,
    }
}

/// From this age on it is said: the server's database is away.
const OLD: Duration = Duration::from_secs(5);

fn bookmark_text(revision: Revision, age: Duration) -> String {
    let seconds = age.as_secs();
    if age < OLD {
        format!("current at revision {revision}")
    } else {
        format!(
            "at revision {revision}, the newest {seconds} s ago: the server can't read its database since"
        )
    }
}

fn print(event: &SubscriberEvent, output: &mut Output<'_>) -> Result {
    match event {
        SubscriberEvent::Updated { update, applied_at } => update.changes.iter().try_for_each(|change| {
            output.result(&change_json(change, *applied_at), || {
                change_text(change, *applied_at)
            })
        }),
        SubscriberEvent::Snapshot { snapshot, .. } => {
            let reason = reason_name(snapshot.reason);
            let json = json!({
                "event": "snapshot",
                "revision": snapshot.revision.0,
                "count": snapshot.count,
                "rejected": snapshot.rejected,
                "reason": snapshot.reason.as_str_name(),
            });
            output.result(&json, || {
                format!(
                    "snapshot at revision {}: {} ({reason})",
                    snapshot.revision,
                    counted(snapshot.count, "resource", "resources")
                )
            })
        }
        SubscriberEvent::Connected => output.result(&json!({"event": "connected"}), || "connected".into()),
        SubscriberEvent::Resumed { revision } => output
            .result(&json!({"event": "resumed", "revision": revision.0}), || {
                format!("resumed at revision {revision}")
            }),
        SubscriberEvent::Bookmark { revision, age } => {
            let json = json!({"event": "bookmark", "revision": revision.0, "ageMs": age.as_millis()});
            output.result(&json, || bookmark_text(*revision, *age))
        }
        SubscriberEvent::DigestMismatch { differences } => {
            output.result(&json!({"event": "mismatch", "differences": differences}), || {
                format!(
                    "differs from the server; a snapshot is requested: {}",
                    differences.join("; ")
                )
            })
        }
        SubscriberEvent::InstallationMismatch { held, answering } => {
            let json = json!({
                "event": "installationMismatch",
                "held": held.to_string(),
                "answering": answering.to_string(),
            });
            output.result(&json, || {
                format!(
                    "another installation answers ({answering}, not {held}); start again to follow that one"
                )
            })
        }
        SubscriberEvent::Disconnected { reason, retry_in, .. } => {
            let json =
                json!({"event": "disconnected", "reason": reason, "retryInSeconds": retry_in.as_secs_f64()});
            output.result(&json, || {
                format!("disconnected ({reason}); reconnecting in {retry_in:.1?}")
            })
        }
        // `emend watch` keeps no copy on disk.
        SubscriberEvent::Restored { .. }
        | SubscriberEvent::CopyRefused { .. }
        | SubscriberEvent::Saved { .. }
        | SubscriberEvent::Mirrored { .. } => Ok(()),
    }
}

fn reason_name(reason: SnapshotReason) -> String {
    words::short(Some(reason.as_str_name()), "SNAPSHOT_REASON_", reason as i32).replace('_', " ")
}

fn millis(from: Option<Timestamp>, to: Timestamp) -> Option<i128> {
    from.map(|from| to.duration_since(from).as_millis().max(0))
}

fn change_json(change: &AppliedChange, applied_at: Timestamp) -> Value {
    let mut object = json!({
        "event": "change",
        "revision": change.revision.0,
        "cause": change.cause.as_str_name(),
        "key": view::message(&change.key),
        "committedAt": change.committed_at.map(|at| at.to_string()),
        "feedbackReceivedAt": change.feedback_received_at.map(|at| at.to_string()),
        "appliedAt": applied_at.to_string(),
        "commitToAppliedMs": millis(change.committed_at, applied_at).and_then(|span| i64::try_from(span).ok()),
        "feedbackToAppliedMs":
            millis(change.feedback_received_at, applied_at).and_then(|span| i64::try_from(span).ok()),
        "traceparent": change.traceparent,
    });
    match &change.state {
        State::Learned(value) => {
            object["display"] = value.written(&change.key.key).into();
            object["value"] = view::learned_text(&value.learned).into();
        }
        State::Rejected(why) => object["rejected"] = why.to_string().into(),
        State::Deleted => object["deleted"] = true.into(),
    }
    object
}

fn change_text(change: &AppliedChange, applied_at: Timestamp) -> String {
    let key = &change.key;
    let what = match (&change.state, CoreKind::from_number(key.kind)) {
        (State::Learned(value), _) => view::pair(&key.key, &value.learned),
        (State::Rejected(why), _) => format!("{} rejected by this node: {why}", key.key),
        (State::Deleted, Some(kind)) if !key.qualifier.is_empty() => {
            format!("{} {} {} deleted", key.key, kind.rules().arrow, key.qualifier)
        }
        (State::Deleted, _) => format!("{} deleted", key.key),
    };
    let scope = view::for_user(&key.user_id);
    let cause = words::cause_name(change.cause as i32);
    let delay = millis(change.committed_at, applied_at).map_or_else(String::new, |ms| format!(", {ms} ms"));
    format!(
        "{:>6}  {}: {what}{scope}  [{cause}{delay}]",
        change.revision,
        words::kind_name(key.kind)
    )
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    #[test]
    fn only_what_would_be_refused_again_is_refused_for_good() {
        let is_refused = |status: Option<Status>| {
            let event = SubscriberEvent::Disconnected {
                reason: "a reason".to_owned(),
                retry_in: Duration::ZERO,
                status: status.map(|status| Box::new(Explained::from(&status))),
            };
            refused(&event).is_some()
        };
        let may_pass = [
            Code::Cancelled,
            Code::Unknown,
            Code::DeadlineExceeded,
            Code::AlreadyExists,
            Code::ResourceExhausted,
            Code::Aborted,
            Code::Internal,
            Code::Unavailable,
            Code::DataLoss,
        ];
        for code in (1..=16).map(Code::from) {
            let is_for_good = is_refused(Some(Status::new(code, "no")));
            assert_eq!(is_for_good, !may_pass.contains(&code), "{code:?}");
        }
        assert!(!is_refused(None), "whoever does not answer does not refuse");
    }
}
