//! Shutting down: whatever is connected and however it behaves, each process ends gracefully and in time.

use std::{net::SocketAddr, time::Duration};

use emend_proto::{feedback::v1::Wait, learning::v1::IngestRequest};
use emend_tests::harness::{
    Database, Feedback, Learning, StreamEvent, Subscriber,
    deployment::{Deployment, Up},
    node::Node,
    process::{Process, free_port},
    says,
    system::Service,
    verb,
};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{Instant, timeout},
};

/// Far less than supervisors commonly wait before they kill: nothing here is worth waiting for.
const IN_TIME: Duration = Duration::from_secs(8);
/// The beginning of HTTP/2's preface.
const HALF_A_PREFACE: &[u8] = b"PRI * HTTP/2";

/// Connections that never send anything, or start to and stop.
async fn half_open(address: SocketAddr) -> Vec<TcpStream> {
    let mut connections = Vec::new();
    for said in [b"".as_slice(), HALF_A_PREFACE, b"G"] {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(said).await.unwrap();
        connections.push(connection);
    }
    connections
}

async fn ends_in_time(process: &mut Process) {
    let begun = Instant::now();
    process.terminate().await;
    let status = timeout(IN_TIME, process.ended()).await;
    let status = status.unwrap_or_else(|_| panic!("still there after {IN_TIME:?}:\n{}", process.output()));
    assert!(
        status.success(),
        "{status} after {:?}:\n{}",
        begun.elapsed(),
        process.output()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sighup_ends_no_service_even_with_nothing_to_reload() {
    let mut deployment = Deployment::sqlite().await;
    for service in [&mut deployment.feedback, &mut deployment.learning] {
        let process = service.process.as_mut().unwrap();
        process.signal("HUP").await;
        // Gracefully, and not killed by the signal.
        ends_in_time(process).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_service_ends_in_time_whatever_is_connected() {
    let mut deployment = Deployment::sqlite().await;
    // Without the gateways, which would hide how connections end.
    deployment.learning.kill().await;
    deployment.feedback.kill().await;
    let learning_at = deployment.start_learning().await;
    let feedback_at = deployment.start_feedback().await;
    let (feedback, learning) = (Feedback::at(feedback_at), Learning::at(learning_at));
    feedback
        .learn(says("jane", verb("set up a csa", "create_csa")))
        .await;

    let mut subscriber = Subscriber::new("n");
    subscriber.begin(&learning.channel).await;
    let _node = Node::start(learning_at, "search-1").await;
    let _silent = (half_open(feedback_at).await, half_open(learning_at).await);
    // An ingest stream on which nothing is sent, with its sender held open.
    let (_sender, batches) = tokio::sync::mpsc::channel::<IngestRequest>(1);
    let batches = tokio_stream::wrappers::ReceiverStream::new(batches);
    let mut client = learning.ingest.clone();
    let ingesting = tokio::spawn(async move { client.ingest(batches).await });
    let idle = Feedback::at(feedback_at);
    idle.list(idle.list_request("fund-admin")).await;

    let listening = tokio::spawn(async move {
        let farewell = subscriber
            .until_heard(|heard| match heard {
                StreamEvent::Drain(reason) => Some(reason.clone()),
                _ => None,
            })
            .await;
        (farewell, subscriber.next().await)
    });
    ends_in_time(deployment.learning.process.as_mut().unwrap()).await;
    assert_eq!(
        listening.await.unwrap(),
        ("SHUTDOWN".to_owned(), StreamEvent::End)
    );
    ingesting.abort();

    // A caller waits for an evaluation that will not come.
    let waiting = tokio::spawn(async move {
        let request = says("tom", verb("set up a csa", "create_csa"));
        assert_eq!(request.wait(), Wait::Evaluated);
        feedback.service.clone().submit_feedback(request).await
    });
    ends_in_time(deployment.feedback.process.as_mut().unwrap()).await;
    // Told that it is stored, or refused because it came too late: answered in either case.
    match waiting.await.unwrap() {
        Ok(answer) => assert!(answer.into_inner().feedback.is_some()),
        Err(status) => assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emend_up_ends_in_time_whatever_is_connected() {
    let mut up = Up::start().await;
    let (feedback, learning) = (Feedback::at(up.feedback), Learning::at(up.learning));
    feedback
        .learn(says("jane", verb("set up a csa", "create_csa")))
        .await;
    let mut subscriber = Subscriber::new("n");
    subscriber.begin(&learning.channel).await;
    let _silent = (half_open(up.feedback).await, half_open(up.learning).await);
    ends_in_time(&mut up.process).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emend_up_keeps_its_data_over_a_restart_in_the_same_directory() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_string_lossy().into_owned();
    let arguments = [
        "up",
        "--data-dir",
        &data,
        "--feedback-addr",
        "127.0.0.1:0",
        "--learning-addr",
        "127.0.0.1:0",
    ];
    let mut head = 0;
    for round in 1..=2 {
        let mut process = Process::start("emend", arguments).await;
        let learning = process
            .says("where learning-svc listens", |line| {
                let (_, learning) = line.split_once(" learning=")?;
                learning.split(' ').next()?.parse::<SocketAddr>().ok()
            })
            .await;
        let learning = Learning::at(learning);
        assert_eq!(learning.head().await, head);
        let key = emend_tests::harness::says::alias_key(&format!("name {round}"));
        head = learning
            .put(key, emend_tests::harness::says::entity_value("person-1"))
            .await
            .revision;
        ends_in_time(&mut process).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_flight_at_shutdown_are_answered() {
    let mut deployment = Deployment::sqlite().await;
    let feedback = deployment.feedback();
    let submissions: Vec<_> = (0..50)
        .map(|n| {
            let feedback = feedback.clone();
            tokio::spawn(async move {
                let request = says(&format!("reporter-{n}"), verb("set up a csa", "create_csa"));
                feedback.service.clone().submit_feedback(request).await
            })
        })
        .collect();
    ends_in_time(deployment.feedback.process.as_mut().unwrap()).await;
    let mut acknowledged = Vec::new();
    for submission in submissions {
        if let Ok(answer) = submission.await.unwrap() {
            acknowledged.push(answer.into_inner().feedback.unwrap().feedback_id);
        }
    }
    deployment.start_feedback().await;
    let stored = deployment.feedback().all_delivered("fund-admin").await;
    for id in &acknowledged {
        assert!(
            stored.iter().any(|stored| stored.feedback_id == *id),
            "{id} was acknowledged"
        );
    }
    let candidates = deployment.learning().candidates_for("set up a csa").await;
    let counted: i64 = candidates
        .iter()
        .map(|candidate| candidate.occurrence_count)
        .sum();
    assert_eq!(counted, i64::try_from(stored.len()).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_database_does_not_delay_the_shutdown() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let road = database.road().await.unwrap();
    let url = database.url(Service::Feedback, Some(&road));
    let listen = format!("127.0.0.1:{}", free_port().await);
    let arguments = ["--listen", &listen, "--database-url", &url, "--shutdown-grace=1s"];
    let mut process = Process::start("feedback-svc", arguments).await;
    process.ready(&listen, "emend.feedback.v1.FeedbackService").await;
    let feedback = Feedback::at(&listen);
    let submit = async || {
        let said = says("jane", verb("set up a csa", "create_csa"));
        feedback.submit(said).await
    };
    submit().await;

    road.hold();
    // The service's and the database's timeouts are longer than this.
    timeout(Duration::from_secs(1), submit()).await.unwrap_err();
    ends_in_time(&mut process).await;
}
