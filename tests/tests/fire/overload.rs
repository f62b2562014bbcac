//! More than a service can take: what it accepts it answers in time, the rest it refuses with when to try again, its memory
//! stays bounded, and once there is less to do all is as before at once.

use std::{net::SocketAddr, time::Duration};

use emend_proto::{
    common::v1::ResourceKind,
    feedback::v1::{SubmitFeedbackRequest, Wait},
    learning::v1::{
        ImportAs, ImportHeader, ImportMode, ImportResourcesRequest, ImportRow, ImportRows,
        ListResourcesRequest, ListResourcesResponse, ResolveRequest, import_resources_request::Message,
        resource_service_client::ResourceServiceClient,
    },
};
use emend_runtime::{
    bounds::{Bounds, Patience},
    status::Explained,
};
use emend_tests::{
    faults::{
        proxy::{Fault, Gateway},
        runs::short_or_long,
    },
    harness::{
        Feedback, Heard, Learning, NAMESPACE, Subscriber, System, alias, answered, eventually,
        process::{Process, free_port, serving},
        refused,
        rpc::{ask_and_never_read, begin_and_never_send, channel, send_part_of_a_message},
        says,
        says::{alias_key, entity_value},
        start,
        system::{Database, Service, Settings},
        within,
    },
    load::{
        memory::{peak_during, resident},
        pressure::{Answers, capacity, press},
    },
};
use futures::{StreamExt as _, future::join_all, stream::FuturesUnordered};
use prost::Message as _;
use tokio::time::sleep;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::{Code, Request, Response, Status, transport::Endpoint};
use tonic_health::pb::{health_check_response::ServingStatus, health_client::HealthClient};

const MIB: u64 = 1024 * 1024;
/// How long callers wait: longer than a service may take that keeps to its bounds, also where the machine has other things to do.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long more submissions come than can be stored, in short runs.
const SHORT: Duration = Duration::from_secs(6);
/// Who is accepted waits two seconds at most until its group begins; groups take longer where there is little time for them.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(15);

fn timed<T>(message: T, deadline: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

/// A program of this workspace on a database of its own.
struct Served {
    process: Process,
    address: SocketAddr,
}

impl Served {
    async fn start(program: &str, service: &str, arguments: &[&str]) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port().await));
        let listen = ["--listen".to_owned(), address.to_string()];
        let all = listen
            .into_iter()
            .chain(arguments.iter().map(|argument| (*argument).to_owned()));
        let mut process = Process::start(program, all).await;
        process.ready(address, service).await;
        Self { process, address }
    }

    /// feedback-svc, whose learning-svc is away.
    async fn feedback(database: &Database, road: Option<&Gateway>) -> Self {
        let url = database.url(Service::Feedback, road);
        let away = Gateway::open().await.address().to_string();
        let arguments = ["--database-url", &url, "--learning-addr", &away];
        Self::start("feedback-svc", "emend.feedback.v1.FeedbackService", &arguments).await
    }

    /// How many submissions are stored.
    async fn stored(&self) -> usize {
        let feedback = Feedback::at(self.address);
        feedback.list(feedback.list_request(NAMESPACE)).await.len()
    }

    async fn learning(database: &Database) -> Self {
        let url = database.url(Service::Learning, None);
        let service = "emend.learning.v1.SubscriptionService";
        Self::start("learning-svc", service, &["--database-url", &url]).await
    }
}

/// The database is what is slow, as it would be: so callers, who share this machine with the service, can call more often
/// than it can take.
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

/// On SQLite there is no road to slow down: the service gets only a part of the time. Not for a minute: a process that has
/// no time even to refuse answers later and later, until callers give up. What it has not taken up waits in connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_times_the_submissions_that_can_be_stored_on_sqlite() {
    let database = Database::sqlite();
    let served = Served::feedback(&database, None).await;
    let drowsy = Drowsy::begin(served.process.id());
    let stored = three_times_the_submissions(&served, "submissions on SQLite", SHORT).await;
    drop(drowsy);
    assert_eq!(served.stored().await, stored);
}

/// A process that is stopped most of the time, until this is dropped.
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
        // After whatever was on its way.
        let woken = std::process::Command::new("sh")
            .args(["-c", &format!("sleep 0.2; kill -CONT {}", self.process)])
            .status();
        assert!(woken.is_ok_and(|status| status.success()), "it is woken");
    }
}

async fn signal(process: u32, name: &str) {
    let mut shell = tokio::process::Command::new("sh");
    // It may have ended.
    let _ = shell
        .args(["-c", &format!("kill -{name} {process}")])
        .status()
        .await;
}

/// Presses, and answers with how many submissions are stored in the end.
async fn three_times_the_submissions(served: &Served, what: &str, lasting: Duration) -> usize {
    const CALLERS: usize = 256;
    // More connections than one: each takes a thousand calls at once, and no more.
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

    // Those that were answered were answered in time: else they would be refusals of another kind.
    answers.assert_refused_properly();
    assert!(answers.refused() > 0, "{} were all accepted", answers.len());
    assert!(answers.accepted() > 0, "{} were all refused", answers.len());
    let p99 = answers.p99_of_accepted();
    assert!(p99 <= ACCEPTED_WITHIN, "{p99:?}");
    // 8,192 may wait, each with its call, what was parsed and what is to be sent: 12 KiB.
    assert!(
        peak <= before + 96 * MIB,
        "{} MiB more than {} MiB",
        (peak - before) / MIB,
        before / MIB
    );
    eprint_figures(what, rate, &answers, before, peak);

    let again = CALLERS;
    capacity(CALLERS / 4, again, &submit).await;
    // What was refused was not stored, and what was accepted was.
    calibrating + answers.accepted() + again
}

#[expect(clippy::print_stderr, reason = "figures for who asks for them")]
fn eprint_figures(what: &str, rate: f64, answers: &Answers, before: u64, peak: u64) {
    eprintln!(
        "{what}: capacity {rate:.0}/s, {} calls at three times that, {} accepted with p99 {:?}, {} refused; {} MiB, at most {} MiB",
        answers.len(),
        answers.accepted(),
        answers.p99_of_accepted(),
        answers.refused(),
        before / MIB,
        peak / MIB,
    );
}

fn row(line: i64) -> ImportRow {
    ImportRow {
        line,
        correction: Some(alias(
            &format!("alias {line}"),
            &format!("entity-{line}-{}", "x".repeat(80)),
        )),
        ..ImportRow::default()
    }
}

fn header() -> ImportHeader {
    ImportHeader {
        namespace: NAMESPACE.into(),
        mode: ImportMode::AllOrNothing.into(),
        import_as: ImportAs::Decision.into(),
        ..ImportHeader::default()
    }
}

async fn fill(learning: &Learning, rows: i64) {
    let rows = (1..=rows).map(row).collect();
    learning.import(header(), rows).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_times_the_reads_that_can_be_answered() {
    const CALLERS: usize = 32;
    const PAGE: u64 = MIB;
    let database = Database::sqlite();
    let served = Served::learning(&database).await;
    let learning = Learning::at(served.address);
    fill(&learning, 3_000).await;
    let clients: Vec<Learning> = (0..8).map(|_| Learning::at(served.address)).collect();
    let lasting = short_or_long(Duration::from_secs(2), Duration::from_secs(20));
    // However late an answer is here: whoever calls shares the machine with who answers, and what is asked takes three times
    // as long to answer as to ask.
    let patience = Duration::from_mins(1) + 3 * lasting;
    let read = move |number: usize| {
        let mut resources = clients[number % clients.len()].resources.clone();
        async move {
            if number.is_multiple_of(16) {
                let request = ListResourcesRequest {
                    namespace: NAMESPACE.into(),
                    page_size: 1_000,
                    ..ListResourcesRequest::default()
                };
                resources.list_resources(timed(request, patience)).await.map(drop)
            } else {
                let request = ResolveRequest {
                    namespace: NAMESPACE.into(),
                    kind: ResourceKind::EntityAlias.into(),
                    phrase: format!("alias {}", 1 + number % 3_000),
                    ..ResolveRequest::default()
                };
                resources.resolve(timed(request, patience)).await.map(drop)
            }
        }
    };
    let rate = capacity(CALLERS, 1_000, &read).await;
    let before = resident(served.process.id());
    let (answers, peak) = peak_during(served.process.id(), press(3.0 * rate, lasting, read.clone())).await;
    answers.assert_refused_properly();
    assert!(answers.accepted() > 0);
    // A page for every call that could be under way on one connection would be a thousand times this.
    let bound = 64 * MIB + 8 * CALLERS as u64 * PAGE;
    assert!(peak <= before + bound, "{} MiB more", (peak - before) / MIB);
    eprint_figures("reads", rate, &answers, before, peak);
    capacity(CALLERS, CALLERS, &read).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_calls_than_a_replica_takes_on_are_refused_at_once() {
    const PLACES: usize = 16;
    let settings = Settings {
        bounds: Bounds {
            calls: PLACES,
            ..Bounds::default()
        },
        ..Settings::default()
    };
    let system = System::start(Database::sqlite(), 1, 1, settings).await;
    let learning = system.learning();
    let first = learning.put(alias_key("jd"), entity_value("person-1")).await;
    // These wait for what is not there yet, each in a place of its own, if it finds one.
    let waiting: Vec<_> = (0..4 * PLACES)
        .map(|_| tokio::spawn(list_from(learning.clone(), first.revision + 1)))
        .collect();
    let one_more = eventually("all places are taken", || async {
        match list_from(learning.clone(), first.revision).await {
            Err(status) => Ok(status),
            Ok(_) => Err("there still is a place".to_owned()),
        }
    })
    .await;
    let refusal = refused(Err::<Response<()>, _>(one_more));
    assert_eq!(refusal.code, Code::ResourceExhausted, "{refusal}");
    assert_eq!(refusal.reason.as_deref(), Some("TOO_MANY_REQUESTS"));
    assert!(refusal.retry_after.is_some(), "{refusal}");
    // Health is told all the same.
    let health = HealthClient::new(learning.channel.clone());
    assert_eq!(serving(&health, "").await, Some(ServingStatus::Serving));
    let mut waited = 0;
    for waiting in waiting {
        let ended = waiting.await.unwrap().unwrap_err();
        // Only who had a place waited, until the replica's own bound on that.
        match ended.code() {
            Code::Unavailable => waited += 1,
            code => assert_eq!(code, Code::ResourceExhausted, "{ended}"),
        }
    }
    assert!((1..=PLACES).contains(&waited), "{waited}");
    assert!(list_from(learning.clone(), first.revision).await.is_ok());
    // Streams that have begun take no place, however many there are.
    let mut streams = Vec::new();
    for number in 0..2 * PLACES {
        let mut node = Subscriber::new(&format!("n-{number}"));
        node.begin(&learning.channel).await;
        streams.push(node);
    }
    assert!(list_from(learning.clone(), first.revision).await.is_ok());
    drop(streams);
    system.stop().await;
}

/// Calls that are begun and never ended, by one client from many connections: others are served all the while, and so is
/// that client as soon as it has gone on for too long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_client_that_ends_no_call_keeps_nobody_out() {
    const PLACES: usize = 64;
    let patience = Duration::from_secs(2);
    let settings = Settings {
        bounds: Bounds {
            calls: PLACES,
            patience: Patience {
                request: patience,
                response: patience,
            },
            ..Bounds::default()
        },
        ..Settings::default()
    };
    let database = Database::sqlite();
    let running = start::learning(&database.url(Service::Learning, None), &settings).await;
    let address = running.address();
    let hog = || {
        Endpoint::from_shared(format!("http://{address}"))
            .unwrap()
            .local_address(Some([127, 0, 0, 2].into()))
            .connect_lazy()
    };
    let path = "/emend.learning.v1.ResourceService/Resolve";
    let mut calls: FuturesUnordered<_> = (0..4)
        .map(|_| hog())
        .flat_map(|channel| {
            (0..PLACES).map(move |_| tokio::spawn(begin_and_never_send(channel.clone(), path)))
        })
        .collect();
    let mut ended = Vec::new();
    let mut next = async |calls: &mut FuturesUnordered<_>| {
        let call: Result<Result<(), Status>, _> = within("a call ends", calls.next()).await.unwrap();
        let status = call.unwrap().unwrap_err();
        ended.push(status.code());
        status.code()
    };
    // It has all that it gets.
    assert_eq!(next(&mut calls).await, Code::ResourceExhausted);
    for _ in 0..20 {
        assert!(list_from(Learning::at(address), 0).await.is_ok());
    }
    while !calls.is_empty() {
        next(&mut calls).await;
    }
    let stalled = ended.iter().filter(|code| **code == Code::Aborted).count();
    assert!((1..PLACES).contains(&stalled), "{stalled} took places: {ended:?}");
    let mut resources = ResourceServiceClient::new(hog());
    answered(
        resources
            .list_resources(ListResourcesRequest {
                namespace: NAMESPACE.into(),
                ..ListResourcesRequest::default()
            })
            .await,
    );
    running.stop().await;
}

/// Large requests of which the last piece never comes, of one client: what they hold is bounded however many there are, and
/// others' large requests are taken all the while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_requests_that_never_end_take_bounded_memory_and_keep_nobody_out() {
    const HELD: u64 = 8 * MIB;
    const LARGE: usize = 3 << 20;
    const CALLS: usize = 64;
    let database = Database::sqlite();
    let url = database.url(Service::Learning, None);
    let bounds = ["--database-url", &url, "--call-buffer-size=8MiB"];
    let served = Served::start("learning-svc", "emend.learning.v1.SubscriptionService", &bounds).await;
    let path = "/emend.learning.v1.ResourceService/Resolve";
    let before = resident(served.process.id());
    let large = async {
        let hog = (0..CALLS).map(|_| send_part_of_a_message(channel(served.address), path, LARGE));
        let mut hog: FuturesUnordered<_> = hog.collect();
        // There is room for one message of this client beside one of somebody else.
        for _ in 1..CALLS {
            let refusal = within("a call is refused", hog.next()).await.map(refused);
            let reason = refusal.as_ref().and_then(|refusal| refusal.reason.as_deref());
            assert_eq!(reason, Some("TOO_MANY_BYTES"), "{refusal:?}");
        }
        let elsewhere = Endpoint::from_shared(format!("http://{}", served.address))
            .unwrap()
            .local_address(Some([127, 0, 0, 2].into()))
            .connect_lazy();
        let mut elsewhere = ResourceServiceClient::new(elsewhere);
        for _ in 0..10 {
            let request = ResolveRequest {
                namespace: NAMESPACE.into(),
                phrase: "x".repeat(LARGE),
                ..ResolveRequest::default()
            };
            let refusal = refused(elsewhere.resolve(request).await);
            assert_eq!(refusal.code, Code::InvalidArgument, "it was read: {refusal}");
        }
    };
    let ((), peak) = peak_during(served.process.id(), large).await;
    // And what connections have not read yet, and what the refused had, which the allocator gives back later. All of them
    // together would have 192 MiB.
    let bound = HELD + 64 * MIB;
    assert!(peak <= before + bound, "{} MiB more", (peak - before) / MIB);
}

/// Answers that nobody reads, of one client: what they hold is bounded, and others are answered all the while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads_take_bounded_memory_and_keep_nobody_out() {
    const HELD: usize = 8 << 20;
    const CALLS: usize = 64;
    let settings = Settings {
        bounds: Bounds {
            bytes: HELD,
            ..Bounds::default()
        },
        ..Settings::default()
    };
    let database = Database::sqlite();
    let running = start::learning(&database.url(Service::Learning, None), &settings).await;
    let learning = Learning::at(running.address());
    fill(&learning, 3_000).await;
    let list = ListResourcesRequest {
        namespace: NAMESPACE.into(),
        page_size: 1_000,
        ..ListResourcesRequest::default()
    };
    let length = answered(learning.resources.clone().list_resources(list.clone()).await).encoded_len();
    let unread: Vec<_> = join_all((0..CALLS).map(|_| {
        let path = "/emend.learning.v1.ResourceService/ListResources";
        ask_and_never_read(running.address(), path, list.encode_to_vec().into())
    }))
    .await;
    let taken = unread.iter().filter(|answer| answer.is_ok()).count();
    assert!(
        (1..CALLS).contains(&taken) && taken * length <= HELD,
        "{taken} of {length} bytes"
    );
    for refusal in unread.iter().filter_map(|answer| answer.as_ref().err()) {
        let refusal = Explained::from(refusal);
        assert_eq!(refusal.reason.as_deref(), Some("TOO_MANY_BYTES"), "{refusal}");
    }
    let elsewhere = Endpoint::from_shared(format!("http://{}", running.address()))
        .unwrap()
        .local_address(Some([127, 0, 0, 2].into()))
        .connect_lazy();
    answered(
        ResourceServiceClient::new(elsewhere)
            .list_resources(list.clone())
            .await,
    );
    drop(unread);
    eventually("what was held is free", || async {
        let answer = learning.resources.clone().list_resources(list.clone()).await;
        answer.map(drop).map_err(|status| status.to_string())
    })
    .await;
    running.stop().await;
}

async fn list_from(learning: Learning, min_revision: i64) -> Result<ListResourcesResponse, Status> {
    let request = ListResourcesRequest {
        namespace: NAMESPACE.into(),
        min_revision,
        ..ListResourcesRequest::default()
    };
    let answer = learning.resources.clone().list_resources(request).await?;
    Ok(answer.into_inner())
}

/// Hundreds of subscribers that hold nothing come at once. Snapshots are cut a few at a time and shared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_subscribers_takes_bounded_memory_and_delays_nobody_for_good() {
    let count: u32 = short_or_long(150, 1_000);
    let database = Database::sqlite();
    let served = Served::learning(&database).await;
    let learning = Learning::at(served.address);
    fill(&learning, 3_000).await;
    let mut steady = Subscriber::of_everything("steady");
    steady.begin(&learning.channel).await;
    let before = resident(served.process.id());
    let storm = async {
        let storm = join_all((0..count).map(|number| {
            let learning = Learning::at(served.address);
            async move {
                let mut subscriber = Subscriber::of_everything(&format!("node-{number}"));
                // Who does not say a word within ten seconds is not waited for, and a thousand that are one process, busy with
                // what others of them are sent, may take longer: they come again, as nodes do.
                let mut refused = 0;
                while let Err(refusal) = subscriber.connect(&learning.channel).await {
                    refused += 1;
                    assert!(refused < 10, "{refusal}");
                }
                let begun = subscriber.next().await;
                assert!(matches!(begun, Heard::Snapshot { .. }), "{begun:?}");
                subscriber
            }
        }));
        let meanwhile = async {
            let put = learning.put(alias_key("jd"), entity_value("person-1")).await;
            steady.until(put.revision).await;
            put.revision
        };
        tokio::join!(storm, meanwhile)
    };
    let ((mut all, head), peak) = peak_during(served.process.id(), storm).await;
    // Per stream: its connection, what waits to be written, and its part of the one message that is being sent.
    let bound = 64 * MIB + u64::from(count) * MIB / 4;
    assert!(peak <= before + bound, "{} MiB more", (peak - before) / MIB);
    let stored = database.stored().resources().await;
    for subscriber in &mut all {
        subscriber.until(head).await;
        assert!(*subscriber.held() == stored, "{:?}", subscriber.request().node);
    }
    assert!(*steady.held() == stored, "the steady one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_imports_than_there_may_be_at_once_are_told_when_to_come_back() {
    let system = System::sqlite().await;
    let learning = system.learning();
    let finish = CancellationToken::new();
    let mut importing: FuturesUnordered<_> = (0..6)
        .map(|number| {
            let (mut resources, finish) = (learning.resources.clone(), finish.clone());
            let messages = unfinished(number, finish);
            tokio::spawn(async move { resources.import_resources(messages).await })
        })
        .collect();
    // Two have a place each and do not end; all others do.
    for _ in 0..4 {
        let ended = within("an import is refused", importing.next()).await;
        let refusal = refused(ended.unwrap().unwrap());
        assert_eq!(refusal.code, Code::ResourceExhausted, "{refusal}");
        assert!(refusal.retry_after.is_some(), "{refusal}");
    }
    finish.cancel();
    while let Some(import) = importing.next().await {
        answered(import.unwrap());
    }
    assert!(learning.import(header(), vec![row(1)]).await.is_ok());
    system.stop().await;
}

/// A header and rows, and then nothing more until it may finish.
fn unfinished(
    number: i64,
    finish: CancellationToken,
) -> impl futures::Stream<Item = ImportResourcesRequest> + Send + 'static {
    let message = |message| ImportResourcesRequest {
        message: Some(message),
    };
    let rows = ImportRows {
        rows: vec![row(100 + number)],
    };
    let first = [message(Message::Header(header())), message(Message::Rows(rows))];
    futures::stream::iter(first).chain(
        futures::stream::once(async move { finish.cancelled().await })
            .filter_map(|()| async { None::<ImportResourcesRequest> }),
    )
}
