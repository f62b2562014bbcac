//! The console: what it shows and does in a real browser and without scripts, and what it lets nobody do.

mod acting;
mod following;
mod framed;
mod guarded;
mod leading;
mod outages;
mod owners;
mod pages;
mod reviewing;
mod second;
mod trying;

use emend_proto::common::v1::{ResourceKind, RiskLevel};
use emend_proto::learning::v1::{Policy, PutResourceRequest, UpdatePolicyRequest};
use emend_tests::harness::{
    NAMESPACE, System, answered, says,
    says::{phrase_key, verb_value},
    verb,
};

/// Lets every phrase wait for a person.
async fn everything_waits(system: &System) {
    answered(
        system
            .learning()
            .policies
            .clone()
            .update_policy(high_risk())
            .await,
    );
}

/// The policy by which every phrase waits for a person.
fn high_risk() -> UpdatePolicyRequest {
    let policy = Policy {
        namespace: NAMESPACE.into(),
        kind: ResourceKind::InvocationPhrase as i32,
        risk_level: RiskLevel::High as i32,
        ..Policy::default()
    };
    UpdatePolicyRequest {
        policy: Some(policy),
        ..UpdatePolicyRequest::default()
    }
}

/// Corrections that wait for a person, as many.
async fn waiting(system: &System, count: usize) {
    let requests = (0..count)
        .map(|number| {
            says(
                &format!("reporter-{number}"),
                verb(&format!("phrase {number}"), &format!("verb_{number}")),
            )
        })
        .collect::<Vec<_>>();
    for request in requests {
        system.feedback().learn(request).await;
    }
}

/// Something that nodes answer.
async fn learned(system: &System, phrase: &str, verb: &str) {
    let request = PutResourceRequest {
        key: Some(phrase_key(phrase)),
        value: Some(verb_value(verb)),
        ..PutResourceRequest::default()
    };
    answered(system.learning().resources.clone().put_resource(request).await);
}
