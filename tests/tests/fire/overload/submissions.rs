//! More submissions than can be stored.

use std::time::Duration;

use emend_proto::feedback::v1::{SubmitFeedbackRequest, Wait};
use emend_tests::{
    faults::{proxy::Fault, runs::short_or_long},
    harness::{Feedback, alias, says, system::Database},
    load::{
        memory::{peak_during, resident},
        pressure::{capacity, press},
    },
};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::{DEADLINE, MIB, Served, eprint_figures, timed};

/// How long the overload lasts in short runs.
const SHORT: Duration = Duration::from_secs(6);
/// An accepted submission waits at most two seconds until its group begins; on a busy machine the group itself takes
/// longer.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(15);

/// The database is slow, as it would be in practice, so that callers, who share this machine with the service, can call
/// more often than it can take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_times_the_submissions_that_can_be_stored() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let road = database.road().await.unwrap();
    let served = Served::feedback(&database, Some(&road)).await;
    road.suffer([Fault::Delay(Duration::from_millis(100))], 1);
    let lasting = short_or_long(SHORT, Duration::from_mins(1));
    let before_healing = three_times_the_submissions(&served, "submissions on PostgreSQL", lasting).await;
    road.heal();
    assert_eq!(served.stored().await, before_healing);
}

/// On SQLite there is no connection to slow down; instead the service gets only part of the time. It lasts less than a
/// minute, because a process without even the time to refuse answers later and later, until callers give up. What it
/// has not read waits in its connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_times_the_submissions_that_can_be_stored_on_sqlite() {
    let database = Database::sqlite();
    let served = Served::feedback(&database, None).await;
    let drowsy = Drowsy::begin(served.process.id());
    let stored = three_times_the_submissions(&served, "submissions on SQLite", SHORT).await;
    drop(drowsy);
    assert_eq!(served.stored().await, stored);
}

/// Keeps a process stopped most of the time, until it is dropped.
struct Drowsy {
    process: u32,
    stopping: AbortOnDropHandle<()>,
}

impl Drowsy {
    fn begin(process: u32) -> Self {
        let stopping = tokio::spawn(async move {
            loop {
                signal(process, "STOP").await;
                sleep(Duration::from_millis(90)).await;
                signal(process, "CONT").await;
                sleep(Duration::from_millis(10)).await;
            }
        });
        Self {
            process,
            stopping: AbortOnDropHandle::new(stopping),
        }
    }
}

impl Drop for Drowsy {
    fn drop(&mut self) {
        self.stopping.abort();
        // After any signal still on its way.
        let woken = std::process::Command::new("sh")
            .args(["-c", &format!("sleep 0.2; kill -CONT {}", self.process)])
            .status();
        assert!(woken.is_ok_and(|status| status.success()), "it is woken");
    }
}

async fn signal(process: u32, name: &str) {
    let mut shell = tokio::process::Command::new("sh");
    // The process may have ended.
    let _ = shell
        .args(["-c", &format!("kill -{name} {process}")])
        .status()
        .await;
}

/// Applies the overload, and answers with how many submissions are stored in the end.
async fn three_times_the_submissions(served: &Served, what: &str, lasting: Duration) -> usize {
    const CALLERS: usize = 256;
    // Several connections, because each carries at most a thousand calls at a time.
    let clients: Vec<Feedback> = (0..8).map(|_| Feedback::at(served.address)).collect();
    let submit = move |number: usize| {
        let mut service = clients[number % clients.len()].service.clone();
        let request = SubmitFeedbackRequest {
            wait: Wait::Recorded.into(),
            ..says(&format!("reporter-{number}"), alias("jd", "person-1"))
        };
        async move { service.submit_feedback(timed(request, DEADLINE)).await.map(drop) }
    };
    let calibrating = short_or_long(1_000, 5_000);
    let rate = capacity(CALLERS, calibrating, &submit).await;
    let before = resident(served.process.id());
    let pressed = press(3.0 * rate, lasting, submit.clone());
    let (answers, peak) = peak_during(served.process.id(), pressed).await;

    // Answered calls were answered in time; otherwise they would be refusals of another kind.
    answers.assert_refused_properly();
    assert!(answers.refused() > 0, "{} were all accepted", answers.len());
    assert!(answers.accepted() > 0, "{} were all refused", answers.len());
    let p99 = answers.p99_of_accepted();
    assert!(p99 <= ACCEPTED_WITHIN, "{p99:?}");
    // 8,192 may wait, each with its call, the parsed request and the response to send: 12 KiB.
    assert!(
        peak <= before + 96 * MIB,
        "{} MiB more than {} MiB",
        (peak - before) / MIB,
        before / MIB
    );
    eprint_figures(what, rate, &answers, before, peak);

    let again = CALLERS;
    capacity(CALLERS / 4, again, &submit).await;
    // What was refused was not stored; what was accepted was.
    calibrating + answers.accepted() + again
}
