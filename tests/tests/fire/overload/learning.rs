//! More reads, subscribers and imports than learning-svc can take.

use std::time::Duration;

use emend_proto::{
    common::v1::ResourceKind,
    learning::v1::{
        ImportResourcesRequest, ImportRows, ListResourcesRequest, ResolveRequest,
        import_resources_request::Message,
    },
};
use emend_tests::{
    faults::runs::short_or_long,
    harness::{
        Learning, NAMESPACE, StreamEvent, Subscriber, System, answered, refused,
        says::{alias_key, entity_value},
        system::Database,
        within,
    },
    load::{
        memory::{peak_during, resident},
        pressure::{capacity, press},
    },
};
use futures::{StreamExt as _, future::join_all, stream::FuturesUnordered};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::{MIB, Served, eprint_figures, fill, header, row, timed};

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
    // Long enough for any answer here: callers share the machine with the service, and an answer costs three times as
    // much as a request.
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
    // A page for each call that could be in flight on one connection would be a thousand times this.
    let bound = 64 * MIB + 8 * CALLERS as u64 * PAGE;
    assert!(peak <= before + bound, "{} MiB more", (peak - before) / MIB);
    eprint_figures("reads", rate, &answers, before, peak);
    capacity(CALLERS, CALLERS, &read).await;
}

/// Hundreds of subscribers that hold nothing come at once. Snapshots are cut a few at a time and shared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_subscribers_takes_bounded_memory_and_is_served_in_the_end() {
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
                // The server drops a peer that says nothing within ten seconds. A thousand in one process, busy with
                // what the others are sent, may take longer: they retry, as nodes do.
                let mut refused = 0;
                while let Err(refusal) = subscriber.connect(&learning.channel).await {
                    refused += 1;
                    assert!(refused < 10, "{refusal}");
                }
                let begun = subscriber.next().await;
                assert!(matches!(begun, StreamEvent::Snapshot { .. }), "{begun:?}");
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
    // Per stream: its connection, its pending writes, and its share of the one message being sent.
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
async fn imports_above_the_limit_are_told_when_to_retry() {
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
    // Two have a permit each and do not end; all others end.
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

/// A header and rows, and nothing more until it may finish.
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
