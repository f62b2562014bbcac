//! Connections and the server end in time, whatever the other side does.

use std::{future::ready, io, net, sync::atomic::Ordering, time::Duration};

use emend_base::{lifecycle::Shutdown, telemetry::metrics::Metrics};
use emend_serve::{health::LIVENESS, metrics::ServerMetrics, server::bounds::Bounds};
use futures::{StreamExt as _, stream};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tonic::{
    Code, Request,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint, Uri},
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::{
    harness::{LARGE, Running, SOON, TALKATIVE, closed, follow},
    library::{IMPORT, LIST, SERVICE, Text, call},
};

#[tokio::test]
async fn connections_without_a_complete_preface_do_not_delay_a_soft_stop() {
    let server = Running::start().await;
    let idle = TcpStream::connect(server.address).await.unwrap();
    let mut half_open = TcpStream::connect(server.address).await.unwrap();
    half_open.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap();
    // One request, so that both have certainly been accepted.
    assert_eq!(server.health(LIVENESS).await, Ok(ServingStatus::Serving));

    let started = Instant::now();
    assert_eq!(
        server.lifecycle.shutdown(Duration::from_secs(10)).await,
        Shutdown::Graceful
    );
    assert!(started.elapsed() < Duration::from_secs(10));
    closed(idle).await;
    closed(half_open).await;
    assert!(
        TcpStream::connect(server.address).await.is_err(),
        "the listener is closed"
    );
}

#[tokio::test]
async fn one_address_cannot_have_all_connections() {
    let metrics = Metrics::new();
    let bounds = Bounds {
        connections: 8,
        ..Bounds::default()
    };
    let server =
        Running::with(|server| server.bounds(bounds).metrics(ServerMetrics::of(&metrics).rpc())).await;
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(TcpStream::connect(server.address).await.unwrap());
    }
    // It has three quarters of all, and no share in the rest.
    closed(TcpStream::connect(server.address).await.unwrap()).await;

    let elsewhere = Channel::from_shared(format!("http://{}", server.address))
        .unwrap()
        .local_address(Some([127, 0, 0, 2].into()));
    let mut elsewhere = HealthClient::new(elsewhere.connect().await.unwrap());
    elsewhere.check(HealthCheckRequest::default()).await.unwrap();

    let rendered = metrics.render();
    for line in ["emend_connections 7", "emend_connections_refused_total 1"] {
        assert!(rendered.lines().any(|found| found == line), "{line}:\n{rendered}");
    }

    drop(held);
    // Permits are released.
    let here = Channel::from_shared(format!("http://{}", server.address)).unwrap();
    let mut here = HealthClient::new(here.connect_lazy());
    let answered = async {
        while here.check(HealthCheckRequest::default()).await.is_err() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, answered).await.expect("there is room again");
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn an_old_connection_takes_no_new_calls_and_its_streams_continue() {
    let metrics = Metrics::new();
    let bounds = Bounds {
        connection_age: Some(Duration::from_millis(100)),
        ..Bounds::default()
    };
    let server =
        Running::with(|server| server.bounds(bounds).metrics(ServerMetrics::of(&metrics).rpc())).await;
    let mut client = HealthClient::new(server.channel().await);
    let asked = HealthCheckRequest {
        service: SERVICE.to_owned(),
    };
    let mut watching = client.watch(asked).await.unwrap().into_inner();
    let first = watching.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::NotServing);
    // The client is told to reconnect.
    let is_moved = || metrics.render().lines().any(|line| line == "emend_connections 2");
    let moved = async {
        while !is_moved() {
            // tonic abandons a call that is not sent yet when GOAWAY arrives; such a call may be repeated.
            if let Err(status) = client.check(HealthCheckRequest::default()).await {
                assert_eq!(status.code(), Code::Cancelled, "{status}");
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, moved)
        .await
        .expect("calls come by another connection");
    for check in ["database", "tailer"] {
        server.readiness.set(check, true);
    }
    let next = watching.message().await.unwrap().unwrap();
    assert_eq!(next.status(), ServingStatus::Serving, "on the old connection");
    drop(watching);
    server.lifecycle.shutdown(SOON).await;
}

#[tokio::test]
async fn a_client_that_never_answers_the_settings_is_cut_at_the_hard_deadline() {
    let server = Running::start().await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    silent
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    let mut settings = [0; 9];
    silent.read_exact(&mut settings).await.unwrap();

    let started = Instant::now();
    server.lifecycle.shutdown(Duration::from_millis(300)).await;
    assert!(started.elapsed() < Duration::from_secs(3));
    closed(silent).await;
}

#[tokio::test]
async fn streams_and_calls_that_do_not_end_are_cut_at_the_hard_deadline() {
    let server = Running::start().await;
    let mut updates = server.follow().await;
    let call = tokio::spawn(call(server.channel().await, LIST, Text::default()));
    let mut watching = server.watch(SERVICE).await;
    assert_eq!(
        watching.message().await.unwrap().unwrap().status(),
        ServingStatus::NotServing
    );

    let started = Instant::now();
    assert_eq!(
        server.lifecycle.shutdown(Duration::from_millis(300)).await,
        Shutdown::Forced
    );
    let took = started.elapsed();
    assert!(
        (Duration::from_millis(300)..Duration::from_secs(3)).contains(&took),
        "{took:?}"
    );
    assert!(
        timeout(SOON, updates.message()).await.unwrap().is_err(),
        "the stream is cut"
    );
    assert!(
        timeout(SOON, call).await.unwrap().unwrap().is_err(),
        "the call is cut"
    );
    assert_eq!(
        watching.message().await.unwrap().unwrap().status(),
        ServingStatus::NotServing
    );
    assert!(
        matches!(watching.message().await, Ok(None)),
        "the watch ended properly"
    );
}

#[tokio::test]
async fn a_stream_in_progress_may_end_within_the_grace() {
    let server = Running::start().await;
    let updates = server.follow().await;
    let lifecycle = server.lifecycle.clone();
    let stopping = tokio::spawn(async move { lifecycle.shutdown(SOON).await });
    server.lifecycle.soft().cancelled().await;
    drop(updates);
    assert_eq!(
        timeout(SOON, stopping).await.unwrap().unwrap(),
        Shutdown::Graceful
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_preface_is_closed_after_a_while() {
    let server = Running::start().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    // No timeout of our own: the paused clock advances only to the server's.
    let received = idle.read_to_end(&mut Vec::new()).await;
    assert!(matches!(received, Ok(0) | Err(_)), "{received:?}");
    assert!(!server.lifecycle.is_stopping());
}

#[tokio::test]
async fn a_client_that_does_not_answer_goaway_is_not_waited_for() {
    let server = Running::start().await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    // The HTTP/2 preface and settings; the server's own settings come back.
    silent
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    assert!(timeout(SOON, silent.read_u8()).await.unwrap().is_ok());
    assert_eq!(server.lifecycle.shutdown(SOON).await, Shutdown::Graceful);
}

/// A client with unlimited windows, behind a proxy that does not read while it is on hold.
async fn held_up(server: &Running) -> (Channel, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (road, target) = (listener.local_addr().unwrap(), server.address);
    let (hold, mut paused) = watch::channel(false);
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let (mut requests, mut answers) = client.into_split();
        let (mut from_server, mut to_server) = TcpStream::connect(target).await.unwrap().into_split();
        tokio::spawn(async move { tokio::io::copy(&mut requests, &mut to_server).await });
        let mut buffer = vec![0; LARGE];
        loop {
            paused.wait_for(|paused| !paused).await.unwrap();
            let count = from_server.read(&mut buffer).await.unwrap_or(0);
            if count == 0 || answers.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    });
    let channel = Channel::from_shared(format!("http://{road}"))
        .unwrap()
        .initial_stream_window_size(i32::MAX.cast_unsigned())
        .initial_connection_window_size(i32::MAX.cast_unsigned())
        .connect()
        .await
        .unwrap();
    (channel, hold)
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_not_waited_for_either() {
    let server = Running::start().await;
    let (channel, hold) = held_up(&server).await;
    let mut updates = follow(channel, Text::from(TALKATIVE)).await.unwrap();
    updates.message().await.unwrap().expect("a message");
    hold.send_replace(true);
    // Until every socket is full: then the server writes, and does not read.
    let full = async {
        loop {
            let before = server.messages.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(200)).await;
            if server.messages.load(Ordering::SeqCst) == before {
                return;
            }
        }
    };
    timeout(SOON, full).await.unwrap();
    assert_eq!(server.lifecycle.shutdown(SOON).await, Shutdown::Graceful);
}

/// A channel over one connection, and that connection's socket.
async fn on_one_connection(server: &Running) -> (Channel, net::TcpStream) {
    let socket = TcpStream::connect(server.address)
        .await
        .unwrap()
        .into_std()
        .unwrap();
    let other = socket.try_clone().unwrap();
    let mut socket = Some(TcpStream::from_std(socket).unwrap());
    let connector = service_fn(move |_: Uri| {
        let socket = socket.take().map(TokioIo::new);
        ready(socket.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)))
    });
    let endpoint = Endpoint::from_static("http://library");
    (endpoint.connect_with_connector(connector).await.unwrap(), other)
}

#[tokio::test]
async fn open_uploads_of_a_connection_that_dies_count_as_cancelled() {
    const UPLOADS: usize = 3;
    let metrics = Metrics::new();
    let server = Running::with(|server| server.metrics(ServerMetrics::of(&metrics).rpc())).await;
    let (channel, socket) = on_one_connection(&server).await;
    let mut uploads = JoinSet::new();
    for _ in 0..UPLOADS {
        let (mut grpc, codec) = (Grpc::new(channel.clone()), ProstCodec::<Text, Text>::default());
        uploads.spawn(async move {
            grpc.ready().await.unwrap();
            let endless = stream::iter([Text::default()]).chain(stream::pending());
            let path = PathAndQuery::from_static(IMPORT);
            grpc.client_streaming(Request::new(endless), path, codec).await
        });
    }
    let shown = async |series: String| {
        let shows = async {
            while !metrics.render().lines().any(|line| line == series) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let within = timeout(SOON, shows).await;
        within.unwrap_or_else(|_| panic!("{series}:\n{}", metrics.render()));
    };
    let labels =
        "grpc_type=\"client_stream\",grpc_service=\"library.v1.LibraryService\",grpc_method=\"Import\"";
    shown(format!("grpc_server_in_flight{{{labels}}} {UPLOADS}")).await;
    socket.shutdown(net::Shutdown::Both).unwrap();
    while let Some(ended) = uploads.join_next().await {
        assert!(ended.unwrap().is_err());
    }
    for (code, count) in [("Canceled", UPLOADS), ("Unknown", 0)] {
        shown(format!(
            "grpc_server_handled_total{{{labels},grpc_code=\"{code}\"}} {count}"
        ))
        .await;
    }
    server.lifecycle.shutdown(SOON).await;
}
