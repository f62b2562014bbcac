//! Guarantees 9 and 10, as far as a recording shows them: what others received and what was published while one
//! subscriber did not read.

use emend_proto::learning::v1::Cursor;

use super::{
    guarantee::{About, Guarantee, Report},
    recording::{Moment, Recording, Witness, Witnessed},
};

/// A period in which one subscriber did not read.
struct Stall<'a> {
    subscriber: &'a str,
    begun: Moment,
    ended: Moment,
    /// The revision that every other subscriber had to reach.
    head: i64,
}

/// `reached`: the subscriber's positions, in order, each with the moment from which it was there.
pub(super) fn check(recording: &Recording, reached: &[(Moment, Cursor)], report: &mut Report) {
    let stalls = stalls(&recording.witnessed);
    let own: Vec<_> = stalls
        .iter()
        .filter(|stall| stall.subscriber == recording.subscriber)
        .collect();
    let opened = recording.connections.first().map(|first| first.opened);
    for stall in &stalls {
        published(stall, &recording.witnessed, report);
        let was_there = opened.is_some_and(|opened| opened < stall.begun);
        let stalled_itself = own
            .iter()
            .any(|own| own.begun < stall.ended && stall.begun < own.ended);
        if !was_there || stalled_itself {
            continue;
        }
        let got = reached
            .iter()
            .take_while(|(at, _)| *at < stall.ended)
            .last()
            .map_or(0, |(_, cursor)| cursor.revision);
        report.check(Guarantee::Isolated, got >= stall.head, || {
            let what = format!(
                "was at {got} when the stall of {} ended, everybody else was to have reached {}",
                stall.subscriber, stall.head
            );
            (About::default().revision(stall.head), what)
        });
    }
    for Witnessed { what, .. } in &recording.witnessed {
        if let Witness::Resident { bytes, bound } = what {
            report.check(Guarantee::Isolated, bytes <= bound, || {
                let what = format!("the server held {bytes} bytes of memory, bounded by {bound}");
                (About::default(), what)
            });
        }
    }
}

/// Checks that the head at the end of the stall was committed and published before it ended.
fn published(stall: &Stall<'_>, witnessed: &[Witnessed], report: &mut Report) {
    let committed = |until: Moment| {
        let before = witnessed.iter().filter(move |witnessed| witnessed.at < until);
        before.filter_map(|witnessed| match witnessed.what {
            Witness::Committed(revision) => Some(revision),
            _ => None,
        })
    };
    if committed(stall.begun).max().unwrap_or(0) >= stall.head {
        // Nothing was written during the stall.
        return;
    }
    let is_committed = committed(stall.ended).any(|revision| revision >= stall.head);
    let about = || About::default().revision(stall.head);
    report.check(Guarantee::NonBlocking, is_committed, || {
        let what = format!("no writer was answered while {} stalled", stall.subscriber);
        (about(), what)
    });
    let is_published = witnessed.iter().any(|witnessed| {
        witnessed.at < stall.ended
            && matches!(witnessed.what, Witness::Published(revision) if revision >= stall.head)
    });
    report.check(Guarantee::NonBlocking, is_published, || {
        let what = format!("nothing was published while {} stalled", stall.subscriber);
        (about(), what)
    });
}

fn stalls(witnessed: &[Witnessed]) -> Vec<Stall<'_>> {
    let mut stalls = Vec::new();
    for (index, Witnessed { at, what }) in witnessed.iter().enumerate() {
        let Witness::StallBegins(subscriber) = what else {
            continue;
        };
        let end = witnessed[index..].iter().find_map(|later| match &later.what {
            Witness::StallEnds(other, head) if other == subscriber => Some((later.at, *head)),
            _ => None,
        });
        if let Some((ended, head)) = end {
            stalls.push(Stall {
                subscriber,
                begun: *at,
                ended,
                head,
            });
        }
    }
    stalls
}
