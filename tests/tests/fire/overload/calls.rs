//! More calls than there are permits for, and more bytes than calls may hold.

use std::time::Duration;

use emend_base::status::Explained;
use emend_proto::learning::v1::{
    ListResourcesRequest, ListResourcesResponse, ResolveRequest,
    resource_service_client::ResourceServiceClient,
};
use emend_serve::server::bounds::{Bounds, ClientTimeouts};
use emend_tests::{
    harness::{
        Learning, NAMESPACE, Subscriber, System, answered, eventually,
        process::serving,
        refused,
        rpc::{ask_and_never_read, begin_and_never_send, channel, send_part_of_a_message},
        says::{alias_key, entity_value},
        start,
        system::{Database, Service, Settings},
        within,
    },
    load::memory::{peak_during, resident},
};
use futures::{StreamExt as _, future::join_all, stream::FuturesUnordered};
use prost::Message as _;
use tonic::{Code, Response, Status, transport::Endpoint};
use tonic_health::pb::{health_check_response::ServingStatus, health_client::HealthClient};

use super::{MIB, Served, fill};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_above_the_limit_of_a_replica_are_refused_at_once() {
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
    // These wait for a revision that does not exist yet, each with a permit of its own, if it gets one.
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
    // Health checks are answered all the same.
    let health = HealthClient::new(learning.channel.clone());
    assert_eq!(serving(&health, "").await, Some(ServingStatus::Serving));
    let mut waited = 0;
    for waiting in waiting {
        let ended = waiting.await.unwrap().unwrap_err();
        // Only calls with a permit waited, until the replica's own limit on that.
        match ended.code() {
            Code::Unavailable => waited += 1,
            code => assert_eq!(code, Code::ResourceExhausted, "{ended}"),
        }
    }
    assert!((1..=PLACES).contains(&waited), "{waited}");
    assert!(list_from(learning.clone(), first.revision).await.is_ok());
    // Established streams hold no permit, however many there are.
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

/// One client begins calls on many connections and never ends them: others are served all the while, and so is that
/// client once its stalled calls have run out of time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_client_that_ends_no_call_excludes_no_other() {
    const PLACES: usize = 64;
    let patience = Duration::from_secs(2);
    let settings = Settings {
        bounds: Bounds {
            calls: PLACES,
            patience: ClientTimeouts {
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
    // It has its full share.
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

/// Large requests of one client whose last piece never comes: their memory is bounded however many there are, and other
/// clients' large requests are accepted all the while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_unfinished_requests_take_bounded_memory_and_exclude_nobody() {
    const HELD: u64 = 8 * MIB;
    const LARGE: usize = 3 << 20;
    const CALLS: usize = 64;
    let database = Database::sqlite();
    let url = database.url(Service::Learning, None);
    let bounds = ["--database-url", &url, "--call-buffer-size=8MiB"];
    let served = Served::start("learning-svc", "emend.learning.v1.IngestService", &bounds).await;
    let path = "/emend.learning.v1.ResourceService/Resolve";
    let before = resident(served.process.id());
    let large = async {
        let hog = (0..CALLS).map(|_| send_part_of_a_message(channel(served.address), path, LARGE));
        let mut hog: FuturesUnordered<_> = hog.collect();
        // There is room for one message of this client beside one of another.
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
    // Plus what connections have not read yet and what refused calls had, which the allocator returns later. All of
    // them together would take 192 MiB.
    let bound = HELD + 64 * MIB;
    assert!(peak <= before + bound, "{} MiB more", (peak - before) / MIB);
}

/// Answers of one client that it never reads: their memory is bounded, and others are answered all the while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_responses_take_bounded_memory_and_exclude_nobody() {
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
