//! Two reviewers in the console: what one approves or asks, and what the other one's own page shows of it.

use emend_proto::{
    common::v1::ResourceKind,
    learning::v1::{Policy, UpdatePolicyRequest},
};
use emend_tests::harness::{
    Database, NAMESPACE, System, answered,
    console::{Console, Visitor, header},
    says, verb,
};

use super::acting::form;
use crate::security::{EVERYWHERE, Guarded, token_of, with_token};

/// What a person reads after a form.
async fn sent(visitor: &Visitor, item: &str, path: &str, fields: &[(&str, &str)]) -> String {
    let page = visitor.open(&format!("review?item={item}")).await;
    let sent = visitor
        .send(&page, &format!("review/{item}/{path}"), fields)
        .await;
    assert_eq!(sent.status, 303, "{path}: {}", sent.body);
    let next = visitor.ask("GET", &header(&sent, "location")[0], &[], "").await;
    assert_eq!(next.status, 200, "{path}: {}", next.body);
    next.body
}

/// Lets every phrase wait for two reviewers.
async fn two_needed(system: &System) {
    let update = UpdatePolicyRequest {
        policy: Some(Policy {
            namespace: NAMESPACE.into(),
            kind: ResourceKind::InvocationPhrase.into(),
            risk_level: emend_proto::common::v1::RiskLevel::High.into(),
            reviewers_needed: 2,
            ..Policy::default()
        }),
        ..UpdatePolicyRequest::default()
    };
    let mut policies = system.learning().policies;
    answered(
        policies
            .update_policy(with_token(update, Some(&token_of("boss"))))
            .await,
    );
}

/// Several that are approved at once are not approved either while they wait for somebody else.
async fn several_wait(system: &System, rita: &Visitor) {
    let said = says("", verb("close a csa", "close_csa"));
    let mut feedback = system.feedback().service;
    answered(
        feedback
            .submit_feedback(with_token(said, Some(&token_of("rita"))))
            .await,
    );
    let page = rita.open("review").await;
    let ticked = form(&page.body, "review/", "/approve");
    let ticked = ticked.split('/').nth(1).expect("an item");
    let sent = rita
        .send(
            &page,
            "review/batch",
            &[("candidate", ticked), ("decision", "approve")],
        )
        .await;
    let told = rita.ask("GET", &header(&sent, "location")[0], &[], "").await.body;
    assert!(
        told.contains("waits for 1 more reviewer") && !told.contains("Approved."),
        "{told}"
    );
}

async fn decide_together(database: Database) {
    let callers = [
        ("rita", "reviewer", EVERYWHERE),
        ("rob", "reviewer", EVERYWHERE),
        ("boss", "admin", EVERYWHERE),
    ];
    Guarded::check(database, &callers, async |guarded| {
        let system = &guarded.system;
        two_needed(system).await;
        let mut feedback = system.feedback().service;
        let said = says("", verb("set up a csa", "create_csa"));
        let said = answered(
            feedback
                .submit_feedback(with_token(said, Some(&token_of("rita"))))
                .await,
        );
        let item = said
            .feedback
            .unwrap_or_default()
            .outcome
            .unwrap_or_default()
            .candidate_id;
        let console = Console::beside(system).await;
        let (rita, rob) = (console.visitor(), console.visitor());
        for (visitor, name) in [(&rita, "rita"), (&rob, "rob")] {
            assert_eq!(visitor.sign_in(&token_of(name)).await.status, 303, "{name}");
        }
        let asks = [("comment", "still <b>in use</b>?"), ("asked", "rob")];
        let asked = sent(&rita, &item, "ask", &asks).await;
        assert!(asked.contains("Asked: it waits for an answer."), "{asked}");
        let mine = rob.open("mine").await.body;
        assert!(
            mine.contains("rita: still &#60;b&#62;in use&#60;/b&#62;?"),
            "{mine}"
        );
        let answer = sent(&rob, &item, "comment", &[("comment", "it is")]).await;
        assert!(
            answer.contains("Your comment is kept.") && answer.contains("it is"),
            "{answer}"
        );
        assert!(
            rob.open("mine")
                .await
                .body
                .contains("Nobody waits for your answer.")
        );

        let first = sent(&rita, &item, "approve", &[]).await;
        for told in ["It waits for 1 more reviewer.", "rita approved it", "rob: it is"] {
            assert!(first.contains(told), "{told}: {first}");
        }
        assert!(!first.contains("Approved."), "{first}");
        let page = rita.open(&format!("review?item={item}")).await;
        let refused = rita.send(&page, &format!("review/{item}/approve"), &[]).await;
        assert!(
            refused.body.contains("needs another reviewer"),
            "{}",
            refused.body
        );
        let shown = rob.open(&format!("review?item={item}")).await.body;
        assert!(
            shown.contains("approved once") && shown.contains("Approved by"),
            "{shown}"
        );
        assert!(rob.open("mine").await.body.contains("approved by rita"));
        let second = sent(&rob, &item, "approve", &[]).await;
        assert!(second.contains("Approved."), "{second}");
        let mine = rob.open("mine").await.body;
        assert!(
            mine.contains("set up a csa") && mine.contains("Nothing waits for a second approval."),
            "{mine}"
        );
        // The first of both decided it, too.
        let mine = rita.open("mine").await.body;
        assert!(mine.contains("set up a csa"), "{mine}");

        several_wait(system, &rita).await;
        console.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_reviewers_ask_answer_and_decide_together_on_sqlite() {
    Box::pin(decide_together(Database::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_reviewers_ask_answer_and_decide_together_on_postgresql() {
    if let Some(database) = Database::postgres().await {
        Box::pin(decide_together(database)).await;
    }
}
