//! The ledger audit: a sound pair has no findings, and each check notices when its subject is tampered with.

mod asked;
mod doctor;
mod nodes;
mod searches;
mod tampering;

use emend_proto::{
    common::v1::Scope,
    feedback::v1::{SubmitFeedbackRequest, Wait},
    learning::v1::{
        GenerateImprovementRequest, ImportAs, ImportHeader, ImportMode, ImportRow, Policy,
        UpdatePolicyRequest, UsePromptVersionRequest,
    },
};
use emend_tests::harness::{
    NAMESPACE, System, alias, answered, phrase, prohibit, says,
    says::{
        alias_key, corrects_edge, decides, decides_claim, domain_key, domain_value, entity_value,
        finds_fault, phrase_key, prompt_key, prompt_value, rates, supports, verb_value,
    },
    tamper::Frozen,
    verb,
};

use self::searches::{reworded_in_vain, searches, until_events_wait};
use super::profiles::{accept, suggested};

/// A bit of everything: learned by votes and by people, superseded, deleted, imported, user-scoped, retracted, pending,
/// and one event that could not be delivered.
async fn a_bit_of_everything(mut system: System) -> Frozen {
    let (feedback, learning) = (system.feedback(), system.learning());
    for reporter in ["ann", "bob", "eve", "kim"] {
        feedback
            .learn(says(reporter, verb("set up a csa", "create_isda")))
            .await;
    }
    feedback
        .learn(says("tom", phrase("set up a csa", "create_csa")))
        .await;
    feedback.learn(says("ann", alias("J. Smith", "person-17"))).await;
    // Decisions that were undone: of what gathers votes beside an applied rival, and of what is applied.
    let rival = learning.candidate_for("set up a csa", "create_csa").await;
    learning.approve(&rival).await.unwrap();
    learning.undo(&rival).await.unwrap();
    let smith = learning.candidate_for("j. smith", "person-17").await;
    learning.reject(&smith, "nobody").await.unwrap();
    learning.undo(&smith).await.unwrap();
    let taken_back = feedback.learn(says("bob", alias("Jim", "person-18"))).await;
    feedback.retract(&taken_back).await;
    feedback
        .learn(SubmitFeedbackRequest {
            scope: Scope::User.into(),
            request_id: "own".into(),
            ..says("ann", alias("me", "person-1"))
        })
        .await;
    for reporter in ["ann", "bob", "eve"] {
        feedback
            .learn(says(reporter, prohibit("close it", "delete_all")))
            .await;
    }
    learning
        .put(phrase_key("book the trade"), verb_value("book"))
        .await;
    learning
        .put(phrase_key("book the trade"), verb_value("book_trade"))
        .await;
    learning.put(alias_key("gone"), entity_value("nobody")).await;
    learning.delete(alias_key("gone")).await.unwrap();
    let rows = (1..5).map(|line| ImportRow {
        line,
        correction: Some(alias(&format!("import {line}"), &format!("person-{line}"))),
        ..ImportRow::default()
    });
    let header = ImportHeader {
        namespace: NAMESPACE.into(),
        mode: ImportMode::SkipInvalid.into(),
        import_as: ImportAs::Decision.into(),
        ..ImportHeader::default()
    };
    let rows: Vec<ImportRow> = rows.collect();
    learning.import(header.clone(), rows.clone()).await.unwrap();
    let votes = ImportHeader {
        import_as: ImportAs::Votes.into(),
        ..header
    };
    learning.import(votes, rows).await.unwrap();
    // Rulings: one replaced by a newer one, one taken back, one cleared, one that inherits its level, and an operator's.
    for (pattern, decision) in [
        ("spam.example", "academic"),
        ("spam.example", "block"),
        ("mirror.example", "low"),
        ("mirror.example", "unblock"),
        ("old.example", "block"),
        ("old.example", "clear"),
        ("github.io", "block"),
    ] {
        feedback.learn(decides("ann", pattern, decision)).await;
    }
    let taken_back = feedback.learn(decides("bob", "spam.example", "low")).await;
    feedback.retract(&taken_back).await;
    learning
        .put(domain_key("example.edu"), domain_value("academic"))
        .await;
    // Evidence: a corrected edge, one reviewed as it is, a rejected claim, and a correction that waits for its edge.
    for (number, host, claim) in [
        (1, "blog.example.org", "c1"),
        (2, "www.example.net", "c1"),
        (3, "spam.example", "c2"),
        (4, "blog.example.org", "c3"),
    ] {
        let evidence = supports(number, host, claim, 0.9);
        answered(learning.evidence.clone().upsert_evidence(evidence).await);
    }
    for (edge, label) in [("e1", "refutes"), ("e2", "supports"), ("e9", "neutral")] {
        feedback.learn(corrects_edge("ann", edge, label)).await;
    }
    feedback.learn(decides_claim("bob", "c2", "rejected")).await;
    // The prompt that is rated: ratings from before it was current do not count for a better one.
    learning.put(prompt_key(""), prompt_value("Summarise.")).await;
    // Ratings: one replaced by a newer one of the same output, one taken back, and others that are examples.
    for (output, value) in [("1", "GOOD"), ("2", "BAD"), ("1", "BAD"), ("3", "GOOD")] {
        feedback.learn(rates("ann", output, value)).await;
    }
    let taken_back = feedback.learn(rates("bob", "4", "GOOD")).await;
    feedback.retract(&taken_back).await;
    searches(&mut system).await;
    // A prompt that ratings made better, of which the first version is still used under another label.
    feedback.learn(finds_fault("ann", "5", "vague")).await;
    let generate = GenerateImprovementRequest {
        namespace: NAMESPACE.into(),
        target: "SUMMARIZE_DAILY".into(),
        ..GenerateImprovementRequest::default()
    };
    let improved = answered(learning.outputs.clone().generate_improvement(generate).await);
    learning.approve(&improved.candidate.unwrap()).await.unwrap();
    let first = UsePromptVersionRequest {
        namespace: NAMESPACE.into(),
        target: "SUMMARIZE_DAILY".into(),
        label: "staging".into(),
        version: 1,
        ..UsePromptVersionRequest::default()
    };
    answered(learning.outputs.clone().use_prompt_version(first).await);
    // A profile: one suggestion accepted, one that waits.
    let mut made = suggested(&learning, "ann", &["Kafka", "NATS"]).await;
    accept(&learning, "ann", &made.remove(0)).await.unwrap();
    let request = UpdatePolicyRequest {
        policy: Some(Policy {
            namespace: NAMESPACE.into(),
            kind: phrase_key("").kind,
            threshold: 2,
            ..Policy::default()
        }),
        ..UpdatePolicyRequest::default()
    };
    answered(learning.policies.clone().update_policy(request).await);
    feedback
        .learn(says("zoe", verb("close the books", "close_period")))
        .await;
    until_events_wait(&system, 0).await;
    system.stop_learning().await;
    reworded_in_vain(&mut system).await;
    let undelivered = SubmitFeedbackRequest {
        wait: Wait::Recorded.into(),
        ..says("zoe", verb("open the books", "open_period"))
    };
    feedback.submit(undelivered).await;
    Frozen::of(system).await
}
