//! More submissions than can be stored.

use std::{str::FromStr as _, time::Duration};

use emend_proto::feedback::v1::{SubmitFeedbackRequest, Wait};
use emend_tests::{
    faults::{proxy::Fault, runs::short_or_long},
    harness::{
        Feedback, alias, says,
        system::{Database, Service},
    },
    load::{
        memory::{peak_during, resident},
        pressure::{capacity, press},
    },
};
use sqlx::{ConnectOptions as _, Connection as _, sqlite::SqliteConnectOptions};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

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
    let calibrating = short_or_long(1_000, 5_000);
    let what = "submissions on PostgreSQL";
    let before_healing = three_times_the_submissions(&served, what, calibrating, lasting).await;
    road.heal();
    assert_eq!(served.stored().await, before_healing);
}

/// On SQLite there is no connection to slow down; instead somebody else writes to the file most of the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_times_the_submissions_that_can_be_stored_on_sqlite() {
    let database = Database::sqlite();
    let served = Served::feedback(&database, None).await;
    let mut other = OtherWriter::begin(&database).await;
    let lasting = short_or_long(SHORT, Duration::from_mins(1));
    // For about ten of the other writer's periods.
    let pressed = three_times_the_submissions(&served, "submissions on SQLite", 4_000, lasting);
    let stored = tokio::select! {
        stored = pressed => stored,
        ended = &mut other.writing => panic!("the other writer ended: {ended:?}"),
    };
    other.end().await;
    assert_eq!(served.stored().await, stored);
}

/// Holds the write lock of feedback-svc's SQLite file most of the time.
struct OtherWriter {
    ending: DropGuard,
    writing: JoinHandle<Result<(), sqlx::Error>>,
}

impl OtherWriter {
    /// How long it holds the lock.
    const HOLDS: Duration = Duration::from_millis(400);
    /// How long it leaves the lock to others: longer than the longest pause between two tries of SQLite's.
    const PAUSES: Duration = Duration::from_millis(150);

    /// How long it waits before it tries again to lock.
    const TRIES: Duration = Duration::from_millis(1);

    async fn begin(database: &Database) -> Self {
        let url = database.url(Service::Feedback, None);
        // SQLite would pause between two tries for longer than the service does between two groups.
        let options = SqliteConnectOptions::from_str(&url)
            .unwrap()
            .busy_timeout(Duration::ZERO);
        let mut connection = options.connect().await.unwrap();
        let ended = CancellationToken::new();
        let ending = ended.clone().drop_guard();
        let writing = tokio::spawn(async move {
            while !ended.is_cancelled() {
                let Ok(transaction) = connection.begin_with("BEGIN IMMEDIATE").await else {
                    sleep(Self::TRIES).await;
                    continue;
                };
                sleep(Self::HOLDS).await;
                transaction.rollback().await?;
                sleep(Self::PAUSES).await;
            }
            connection.close().await
        });
        Self { ending, writing }
    }

    async fn end(self) {
        drop(self.ending);
        self.writing.await.unwrap().unwrap();
    }
}

/// Applies the overload, and answers with how many submissions are stored in the end.
async fn three_times_the_submissions(
    served: &Served,
    what: &str,
    calibrating: usize,
    lasting: Duration,
) -> usize {
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
    // 8,192 may wait, each with its call, the parsed request and the response to send: 16 KiB in a build without
    // optimisation, of which 11 to 14 were measured.
    assert!(
        peak <= before + 128 * MIB,
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
