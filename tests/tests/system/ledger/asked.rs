//! What only the asker can know: that what was acknowledged is stored once, verbatim, and nothing else is.

use std::time::Duration;

use emend_audit::audit;
use emend_proto::{
    common::v1::ResourceKind,
    feedback::v1::SubmitFeedbackRequest,
    learning::v1::{Policy, UpdatePolicyRequest},
};
use emend_store::audit::{Finding, IgnoreProgress};
use emend_tests::{
    audit::ledger::{self, Asked},
    both_databases,
    harness::{
        NAMESPACE, System, alias, answered, says,
        system::Service,
        tamper::{Copy, Frozen},
        verb,
    },
};

const NOT_TAKEN_BACK: &str = "UPDATE feedback_status SET retracted_at = NULL, retracted_by = ''";
const EXCHANGED: &str = "UPDATE feedback SET correction = (
         SELECT other.correction FROM feedback AS other
         WHERE other.accept_order <> feedback.accept_order
           AND other.accept_order IN (SELECT accept_order FROM feedback ORDER BY accept_order LIMIT 2)
     ) WHERE accept_order IN (SELECT accept_order FROM feedback ORDER BY accept_order LIMIT 2)";

fn request(number: usize) -> SubmitFeedbackRequest {
    SubmitFeedbackRequest {
        request_id: format!("request-{number}"),
        reason: "ask jane.doe@example.org".into(),
        context: [("topic".to_owned(), "funds".to_owned())].into(),
        ..says("jane", alias(&format!("name {number}"), "person-1"))
    }
}

fn codes(findings: &[Finding]) -> Vec<&'static str> {
    let mut codes: Vec<&str> = findings.iter().map(|finding| finding.check.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// What was asked of a sound system, and a copy of what it stored.
async fn four_acknowledged(system: System) -> (Asked, Frozen) {
    let mut asked = Asked::default();
    for number in 0..3 {
        asked.ask(&request(number));
        let stored = system.feedback().learn(request(number)).await;
        // Sent again, it is the same feedback.
        let again = system.feedback().learn(request(number)).await;
        assert_eq!(again.feedback_id, stored.feedback_id);
        asked.acknowledge(&request(number), &stored.feedback_id);
    }
    let taken_back = system.feedback().learn(request(4)).await;
    asked.ask(&request(4));
    asked.acknowledge(&request(4), &taken_back.feedback_id);
    asked.ask_to_retract(&taken_back.feedback_id);
    system.feedback().retract(&taken_back).await;
    asked.acknowledge_retraction(&taken_back.feedback_id);
    // Asked for but never sent, as if lost on its way.
    asked.ask(&request(3));
    assert_eq!(asked.acknowledged(), 4);
    ledger::expect_sound(&system, Some(&asked), &[]).await;
    (asked, Frozen::of(system).await)
}

/// A copy of a system in which a phrase waits for more votes, under a policy that was changed after the first.
async fn one_waits(system: System) -> Frozen {
    let (feedback, learning) = (system.feedback(), system.learning());
    feedback
        .learn(says("jane", verb("set up a csa", "create_csa")))
        .await;
    let policy = Policy {
        namespace: NAMESPACE.into(),
        kind: ResourceKind::InvocationPhrase.into(),
        threshold: 7,
        ..Policy::default()
    };
    let request = UpdatePolicyRequest {
        policy: Some(policy),
        reason: "tuning".into(),
        ..UpdatePolicyRequest::default()
    };
    answered(learning.policies.clone().update_policy(request).await);
    ledger::expect_sound(&system, None, &[]).await;
    Frozen::of(system).await
}

async fn contests_not_evaluated_by_the_newest_policy_are_reported(system: System) {
    let frozen = one_waits(system).await;
    let copy = frozen.copy().await;
    assert_eq!(found(&copy, &Asked::default()).await, ["STORED_UNASKED"]);
    let behind = "UPDATE contests SET policy_version = policy_version - 1 WHERE pending = 1";
    copy.tamper(Service::Learning, behind).await;
    assert_eq!(
        found(&copy, &Asked::default()).await,
        ["REEVALUATION_WAITS", "STORED_UNASKED"]
    );
    copy.close().await;
}

async fn found(copy: &Copy, asked: &Asked) -> Vec<&'static str> {
    let findings = ledger::check_within(Duration::ZERO, copy, Some(asked), &[]).await;
    // Whatever the services could detect themselves is covered by another test.
    let of_asker = |finding: &&Finding| ledger::CHECKS.contains(&finding.check);
    codes(&findings.iter().filter(of_asker).cloned().collect::<Vec<_>>())
}

async fn every_check_of_stored_requests_reports_its_violation(system: System) {
    let (asked, frozen) = four_acknowledged(system).await;

    let mut more = asked.clone();
    more.acknowledge(&request(9), "00000000-0000-4000-8000-00000000ffff");
    let copy = frozen.copy().await;
    assert_eq!(found(&copy, &more).await, ["ACKNOWLEDGED_LOST"]);

    let mut less = Asked::default();
    less.ask(&request(0));
    less.ask(&request(1));
    assert_eq!(found(&copy, &less).await, ["RETRACTED_UNASKED", "STORED_UNASKED"]);
    copy.close().await;

    let copy = frozen.copy().await;
    copy.tamper(Service::Feedback, NOT_TAKEN_BACK).await;
    assert_eq!(found(&copy, &asked).await, ["RETRACTION_LOST"]);
    copy.close().await;

    // As if a submission had been stored with another one's words.
    let copy = frozen.copy().await;
    copy.tamper(Service::Feedback, EXCHANGED).await;
    assert_eq!(
        found(&copy, &asked).await,
        ["ACKNOWLEDGED_DIFFERS", "STORED_UNASKED"]
    );
    copy.close().await;

    let copy = frozen.copy().await;
    let other = "UPDATE feedback_personal SET reporter_id = 'joe'
         WHERE accept_order = (SELECT min(accept_order) FROM feedback_personal)";
    copy.tamper(Service::Feedback, other).await;
    assert_eq!(
        found(&copy, &asked).await,
        ["ACKNOWLEDGED_DIFFERS", "STORED_UNASKED"]
    );
    copy.close().await;

    let copy = frozen.copy().await;
    copy.tamper(Service::Feedback, "UPDATE feedback SET request_id = 'request-0'")
        .await;
    assert!(found(&copy, &asked).await.contains(&"STORED_TWICE"));
    copy.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_of_stored_requests_reports_its_violation_on_sqlite() {
    Box::pin(every_check_of_stored_requests_reports_its_violation(
        System::sqlite().await,
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_of_stored_requests_reports_its_violation_on_postgresql() {
    if let Some(system) = System::postgres(1, 1).await {
        Box::pin(every_check_of_stored_requests_reports_its_violation(system)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contests_not_evaluated_by_the_newest_policy_are_reported_on_sqlite() {
    contests_not_evaluated_by_the_newest_policy_are_reported(System::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contests_not_evaluated_by_the_newest_policy_are_reported_on_postgresql() {
    if let Some(system) = System::postgres(1, 1).await {
        contests_not_evaluated_by_the_newest_policy_are_reported(system).await;
    }
}

both_databases! {
    async fn an_outbox_that_does_not_drain_is_reported(system) {
        system.stop_learning().await;
        system.feedback().submit(request(0)).await;
        let findings = ledger::check_within(Duration::from_millis(200), system, None, &[]).await;
        assert_eq!(codes(&findings), ["OUTBOX_NOT_DRAINED"]);
        system.start_learning().await;
        ledger::expect_sound(system, None, &[]).await;
    }

    async fn a_busy_pair_is_sound_at_every_moment(system) {
        let writing = async {
            for number in 0..150 {
                let feedback = system.feedback();
                let stored = feedback.submit(request(number)).await;
                if number % 3 == 0 {
                    feedback.retract(&stored).await;
                }
            }
        };
        let databases = system.database.databases();
        let auditing = async {
            loop {
                let report = audit(&databases, &mut IgnoreProgress, &mut |_| {}).await.unwrap();
                assert_eq!(report.findings.kept(), [], "with {} stored", report.feedback);
            }
        };
        tokio::select! {
            () = writing => {}
            () = auditing => {}
        }
        ledger::expect_sound(system, None, &[]).await;
    }
}
