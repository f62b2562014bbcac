//! Nodes that differ from the database: the database is tampered with behind their backs, and the audit must notice.

use std::{collections::BTreeSet, slice, time::Duration};

use emend_store::audit::Finding;
use emend_tests::{
    audit::ledger::{self, Holder},
    harness::{Subscriber, System, alias, node::Node, says, system::Service, tamper::Frozen},
};

async fn every_check_of_nodes_reports_its_violation(system: System) {
    let feedback = system.feedback();
    let mut behind = Subscriber::of_everything("behind");
    behind.begin(&system.learning().channel).await;
    feedback.learn(says("jane", alias("a", "person-1"))).await;
    let newest = feedback.learn(says("jane", alias("b", "person-1"))).await;
    let node = Node::start(system.learning[0].front.address(), "search-1").await;
    // Then the replica has it, too: who subscribes from now on begins with it.
    node.until(newest.outcome.expect("evaluated").revision).await;
    let mut subscriber = Subscriber::of_everything("search-2");
    subscriber.begin(&system.learning().channel).await;
    let mut of_phrases = Subscriber::new("search-3");
    of_phrases.ask(|request| request.kinds = vec![1]);
    of_phrases.begin(&system.learning().channel).await;
    let everybody: [Holder<'_>; 3] = [(&node).into(), (&subscriber).into(), (&of_phrases).into()];
    ledger::expect_sound(&system, None, &everybody).await;
    let found = ledger::check(&system, None, &[(&behind).into()]).await;
    assert_eq!(
        codes(&found),
        BTreeSet::from(["NODE_BEHIND", "NODE_DIFFERS", "NODE_DIGEST"])
    );
    subscriber.disconnect();
    of_phrases.disconnect();
    behind.disconnect();

    let frozen = Frozen::of(system).await;
    for sql in [
        "UPDATE resources SET value = {touched:value} WHERE contest = (SELECT contest FROM contests WHERE key = 'a')",
        "DELETE FROM resources WHERE contest = (SELECT contest FROM contests WHERE key = 'a')",
        "UPDATE contests SET key = 'c' WHERE key = 'a'",
        "UPDATE resources SET revision = revision + 1
         WHERE contest = (SELECT contest FROM contests WHERE key = 'a')",
        // The last resources of the namespace.
        "DELETE FROM resources",
    ] {
        let copy = frozen.copy().await;
        copy.tamper(Service::Learning, sql).await;
        let holders: [Holder<'_>; 2] = [(&subscriber).into(), (&node).into()];
        for holder in &holders {
            let found = ledger::check_within(Duration::ZERO, &copy, None, slice::from_ref(holder)).await;
            assert_eq!(
                codes(&found),
                BTreeSet::from(["NODE_DIFFERS", "NODE_DIGEST"]),
                "{holder:?}, {sql}: {found:?}"
            );
        }
        // What does not match a filter is not a difference.
        let found = ledger::check_within(Duration::ZERO, &copy, None, &[(&of_phrases).into()]).await;
        assert!(
            !codes(&found).contains("NODE_DIFFERS"),
            "a filter, {sql}: {found:?}"
        );
        copy.close().await;
    }
    let copy = frozen.copy().await;
    copy.tamper(Service::Learning, "DELETE FROM resources").await;
    let found = ledger::check_within(Duration::ZERO, &copy, None, &[(&node).into()]).await;
    // Found not only by what it holds but by what it answers, even though nothing stored mentions the namespace any
    // more.
    let answers = |finding: &&Finding| finding.message.starts_with("for ");
    assert_eq!(found.iter().filter(answers).count(), 2, "a node: {found:?}");
    copy.tamper(Service::Learning, "UPDATE head SET revision = revision + 1")
        .await;
    let found = ledger::check_within(Duration::ZERO, &copy, None, &[(&node).into()]).await;
    assert!(codes(&found).contains("NODE_BEHIND"), "a node: {found:?}");
    copy.close().await;
}

fn codes(findings: &[Finding]) -> BTreeSet<&'static str> {
    let of_nodes = |finding: &&Finding| ledger::CHECKS.contains(&finding.check);
    findings
        .iter()
        .filter(of_nodes)
        .map(|finding| finding.check.code)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_of_nodes_reports_its_violation_on_sqlite() {
    Box::pin(every_check_of_nodes_reports_its_violation(System::sqlite().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_of_nodes_reports_its_violation_on_postgresql() {
    if let Some(system) = System::postgres(1, 1).await {
        Box::pin(every_check_of_nodes_reports_its_violation(system)).await;
    }
}
