//! Shutting down with much in progress: a thousand streams, submissions by the hundred, calls that are never finished,
//! readers that do not read, and an operator who loses patience.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error as _,
    net::SocketAddr,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use emend_proto::{
    feedback::v1::{SubmitFeedbackRequest, Wait},
    frame::Frame,
    learning::{
        encoded::subscription_service_client::SubscriptionServiceClient,
        v1::{ImportHeader, ImportRow, PutResourceRequest, SubscribeRequest},
    },
    wire::{Message, SubscribeResponse},
};
use emend_tests::{
    audit::stream::{
        Connection, Ending, Guarantee, Received, Recorder, Recording, RevisionLog, Run, everything, validate,
    },
    harness::{
        Feedback, Learning, NAMESPACE, alias,
        deployment::{Deployment, Up},
        eventually,
        process::Process,
        rpc::{answered, ask_and_never_read, begin_and_never_send, channel},
        says,
        says::{alias_key, entity_value},
        verb,
        wait::holds,
        within,
    },
};
use futures::{future::join_all, poll};
use prost::Message as _;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, task::JoinHandle};
use tonic::{Code, Status, Streaming, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

/// The exit code of every program here when it is signalled a second time.
const AT_ONCE: i32 = 130;
const STREAMS: usize = 1_000;
/// The connections that the streams share, so that no more files are open than systems commonly allow.
const CONNECTIONS: usize = 200;

/// Asks it to end and waits until it has ended.
async fn ends(process: &mut Process) -> ExitStatus {
    process.terminate().await;
    process.ended().await
}

/// Checks that it ended within its grace: anything unfinished by then is stopped hard, which it logs.
fn assert_good(status: ExitStatus, process: &Process) {
    let output = process.output();
    assert!(
        status.success() && !output.contains("stopping hard"),
        "{status}:\n{output}"
    );
}

/// Waits until it has acted on the first signal.
async fn is_ending(address: SocketAddr) {
    eventually("it stops accepting", || async {
        let connected = TcpStream::connect(address).await;
        holds(connected.is_err(), || "it still accepts".into())
    })
    .await;
}

/// Everything that a stream sends, to its end.
async fn listen(channel: Channel, request: SubscribeRequest, begun: Arc<AtomicUsize>) -> Recording {
    let mut connection = Connection {
        request: request.clone(),
        opened: 0,
        messages: Vec::new(),
        ending: Ending::Ended,
    };
    let mut client = SubscriptionServiceClient::new(channel);
    let mut stream = client.subscribe(request).await.unwrap().into_inner();
    loop {
        match within("a stream goes on or ends", stream.message()).await {
            Ok(Some(Frame(bytes))) => {
                let message = SubscribeResponse::decode(bytes).unwrap().message.unwrap();
                if matches!(message, Message::SnapshotEnd(_)) {
                    begun.fetch_add(1, Ordering::SeqCst);
                }
                connection.messages.push(Received { at: 0, message });
            }
            Ok(None) => break,
            Err(status) => {
                connection.ending = Ending::Broken(status.to_string());
                break;
            }
        }
    }
    Recording {
        subscriber: "one of a thousand".into(),
        connections: vec![connection],
        until: None,
        witnessed: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_a_thousand_streams_gets_a_bookmark_and_a_drain() {
    let mut deployment = Deployment::sqlite().await;
    // Without the gateway, which would hide how connections end.
    deployment.learning.kill().await;
    let address = deployment.start_learning().await;
    let learning = Learning::at(address);
    for n in 0..20 {
        let key = alias_key(&format!("name {n}"));
        learning.put(key, entity_value("person-1")).await;
    }
    let channels: Vec<_> = (0..CONNECTIONS).map(|_| channel(address)).collect();
    let begun = Arc::new(AtomicUsize::new(0));
    let streams: Vec<JoinHandle<Recording>> = (0..STREAMS)
        .map(|n| {
            let mut request = everything(&format!("node-{n}"));
            // No bookmark but the last.
            request.bookmark_interval = Some(prost_types::Duration {
                seconds: 3_600,
                nanos: 0,
            });
            request.include_user_scoped = n.is_multiple_of(2);
            tokio::spawn(listen(
                channels[n % CONNECTIONS].clone(),
                request,
                Arc::clone(&begun),
            ))
        })
        .collect();
    eventually("all streams have begun", || async {
        let begun = begun.load(Ordering::SeqCst);
        holds(begun == STREAMS, || format!("{begun} of {STREAMS}"))
    })
    .await;
    // A writer writes until it is too late.
    let writing = tokio::spawn(async move {
        for n in 0.. {
            let request = PutResourceRequest {
                key: Some(alias_key(&format!("name {}", n % 20))),
                value: Some(entity_value(&format!("person-{n}"))),
                reason: "an operator's decision".into(),
                ..PutResourceRequest::default()
            };
            if learning.resources.clone().put_resource(request).await.is_err() {
                return n;
            }
        }
        unreachable!("it is ended")
    });
    let head = deployment.learning().head().await;
    eventually("the writer is at work", || async {
        let now = deployment.learning().head().await;
        holds(now > head + 5, || format!("{head} to {now}"))
    })
    .await;

    let process = deployment.learning.process.as_mut().unwrap();
    let status = ends(process).await;
    assert_good(status, process);
    assert!(within("the writer ends", writing).await.unwrap() > 5);
    let log = RevisionLog::read(&deployment.stored()).await;
    let mut delays = Vec::new();
    for stream in join_all(streams).await {
        let recording = stream.unwrap();
        let connection = &recording.connections[0];
        assert_eq!(connection.ending, Ending::Ended);
        let [.., bookmark, farewell] = &connection.messages[..] else {
            panic!("{connection:?}")
        };
        assert!(matches!(bookmark.message, Message::Bookmark(_)), "{bookmark:?}");
        let Message::Drain(drain) = &farewell.message else {
            panic!("{farewell:?}")
        };
        assert_eq!(drain.reason, "SHUTDOWN");
        let after = drain.reconnect_after.unwrap();
        delays.push(std::time::Duration::try_from(after).unwrap());
        let summary = validate(&recording, &log).unwrap();
        assert!(summary.checked(Guarantee::Reliable) > 0);
    }
    // Spread, so that a thousand do not reconnect at once: with a thousand uniform delays over five seconds, it is
    // beyond chance that one of ten intervals gets none.
    let parts: BTreeSet<u128> = delays.iter().map(|delay| delay.as_millis() / 500).collect();
    assert_eq!(parts, (0..10).collect(), "{delays:?}");
}

/// Submits until refused; answers with what was acknowledged and with how the end was announced.
async fn submit_until_refused(
    feedback: Feedback,
    writer: usize,
    acknowledged: Arc<AtomicUsize>,
) -> (Vec<String>, String, Status) {
    let mut ids = Vec::new();
    for n in 0.. {
        let reporter = format!("reporter-{writer}-{n}");
        let request = SubmitFeedbackRequest {
            request_id: format!("{writer}-{n}"),
            // Some wait for more than storage.
            wait: if writer.is_multiple_of(2) {
                Wait::Recorded
            } else {
                Wait::Evaluated
            }
            .into(),
            ..says(&reporter, verb(&format!("phrase {writer}"), "create_csa"))
        };
        let mut service = feedback.service.clone();
        match within("a submission is answered", service.submit_feedback(request)).await {
            Ok(answer) => {
                ids.push(answer.into_inner().feedback.unwrap().feedback_id);
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
            Err(status) => return (ids, reporter, status),
        }
    }
    unreachable!("it is ended")
}

/// Whether the client's own transport says that the call never left, or that the server had sent GOAWAY before it
/// arrived: the server's last GOAWAY names the calls that it accepted.
fn was_not_taken(refusal: &Status) -> bool {
    let why = refusal.source().map(|why| format!("{why:?}")).unwrap_or_default();
    match refusal.code() {
        Code::Cancelled => why.contains("connection closed") || why.contains("connection was not ready"),
        Code::Internal => why.contains("NO_ERROR, Remote"),
        _ => false,
    }
}

/// Whether the connection was reset: the server closes it a second after its last byte, and a client that the machine keeps
/// from reading for so long cannot know whether its call was taken.
fn was_reset(refusal: &Status) -> bool {
    let why = refusal.source().map(|why| format!("{why:?}")).unwrap_or_default();
    refusal.code() == Code::Unknown && why.contains("ConnectionReset")
}

async fn submissions_are_stored_or_refused(mut deployment: Deployment) {
    deployment.feedback.kill().await;
    let address = deployment.start_feedback().await;
    let acknowledged = Arc::new(AtomicUsize::new(0));
    // Ten writers per connection, so that each has much in flight.
    let connections: Vec<Feedback> = (0..10).map(|_| Feedback::at(address)).collect();
    let writers: Vec<_> = (0..100)
        .map(|writer| {
            let feedback = connections[writer % 10].clone();
            let acknowledged = Arc::clone(&acknowledged);
            tokio::spawn(submit_until_refused(feedback, writer, acknowledged))
        })
        .collect();
    eventually("all are at work", || async {
        let acknowledged = acknowledged.load(Ordering::SeqCst);
        holds(acknowledged > 300, || format!("{acknowledged} acknowledged"))
    })
    .await;
    let process = deployment.feedback.process.as_mut().unwrap();
    let status = ends(process).await;
    assert_good(status, process);

    let mut ids = Vec::new();
    let (mut refusals, mut untaken) = (BTreeMap::<String, usize>::new(), BTreeSet::new());
    let mut reset = 0;
    for writer in writers {
        let (own, reporter, refusal) = within("no submission hangs", writer).await.unwrap();
        ids.extend(own);
        if was_reset(&refusal) {
            reset += 1;
        } else if refusal.code() != Code::Unavailable {
            assert!(was_not_taken(&refusal), "{refusal:?}");
            untaken.insert(reporter);
        }
        *refusals.entry(refusal.message().to_owned()).or_default() += 1;
    }
    println!("{} acknowledged; refused by {refusals:?}", ids.len());
    assert!(reset < 50, "{reset} of 100 submissions were reset");
    deployment.start_feedback().await;
    let stored = deployment.feedback().all_delivered(NAMESPACE).await;
    let reporters: BTreeSet<String> = stored
        .iter()
        .filter_map(|feedback| Some(feedback.reporter.as_ref()?.id.clone()))
        .collect();
    let taken: Vec<&String> = untaken.intersection(&reporters).collect();
    assert!(
        taken.is_empty(),
        "told that it was not taken, and stored: {taken:?}"
    );
    let stored: BTreeSet<String> = stored.into_iter().map(|feedback| feedback.feedback_id).collect();
    let lost: Vec<&String> = ids.iter().filter(|id| !stored.contains(*id)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submissions_in_flight_are_stored_or_refused_and_none_hangs_on_sqlite() {
    submissions_are_stored_or_refused(Deployment::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submissions_in_flight_are_stored_or_refused_and_none_hangs_on_postgresql() {
    if let Some(deployment) = Deployment::postgres().await {
        submissions_are_stored_or_refused(deployment).await;
    }
}

/// A call in progress whose request never arrives.
async fn half_sent(address: SocketAddr, path: &'static str) -> JoinHandle<Result<(), Status>> {
    let channel = channel(address);
    let mut call = Box::pin(begin_and_never_send(channel.clone(), path));
    assert!(poll!(&mut call).is_pending(), "nobody is connected yet");
    let call = tokio::spawn(call);
    // A later request on the same connection arrives later, so by its answer the server knows of the call.
    answered(
        HealthClient::new(channel)
            .check(HealthCheckRequest::default())
            .await,
    );
    call
}

/// Connections that never send anything, that start to and stop, or that send HTTP/2's preface and nothing more.
async fn half_open(address: SocketAddr) -> Vec<TcpStream> {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = b"\0\0\0\x04\0\0\0\0\0";
    let whole = [&preface[..], settings].concat();
    // HEADERS whose rest, in CONTINUATION frames, never comes.
    let headers = [&whole[..], b"\0\0\x01\x01\0\0\0\0\x01\x83"].concat();
    let mut connections = Vec::new();
    for said in [
        b"".as_slice(),
        b"PRI * HTTP/2",
        b"GET / HTTP/1.1\r\n",
        preface,
        &whole,
        &headers,
    ] {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(said).await.unwrap();
        connections.push(connection);
    }
    connections
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_connections_and_calls_do_not_delay_the_shutdown() {
    let mut up = Up::start().await;
    let mut connections = Vec::new();
    for address in [up.feedback, up.learning] {
        connections.extend(half_open(address).await);
    }
    let feedback = Feedback::at(up.feedback);
    feedback.list(feedback.list_request(NAMESPACE)).await;
    let ingest = half_sent(up.learning, "/emend.learning.v1.IngestService/Ingest").await;
    let calls = join_all([
        half_sent(up.feedback, "/emend.feedback.v1.FeedbackService/SubmitFeedback"),
        half_sent(up.learning, "/emend.learning.v1.ResourceService/ImportResources"),
        half_sent(up.learning, "/emend.learning.v1.SubscriptionService/Subscribe"),
        half_sent(up.learning, "/emend.learning.v1.ResourceService/GetResource"),
    ])
    .await;
    let status = ends(&mut up.process).await;
    assert_good(status, &up.process);
    let output = up.process.output();
    assert!(
        !output.contains("stopping hard"),
        "shut down gracefully:\n{output}"
    );
    // Nothing was sent, so there is nothing to refuse.
    within("ingesting ends", ingest).await.unwrap().unwrap();
    for call in calls {
        let refusal = within("no call hangs", call).await.unwrap().unwrap_err();
        assert_eq!(refusal.code(), Code::Unavailable, "{refusal:?}");
    }
}

/// A subscriber that reads nothing of what it is sent, so that a Drain can't reach it.
async fn deaf(address: SocketAddr) -> Recorder {
    let learning = Learning::at(address);
    let recorder = Recorder::start(&Run::new(), address, everything("deaf"));
    recorder.reaches(0).await;
    recorder.stall();
    // More than its window.
    let rows = (1..=200).map(|line| ImportRow {
        line,
        correction: Some(alias(&format!("{line} {}", "x".repeat(450)), "person-1")),
        user_id: String::new(),
    });
    let header = ImportHeader {
        namespace: NAMESPACE.into(),
        ..ImportHeader::default()
    };
    learning.import(header, rows.collect()).await.unwrap();
    recorder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_delays_the_shutdown_to_its_deadline_at_most() {
    let mut up = Up::start().await;
    let deaf = deaf(up.learning).await;
    // Its deadline is ten seconds. The harness waits longer, so that the process either ends by itself or is reported
    // here.
    let status = ends(&mut up.process).await;
    assert!(status.success(), "{status}:\n{}", up.process.output());
    drop(deaf);
}

/// A response larger than the window of a client that does not read.
async fn unread(address: SocketAddr) -> Streaming<Frame> {
    let feedback = Feedback::at(address);
    feedback
        .submit(says("jane", verb("set up a csa", "create_csa")))
        .await;
    let message = feedback.list_request(NAMESPACE).encode_to_vec().into();
    let path = "/emend.feedback.v1.FeedbackService/ListFeedback";
    ask_and_never_read(address, path, message).await.unwrap()
}

/// One signal asks it to end; something holds it up; a second signal ends it immediately.
async fn is_ended_by_a_second_signal(signal: &str, process: &mut Process, address: SocketAddr) {
    process.signal(signal).await;
    is_ending(address).await;
    process.signal(signal).await;
    let status = process.ended().await;
    assert_eq!(status.code(), Some(AT_ONCE), "{status}:\n{}", process.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_each_program_at_once() {
    let mut deployment = Deployment::sqlite().await;
    deployment.learning.kill().await;
    deployment.feedback.kill().await;
    let learning = deployment.start_learning().await;
    let feedback = deployment.start_feedback().await;
    let _deaf = deaf(learning).await;
    let process = deployment.learning.process.as_mut().unwrap();
    is_ended_by_a_second_signal("TERM", process, learning).await;

    let _unread = unread(feedback).await;
    let process = deployment.feedback.process.as_mut().unwrap();
    is_ended_by_a_second_signal("INT", process, feedback).await;

    for signal in ["TERM", "INT"] {
        let mut up = Up::start().await;
        let _deaf = deaf(up.learning).await;
        is_ended_by_a_second_signal(signal, &mut up.process, up.learning).await;
    }
}
