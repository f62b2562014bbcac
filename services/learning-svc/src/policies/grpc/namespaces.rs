//! Policies of namespaces on the wire.

use emend_core::{
    Caller, Invalid, Namespace, Violations,
    evidence::{BlockingPolicy, Combining, NamespacePolicy},
};
use emend_proto::learning::v1 as pb;
use emend_wire::render;
use learning_store::evidence::StoredNamespacePolicy;

use super::masked;
use crate::{
    etag,
    grpc::{parse, render::small},
    policies::namespaces::NamespacePolicyUpdate,
};

/// The fields that an update may change.
const FIELDS: [&str; 3] = ["combining", "min_claims", "rejected_permille"];

pub(crate) fn update(
    caller: &Caller,
    request: pb::UpdateNamespacePolicyRequest,
) -> Result<NamespacePolicyUpdate, Violations> {
    let mut violations = Violations::new();
    let message = request.policy.unwrap_or_default();
    let mut within = Violations::new();
    let namespace = parse::namespace(&mut within, &message.namespace);
    let etag = parse::etag(&mut within, "etag", &message.etag);
    let paths = match &request.update_mask {
        None => set_fields(&message),
        Some(mask) => masked(&FIELDS, &mask.paths, &mut violations),
    };
    if paths.is_empty() && violations.is_empty() {
        violations.add("update_mask", "must name a field, or the policy must set one");
    }
    let changes = Changes::parse(&message, &paths, &mut within);
    violations.nest("policy", within);
    let reason = parse::reason(&mut violations, &request.reason);
    let actor = parse::actor(&mut violations, caller, &request.on_behalf_of);
    let parsed = (|| {
        Some(NamespacePolicyUpdate {
            namespace: namespace?,
            etag: etag?,
            actor: actor?,
            reason: reason?,
            change: Box::new(move |policy| changes.apply(policy)),
        })
    })();
    violations.finish(parsed)
}

/// The fields set to something other than their zero value.
fn set_fields(message: &pb::NamespacePolicy) -> Vec<&'static str> {
    let set = [
        message.combining != 0,
        message.min_claims != 0,
        message.rejected_permille != 0,
    ];
    let set = FIELDS.into_iter().zip(set);
    set.filter_map(|(field, set)| set.then_some(field)).collect()
}

/// What an update sets; a field that is none stays as it is.
#[derive(Clone, Copy, Default)]
struct Changes {
    combining: Option<Combining>,
    min_claims: Option<u32>,
    rejected_permille: Option<u32>,
}

impl Changes {
    fn parse(message: &pb::NamespacePolicy, fields: &[&str], violations: &mut Violations) -> Self {
        let default = BlockingPolicy::default();
        let mut changes = Self::default();
        for &field in fields {
            match field {
                "combining" => changes.combining = violations.check(field, combining(message.combining)),
                "min_claims" => {
                    // Negative numbers become 0, which is out of bounds as well.
                    let count = u32::try_from(message.min_claims).unwrap_or(0);
                    let parsed = BlockingPolicy::new(count, default.rejected_permille());
                    changes.min_claims = violations.check(field, parsed.map(BlockingPolicy::min_claims));
                }
                _ => {
                    let permille = u32::try_from(message.rejected_permille).unwrap_or(u32::MAX);
                    let parsed = BlockingPolicy::new(default.min_claims(), permille).map_err(|_| {
                        Invalid::new(format!(
                            "must be 0 to 1,000 of 1,000 claims, is {}",
                            message.rejected_permille
                        ))
                    });
                    changes.rejected_permille =
                        violations.check(field, parsed.map(BlockingPolicy::rejected_permille));
                }
            }
        }
        changes
    }

    fn apply(&self, policy: &mut NamespacePolicy) {
        policy.combining = self.combining.unwrap_or(policy.combining);
        let before = policy.blocking;
        let min_claims = self.min_claims.unwrap_or(before.min_claims());
        let permille = self.rejected_permille.unwrap_or(before.rejected_permille());
        // Both are within their bounds, which do not depend on each other.
        policy.blocking = BlockingPolicy::new(min_claims, permille).unwrap_or(before);
    }
}

fn combining(number: i32) -> Result<Combining, Invalid> {
    if number == 0 {
        return Err(Invalid::new("is required: COUNT_ALL or ONE_PER_SOURCE"));
    }
    Combining::from_number(number)
        .ok_or_else(|| Invalid::new(format!("is no known way to combine edges: {number}")))
}

pub(super) fn message(namespace: &Namespace, stored: &StoredNamespacePolicy) -> pb::NamespacePolicy {
    let policy = &stored.policy;
    pb::NamespacePolicy {
        namespace: namespace.to_string(),
        combining: policy.combining.number(),
        min_claims: small(policy.blocking.min_claims()),
        rejected_permille: small(policy.blocking.rejected_permille()),
        version: policy.version,
        etag: etag::of_version(policy.version),
        updated_at: stored.updated_at.map(render::timestamp),
    }
}
