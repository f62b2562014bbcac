//! Decisions about domains: what is in force, who may decide, and what a node answers for a host.

use std::collections::BTreeSet;

use emend_client::{DomainDecision, DomainRule, TrustLevel};
use emend_core::Namespace;
use emend_proto::{
    common::v1::{Cause, OutcomeState, ResourceKind, Scope, correction::Correction as Form},
    feedback::v1::{BatchSubmitFeedbackRequest, Feedback, ListFeedbackRequest, SubmitFeedbackRequest},
    learning::v1::{
        CandidateStatus, ImportAs, ImportHeader, ImportMode, ImportRow, Policy, Revision, UpdatePolicyRequest,
    },
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, answered,
        node::Node,
        refused,
        rpc::{fields, item_refusal},
        says::{decides, domain, domain_key, domain_value},
    },
};

fn state(feedback: &Feedback) -> (OutcomeState, &str) {
    let outcome = feedback.outcome.as_ref().unwrap();
    (outcome.state(), &outcome.reason)
}

/// What a node answers for a host: the level, and the pattern that decided.
fn trust(node: &Node, host: &str) -> (TrustLevel, Option<String>) {
    let namespace = Namespace::parse(NAMESPACE).unwrap();
    let trust = node.view().trust(&namespace, host).unwrap();
    assert_eq!(
        node.view().is_blocked(&namespace, host).unwrap(),
        trust.level == TrustLevel::Blocked
    );
    (trust.level, trust.decided_by.map(|rule| rule.pattern))
}

fn by(level: TrustLevel, pattern: &str) -> (TrustLevel, Option<String>) {
    (level, Some(pattern.to_owned()))
}

/// Suffixes below which anybody may register names, and what stands above them: the patterns of a first kind that must never
/// be decided about, written in several ways.
fn above_all_owners() -> Vec<String> {
    let listed = [
        "com",
        "org",
        "net",
        "edu",
        "gov",
        "int",
        "jp",
        "co.jp",
        "ac.jp",
        "go.jp",
        "uk",
        "co.uk",
        "ac.uk",
        "gov.uk",
        "de",
        "fr",
        "com.br",
        "gov.br",
        "com.au",
        "edu.au",
        "kawasaki.jp",
        "tokyo.jp",
        "k12.ca.us",
        "ck",
        "xn--p1ai",
        "рф",
        "香港",
        "公司.cn",
    ];
    // What the list does not name, but stands above what it names, and everything above that.
    let above = include_str!("../../../crates/emend-core/src/evidence/above_suffixes.txt").lines();
    let above = above
        .filter(|name| !name.starts_with('~'))
        .flat_map(emend_core::evidence::suffixes);
    // Countries, whether they exist or not: where no list names the last label, it is the suffix.
    let countries = (b'a'..=b'z').flat_map(|first| (b'a'..=b'z').map(move |second| [first, second]));
    let countries = countries.map(|letters| letters.map(char::from).iter().collect::<String>());
    let names: BTreeSet<String> = listed
        .into_iter()
        .chain(above)
        .chain(["intranet"])
        .map(str::to_owned)
        .chain(countries)
        .collect();
    names
        .into_iter()
        .flat_map(|name| {
            [
                name.clone(),
                format!("*.{name}"),
                format!(" {}. ", name.to_uppercase()),
                format!("*.{name}."),
            ]
        })
        .collect()
}

both_databases! {
    async fn a_person_decides_and_every_node_follows(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        let blocked = feedback.learn(decides("ana", "Spam.Example.", "block")).await;
        let outcome = blocked.outcome.clone().unwrap();
        assert_eq!((outcome.state(), outcome.confirmations_needed), (OutcomeState::Applied, 0));
        assert_eq!(outcome.message, "Learned: “Spam.Example.” is blocked. It applies.");
        node.until(outcome.revision).await;
        assert_eq!(trust(&node, "www.spam.example"), by(TrustLevel::Blocked, "spam.example"));
        assert_eq!(trust(&node, "notspam.example"), (TrustLevel::Unverified, None));

        for (pattern, word) in [("*.spam.example", "academic"), ("docs.spam.example", "unblock")] {
            feedback.learn(decides("ben", pattern, word)).await;
        }
        node.until(learning.head().await).await;
        assert_eq!(trust(&node, "spam.example"), by(TrustLevel::Blocked, "spam.example"));
        assert_eq!(trust(&node, "WWW.Spam.Example"), by(TrustLevel::Academic, "*.spam.example"));
        assert_eq!(trust(&node, "docs.spam.example"), by(TrustLevel::Unverified, "docs.spam.example"));

        // A cleared rule leaves what is above it, and a retraction what was before it.
        feedback.learn(decides("ben", "docs.spam.example", "clear")).await;
        let outcome = feedback.retract(&blocked).await.outcome.unwrap();
        assert_eq!((outcome.state(), outcome.reason.as_str()), (OutcomeState::Withdrawn, "RETRACTED"));
        node.until(outcome.revision).await;
        assert_eq!(trust(&node, "spam.example"), (TrustLevel::Unverified, None));
        assert_eq!(trust(&node, "docs.spam.example"), by(TrustLevel::Academic, "*.spam.example"));
        let causes: Vec<_> = learning.revisions().await.iter().map(Revision::cause).collect();
        assert_eq!(causes, [Cause::Retraction, Cause::Ruling, Cause::Ruling, Cause::Ruling, Cause::Ruling]);
        let nothing = feedback.learn(decides("ben", "spam.example", "clear")).await;
        assert_eq!(state(&nothing), (OutcomeState::NoEffect, "NOTHING_TO_CLEAR"));
    }

    async fn of_a_correction_and_an_operators_write_the_later_one_is_in_force(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for _ in 0..5 {
            learning.put(domain_key("example.org"), domain_value("block")).await;
            let after = feedback.learn(decides("ana", "example.org", "low")).await;
            assert_eq!(state(&after), (OutcomeState::Applied, ""));
        }
        let put = learning.put(domain_key("example.org"), domain_value("primary")).await;
        assert!(put.revision > 0);
        let read = learning.resources_in(NAMESPACE).await;
        assert_eq!(read[0].value.as_ref().unwrap().value, domain_value("primary").value);
    }

    async fn spellings_of_one_domain_are_one_key(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for pattern in ["bücher.example", " BÜCHER.Example. ", "xn--bcher-kva.example", "bu\u{308}cher．example"] {
            let stored = feedback.learn(decides("ana", pattern, "low")).await;
            assert!(matches!(state(&stored).0, OutcomeState::Applied), "{pattern}: {stored:?}");
        }
        let read = learning.resources_in(NAMESPACE).await;
        let keys: Vec<_> = read.iter().map(|resource| resource.key.clone().unwrap()).collect();
        assert_eq!(keys, [domain_key("xn--bcher-kva.example")]);
        assert_eq!(learning.candidates_for("xn--bcher-kva.example").await.len(), 4);
        // The version of the normalisation is that of phrases.
        assert_eq!(read[0].value.as_ref().unwrap().normalization_version, 0);
    }

    async fn nothing_at_or_above_a_public_suffix_is_recorded(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let patterns = above_all_owners();
        assert!(patterns.len() >= 1_000, "{}", patterns.len());
        for word in ["block", "unblock", "low"] {
            for chunk in patterns.chunks(100) {
                let requests = chunk.iter().map(|pattern| decides("ana", pattern, word)).collect();
                let batch = BatchSubmitFeedbackRequest { requests, ..BatchSubmitFeedbackRequest::default() };
                let results = answered(feedback.service.clone().batch_submit_feedback(batch).await).results;
                for (pattern, result) in chunk.iter().zip(results) {
                    let refusal = item_refusal(result.status.as_ref()).unwrap();
                    let field = format!("correction.{}.pattern", form_name(word));
                    assert_eq!(fields(&refusal), [field.as_str()], "{pattern}");
                }
            }
        }
        let all = ListFeedbackRequest { namespace: NAMESPACE.into(), ..ListFeedbackRequest::default() };
        assert_eq!(answered(feedback.service.clone().list_feedback(all).await).feedback, []);
        assert_eq!(learning.head().await, 0);
        let put = emend_proto::learning::v1::PutResourceRequest {
            key: Some(domain_key("*.co.jp")),
            value: Some(domain_value("block")),
            ..Default::default()
        };
        let put = refused(learning.resources.clone().put_resource(put).await);
        assert_eq!(fields(&put), ["key.key"]);
        let for_a_user = emend_proto::learning::v1::PutResourceRequest {
            key: Some(emend_proto::common::v1::ResourceKey {
                user_id: "jane".into(),
                ..domain_key("example.org")
            }),
            value: Some(domain_value("block")),
            ..Default::default()
        };
        let for_a_user = refused(learning.resources.clone().put_resource(for_a_user).await);
        assert_eq!(fields(&for_a_user), ["key.user_id"], "{for_a_user:?}");
        // Whoever owns a private suffix does not own what is below it.
        for above in ["amazonaws.com", "*.rit.edu"] {
            let waits = feedback.learn(decides("ana", above, "block")).await;
            assert_eq!(state(&waits), (OutcomeState::AwaitingReview, "HIGH_RISK"), "{above}");
        }
        let private = feedback.learn(decides("ana", "github.io", "block")).await;
        assert_eq!(state(&private), (OutcomeState::AwaitingReview, "HIGH_RISK"));
        let below = feedback.learn(decides("ana", "jane.github.io", "block")).await;
        assert_eq!(state(&below), (OutcomeState::Applied, ""));
    }

    async fn what_is_missing_or_wrong_is_named(system) {
        let feedback = system.feedback();
        let submit = |request| {
            let feedback = feedback.clone();
            async move { refused(feedback.service.clone().submit_feedback(request).await) }
        };
        let nothing = SubmitFeedbackRequest {
            reason: String::new(),
            scope: Scope::User.into(),
            ..decides("ana", "https://example.org/x", "block")
        };
        let nothing = submit(nothing).await;
        assert_eq!(fields(&nothing), ["correction.domain_block.pattern", "reason", "scope"]);
        let unexplained = SubmitFeedbackRequest {
            reason: String::new(),
            scope: Scope::User.into(),
            ..decides("ana", "example.org", "low")
        };
        assert_eq!(fields(&submit(unexplained).await), ["reason", "scope"]);
        let mut without_level = decides("ana", "example.org", "low");
        if let Some(Form::DomainSetTrust(trust)) = without_level.correction.as_mut().unwrap().correction.as_mut() {
            trust.level = 0;
        }
        assert_eq!(fields(&submit(without_level).await), ["correction.domain_set_trust.level"]);
    }

    async fn operators_import_rules_and_revert_them(system) {
        let learning = system.learning();
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        let rows = (1..).zip([("spam.example", "block"), ("*.example.edu", "academic"), ("mirror.example", "unblock:low")]);
        let rows: Vec<_> = rows
            .map(|(line, (pattern, word))| ImportRow {
                line,
                correction: Some(domain(pattern, word)),
                user_id: String::new(),
            })
            .collect();
        let header = ImportHeader {
            namespace: NAMESPACE.into(),
            mode: ImportMode::AllOrNothing.into(),
            import_as: ImportAs::Decision.into(),
            ..ImportHeader::default()
        };
        let done = learning.import(header.clone(), rows.clone()).await.unwrap();
        assert_eq!((done.applied_count, done.unchanged_count), (3, 0));
        let again = learning.import(header, rows).await.unwrap();
        assert_eq!((again.applied_count, again.unchanged_count), (0, 3));
        node.until(learning.head().await).await;
        assert_eq!(trust(&node, "a.example.edu"), by(TrustLevel::Academic, "*.example.edu"));
        let reverted = learning.revert(1).await.unwrap();
        node.until(reverted).await;
        assert_eq!(trust(&node, "a.example.edu"), (TrustLevel::Unverified, None));
        assert_eq!(learning.resources_in(NAMESPACE).await, []);
    }

    async fn a_frozen_kind_takes_decisions_and_puts_none_into_force(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let freeze = async |frozen| {
            let request = UpdatePolicyRequest {
                policy: Some(Policy {
                    namespace: NAMESPACE.into(),
                    kind: ResourceKind::DomainRule.into(),
                    frozen,
                    ..Policy::default()
                }),
                update_mask: Some(prost_types::FieldMask { paths: vec!["frozen".into()] }),
                ..UpdatePolicyRequest::default()
            };
            answered(learning.policies.clone().update_policy(request).await)
        };
        freeze(true).await;
        let waits = feedback.learn(decides("ana", "spam.example", "block")).await;
        assert_eq!(state(&waits), (OutcomeState::Pending, "FROZEN"));
        assert_eq!(learning.resources_in(NAMESPACE).await, []);
        freeze(false).await;
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        node.until(1).await;
        let candidates = learning.candidates_for("spam.example").await;
        assert_eq!(candidates[0].status(), CandidateStatus::Applied);
        assert!(candidates[0].ruling.as_ref().unwrap().effective);
    }
}

fn form_name(word: &str) -> &'static str {
    match DomainRule::parse(word).unwrap().decision() {
        DomainDecision::Block => "domain_block",
        DomainDecision::Unblock => "domain_unblock",
        DomainDecision::SetTrust => "domain_set_trust",
        DomainDecision::Clear => "domain_clear_override",
    }
}
