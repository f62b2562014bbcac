//! PostgreSQL restarted and killed under load, and a standby that takes over without the last seconds.

use std::time::Duration;

use emend_client::SubscriberEvent;
use emend_proto::{
    feedback::v1::{SubmitFeedbackRequest, Wait},
    learning::v1::{ReportStatusRequest, SnapshotReason},
};
use emend_tests::{
    faults::{Fleet, Run, Server, Storage, bounded, rounds},
    harness::{
        Gateway, NAMESPACE, StreamEvent, Subscriber, alias, eventually, node::Node, process::serving, says,
        wait::holds,
    },
};
use tokio::time::Instant;
use tonic::Code;
use tonic_health::pb::{health_check_response::ServingStatus, health_client::HealthClient};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_restarted_or_killed_loses_nothing() {
    bounded(async {
        let Some(mut server) = Server::start().await else {
            return;
        };
        let fleet = Fleet::start(Storage::Own(server.url()), 2, 2).await;
        let run = Run::begin("postgres", fleet).await;
        for round in 0..rounds(4, 50) {
            run.goes_on().await;
            // Both, in short runs too.
            if round % 2 == 0 {
                server.stop().await;
            } else {
                server.kill().await;
            }
            run.load().is_refused_by(1 + run.dice.below(10)).await;
            server.start_again().await;
        }
        run.goes_on().await;
        run.ends_well().await;
    })
    .await;
}

/// Above what lies between two looks of a replica at its log.
const OLD: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_serve_what_they_hold_while_their_database_is_away() {
    bounded(async {
        let Some(mut server) = Server::start().await else {
            return;
        };
        let mut fleet = Fleet::start(Storage::Own(server.url()), 1, 2).await;
        let feedback = fleet.feedback_clients().remove(0);
        feedback.learn(says("jane", alias("tom", "person-1"))).await;
        let [one, two] = <[_; 2]>::try_from(fleet.learning_clients()).expect("two replicas");
        let head = one.head().await;
        let mut stays = Node::start(fleet.learning[0].front.address(), "stays").await;
        let mut returns = Subscriber::new("returns");
        returns.begin(&one.channel).await;
        for replica in [&one, &two] {
            let mut subscriber = Subscriber::new("sees-the-head");
            subscriber.begin(&replica.channel).await;
            subscriber.until(head).await;
        }
        stays.until(head).await;
        returns.until(head).await;
        returns.disconnect();

        server.stop().await;
        for replica in [&one, &two] {
            let health = HealthClient::new(replica.channel.clone());
            eventually("only the stream is ready", || async {
                let of =
                    async |service: &str| serving(&health, &format!("emend.learning.v1.{service}")).await;
                let (writes, streams) = (of("IngestService").await, of("SubscriptionService").await);
                let is_so =
                    writes == Some(ServingStatus::NotServing) && streams == Some(ServingStatus::Serving);
                holds(is_so, || format!("{writes:?}, {streams:?}"))
            })
            .await;
        }
        let old = |event: &SubscriberEvent| match event {
            SubscriberEvent::Bookmark { age, .. } if *age > OLD => Some(()),
            _ => None,
        };
        stays.until_event("it hears how old it is", old).await;
        let mut new = Node::start(fleet.learning[1].front.address(), "new").await;
        new.until(head).await;
        new.until_event("it hears how old it is", old).await;
        assert!(
            new.view()
                .staleness()
                .age
                .is_some_and(|age| age.unsigned_abs() > OLD)
        );
        returns.begin(&two.channel).await;
        assert_eq!(returns.next().await, StreamEvent::Bookmark(head), "at once");
        let report = ReportStatusRequest {
            node_id: "returns".to_owned(),
            applied: Some(returns.cursor().clone()),
            ..ReportStatusRequest::default()
        };
        let reported = two.subscriptions.clone().report_status(report).await;
        reported.expect("a report is taken");
        // It comes from where more is known.
        let mut ahead = Subscriber::new("ahead");
        let mut cursor = returns.cursor().clone();
        cursor.revision += 1;
        ahead.resume_from(cursor);
        let refused = ahead.connect(&two.channel).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");

        server.start_again().await;
        for member in fleet.members() {
            member.is_ready().await;
        }
        feedback.learn(says("jane", alias("kim", "person-2"))).await;
        let head = one.head().await;
        for node in [&stays, &new] {
            node.until(head).await;
            eventually("it is current", || async {
                let staleness = node.view().staleness();
                holds(staleness.age.is_some_and(|age| age.unsigned_abs() < OLD), || {
                    format!("{staleness:?}")
                })
            })
            .await;
        }
        returns.until(head).await;
        let mut late = Subscriber::new("late");
        let reason = SnapshotReason::NoCursor;
        assert_eq!(
            late.begin(&two.channel).await,
            StreamEvent::Snapshot {
                reason,
                revision: head
            }
        );
        fleet.stop_all().await;
    })
    .await;
}

/// The host silently disappears and another takes its place: existing connections are never answered again and never
/// end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_replica_leaves_a_database_that_falls_silent() {
    bounded(async {
        let Some(server) = Server::start().await else {
            return;
        };
        let fleet = Fleet::start(Storage::Own(server.url()), 2, 2).await;
        let mut run = Run::begin("silent", fleet).await;
        for round in 0..rounds(1, 20) {
            run.goes_on().await;
            // Until everything waits for an answer, and callers have given up on those waits.
            server.road().hold();
            run.load().is_refused_by(20 + run.dice.below(20)).await;
            server.road().forsake();
            server.road().release();

            let silent = Instant::now();
            let feedback = run.fleet.feedback_clients();
            let mut submitted = Vec::new();
            for (number, feedback) in feedback.iter().enumerate() {
                let request = SubmitFeedbackRequest {
                    request_id: format!("after-{round}-{number}"),
                    ..says(&format!("after-{number}"), alias("after", "person-1"))
                };
                run.record.asked.ask(&request);
                let stored = eventually("each takes submissions again", || async {
                    let answer = feedback.service.clone().submit_feedback(request.clone()).await;
                    Ok(answer.map_err(|status| status.to_string())?.into_inner())
                });
                let stored = stored.await.feedback.unwrap();
                submitted.push(run.record.acknowledge(&request, stored));
            }
            for member in run.fleet.members() {
                member.is_ready().await;
            }
            for (feedback, id) in feedback.iter().zip(&submitted) {
                feedback.delivered(NAMESPACE, id).await;
            }
            let head = run.fleet.learning_clients()[0].head().await;
            for node in &run.nodes {
                node.until(head).await;
            }
            let silent = silent.elapsed();
            assert!(silent < Duration::from_secs(75), "{silent:?}");
        }
        run.goes_on().await;
        run.ends_well().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_lacks_the_last_seconds_is_detected() {
    bounded(async {
        let Some(mut server) = Server::start().await else {
            return;
        };
        let fleet = Fleet::start(Storage::Own(server.url()), 1, 2).await;
        let replication = Gateway::open().await;
        let mut run = Run::begin("standby", fleet).await;
        for _ in 0..rounds(1, 10) {
            let standby = server.standby(&replication).await;
            run.goes_on().await;
            run.stop_load().await;
            server.is_followed_by(&standby).await;
            let kept = run.record.clone();
            replication.close();

            // What is acknowledged from here on is lost with the primary.
            run.start_load();
            run.load().goes_on_by(60).await;
            run.stop_load().await;
            let feedback = run.fleet.feedback_clients().remove(0);
            feedback.all_delivered(NAMESPACE).await;
            let head = run.fleet.learning_clients()[0].head().await;
            for node in &run.nodes {
                node.until(head).await;
            }
            server.kill().await;
            server.promote(standby).await;

            // The standby has everything it was sent, and the nodes notice that this is less than they have seen.
            let stored = run.fleet.storage.stored();
            let now = stored.head().await;
            assert!(now < head, "revisions {now} to {head} are lost");
            let feedback = run.fleet.feedback_clients().remove(0);
            let listed = feedback.all_delivered(NAMESPACE).await;
            assert_eq!(
                kept.differences(&listed),
                [""; 0],
                "what was there before the cut is there"
            );
            let lost = run.record.differences(&listed);
            assert!(!lost.is_empty(), "what came after it is lost");
            assert!(
                lost.iter()
                    .all(|lost| lost.contains("is not stored") || lost.contains("retraction")),
                "{lost:?}"
            );
            run.lost_its_tail(kept);
            run.start_load();
        }
        run.goes_on().await;
        run.ends_well().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_lost_in_a_failover_are_not_delivered_from_memory() {
    bounded(async {
        let Some(mut server) = Server::start().await else {
            return;
        };
        let fleet = Fleet::start(Storage::Own(server.url()), 1, 2).await;
        let replication = Gateway::open().await;
        let mut run = Run::begin("undelivered", fleet).await;
        for round in 0..rounds(1, 10) {
            let standby = server.standby(&replication).await;
            run.goes_on().await;
            run.stop_load().await;
            let feedback = run.fleet.feedback_clients().remove(0);
            feedback.all_delivered(NAMESPACE).await;
            server.is_followed_by(&standby).await;
            let kept = run.record.clone();
            replication.close();

            // All of this waits in feedback-svc and exists nowhere else when the primary is gone.
            run.fleet.learning[0].kill().await;
            for number in 0..30 {
                let reporter = format!("lost-{round}-{number}");
                let request = SubmitFeedbackRequest {
                    wait: Wait::Recorded.into(),
                    ..says(&reporter, alias(&reporter, "person-1"))
                };
                feedback.submit(request).await;
            }
            server.kill().await;
            server.promote(standby).await;
            run.fleet.learning[0].start().await;

            let listed = feedback.all_delivered(NAMESPACE).await;
            assert_eq!(
                kept.differences(&listed),
                [""; 0],
                "what was there before the cut is there"
            );
            let reporters = listed.iter().filter_map(|feedback| feedback.reporter.as_ref());
            let lost = format!("lost-{round}-");
            assert!(
                reporters
                    .into_iter()
                    .all(|reporter| !reporter.id.starts_with(&lost)),
                "what came after it is lost"
            );
            run.lost_its_tail(kept);
            run.start_load();
        }
        run.goes_on().await;
        // No trace is left of feedback that is lost.
        run.ends_well().await;
    })
    .await;
}
