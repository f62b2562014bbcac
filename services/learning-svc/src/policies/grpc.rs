//! The policy service.

pub(crate) mod namespaces;

use emend_base::{Error, error::PreconditionViolation};
use emend_core::{
    Counting, Invalid, Kind, Language, Learned, Namespace, NearLookup, Policy, RiskLevel, Role, Rule,
    Violations,
};
use emend_proto::common::v1::{NearLookupValue, resource_value::Value};
use emend_proto::learning::v1::{self as pb, policy, policy_service_server::PolicyService};
use emend_serve::{auth::Call, caller::caller_of};
use emend_wire::{kinds, parse as wire, render};
use jiff::SignedDuration;
use learning_store::policies::PolicyKey;
use tonic::{Request, Response, Status};

use crate::{
    etag,
    grpc::{parse, render::small},
    lookups::{
        Previews,
        preview::{self, Searched, Trial},
    },
    policies::{
        Policies,
        namespaces::Namespaces,
        preview::Applied,
        update::{PolicyInForce, PolicyUpdate},
    },
    roles::open,
};

/// The fields that an update may change.
const FIELDS: [&str; 17] = [
    "risk_level",
    "threshold",
    "counting",
    "half_life",
    "max_derived_voters",
    "max_resources",
    "max_value_bytes",
    "max_counted_feedback",
    "frozen",
    "ruling.entitled_role",
    "window.good",
    "window.bad",
    "window.max_text_chars",
    "window.language",
    "review.min_bad",
    "review.automatic",
    "reviewers_needed",
];

/// The contests that a preview lists.
const LISTED: usize = 100;

/// Serves the use cases of policies.
#[derive(Debug, Clone)]
pub struct PolicyHandler {
    policies: Policies,
    namespaces: Namespaces,
    previews: Previews,
}

impl PolicyHandler {
    /// Serves the use cases of `policies`, and of `namespaces` as a whole, and what changes of policies would change.
    pub fn new(policies: Policies, namespaces: Namespaces, previews: Previews) -> Self {
        Self {
            policies,
            namespaces,
            previews,
        }
    }
}

#[tonic::async_trait]
impl PolicyService for PolicyHandler {
    async fn get_policy(
        &self,
        request: Request<pb::GetPolicyRequest>,
    ) -> Result<Response<pb::GetPolicyResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let mut violations = Violations::new();
        let namespace = parse::namespace(&mut violations, &request.namespace);
        let kind = violations.check("kind", wire::kind(request.kind));
        let key = key(namespace, kind);
        let key = violations.finish(key).map_err(Error::from)?;
        let in_force = self.policies.policy(&key).await?;
        Ok(Response::new(pb::GetPolicyResponse {
            policy: Some(message(&in_force)),
        }))
    }

    async fn update_policy(
        &self,
        request: Request<pb::UpdatePolicyRequest>,
    ) -> Result<Response<pb::UpdatePolicyResponse>, Status> {
        let caller = caller_of(&request);
        let Call {
            access,
            message: request,
        } = open(request)?;
        let needs_two = request
            .policy
            .as_ref()
            .is_some_and(|policy| policy.reviewers_needed == 2);
        let update = update(&caller, request).map_err(Error::from)?;
        if needs_two && !access.is_authenticated() {
            return Err(authentication_needed().into());
        }
        let in_force = self.policies.update_policy(&update).await?;
        Ok(Response::new(pb::UpdatePolicyResponse {
            policy: Some(message(&in_force)),
        }))
    }

    async fn preview_policy(
        &self,
        request: Request<pb::PreviewPolicyRequest>,
    ) -> Result<Response<pb::PreviewPolicyResponse>, Status> {
        let caller = caller_of(&request);
        let Call { message: request, .. } = open(request)?;
        let Previewing {
            update,
            key,
            setting,
            queries,
        } = previewing(&caller, request).map_err(Error::from)?;
        let applied = match &update {
            Some(update) => self.policies.preview(update).await?,
            None => Applied::default(),
        };
        let changes = applied.changes.iter().map(|change| {
            let after = change.after.as_ref().map(|value| value.learned.clone());
            (change.key.clone(), after)
        });
        let trial = Trial {
            namespace: key.namespace,
            kinds: preview::kinds_of(key.kind),
            user: None,
            changes: changes.collect(),
            setting,
            queries,
        };
        let changes = self.previews.compare(trial).await?;
        let value = |key, value: Option<&_>| value.map(|value| render::value_of(key, value));
        let resources = applied
            .changes
            .iter()
            .take(LISTED)
            .map(|change| pb::PreviewedResource {
                key: Some(render::resource_key(&change.key)),
                before: value(&change.key, change.before.as_ref()),
                after: value(&change.key, change.after.as_ref()),
            });
        Ok(Response::new(pb::PreviewPolicyResponse {
            resources: resources.collect(),
            resource_count: i64::try_from(applied.changes.len()).unwrap_or(i64::MAX),
            contest_count: i64::try_from(applied.contests).unwrap_or(i64::MAX),
            changes: Some(changes),
        }))
    }

    async fn get_namespace_policy(
        &self,
        request: Request<pb::GetNamespacePolicyRequest>,
    ) -> Result<Response<pb::GetNamespacePolicyResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let mut violations = Violations::new();
        let namespace = parse::namespace(&mut violations, &request.namespace);
        let namespace = violations.finish(namespace).map_err(Error::from)?;
        let stored = self.namespaces.policy(&namespace).await?;
        Ok(Response::new(pb::GetNamespacePolicyResponse {
            policy: Some(namespaces::message(&namespace, &stored)),
        }))
    }

    async fn update_namespace_policy(
        &self,
        request: Request<pb::UpdateNamespacePolicyRequest>,
    ) -> Result<Response<pb::UpdateNamespacePolicyResponse>, Status> {
        let caller = caller_of(&request);
        let update = namespaces::update(&caller, open(request)?.message).map_err(Error::from)?;
        let stored = self.namespaces.update(&update).await?;
        Ok(Response::new(pb::UpdateNamespacePolicyResponse {
            policy: Some(namespaces::message(&update.namespace, &stored)),
        }))
    }
}

/// The error for a policy that nobody could meet.
fn authentication_needed() -> Error {
    let reason = "AUTHENTICATION_NEEDED";
    let message = "two reviewers can't be told apart: callers are not authenticated (--auth-file)";
    Error::FailedPrecondition {
        reason,
        message: message.to_owned(),
        violations: vec![PreconditionViolation {
            kind: reason.into(),
            subject: "policy.reviewers_needed".to_owned(),
            description: message.to_owned(),
        }],
    }
}

fn key(namespace: Option<emend_core::Namespace>, kind: Option<Kind>) -> Option<PolicyKey> {
    Some(PolicyKey {
        namespace: namespace?,
        kind: kind?,
    })
}

/// Which change is tried, on what.
pub(crate) struct Previewing {
    update: Option<PolicyUpdate>,
    key: PolicyKey,
    setting: Option<NearLookup>,
    queries: Vec<Searched>,
}

pub(crate) fn previewing(
    caller: &emend_core::Caller,
    request: pb::PreviewPolicyRequest,
) -> Result<Previewing, Violations> {
    let mut violations = Violations::new();
    let queries = preview::queries(&request.queries, &mut violations);
    let setting = request
        .near
        .map(|near| violations.part("near", near_setting(near)));
    let message = request.policy.clone().unwrap_or_default();
    let kind = wire::kind(message.kind).and_then(|kind| {
        if preview::kinds_of(kind).is_empty() {
            return Err(Invalid::new(
                "must be INVOCATION_PHRASE, ENTITY_ALIAS or PROHIBITION",
            ));
        }
        Ok(kind)
    });
    let kind = violations.check("policy.kind", kind);
    let namespace = violations.check("policy.namespace", Namespace::parse(&message.namespace));
    let mask = request.update_mask.as_ref();
    let changes_policy = mask.map_or_else(|| !set_fields(&message).is_empty(), |mask| !mask.paths.is_empty());
    let update = if changes_policy || setting.is_none() {
        let changed = pb::UpdatePolicyRequest {
            policy: request.policy,
            update_mask: request.update_mask,
            ..pb::UpdatePolicyRequest::default()
        };
        // Its kind and namespace are checked above.
        match update(caller, changed) {
            Ok(update) => Some(Some(update)),
            Err(found) if kind.is_some() && namespace.is_some() => {
                violations.nest("", found);
                None
            }
            Err(_) => None,
        }
    } else {
        Some(None)
    };
    let parsed = (|| {
        Some(Previewing {
            update: update?,
            key: key(namespace, kind)?,
            setting: match setting {
                Some(setting) => Some(setting?),
                None => None,
            },
            queries: queries?,
        })
    })();
    violations.finish(parsed)
}

/// How near answers would be given; the defaults where it is cleared.
fn near_setting(near: NearLookupValue) -> Result<NearLookup, Violations> {
    match kinds::learned(&Value::NearLookup(near))? {
        Learned::NearLookup(Some(near)) => Ok(near),
        _ => Ok(NearLookup::default()),
    }
}

pub(crate) fn update(
    caller: &emend_core::Caller,
    request: pb::UpdatePolicyRequest,
) -> Result<PolicyUpdate, Violations> {
    let mut violations = Violations::new();
    let message = request.policy.unwrap_or_default();
    let mut within = Violations::new();
    let namespace = parse::namespace(&mut within, &message.namespace);
    let kind = within.check("kind", wire::kind(message.kind));
    let etag = parse::etag(&mut within, "etag", &message.etag);
    let paths = match &request.update_mask {
        None => set_fields(&message),
        Some(mask) => masked(&FIELDS, &mask.paths, &mut violations),
    };
    if paths.is_empty() && violations.is_empty() {
        violations.add("update_mask", "must name a field, or the policy must set one");
    }
    let changes = changes(&message, &paths, &mut within);
    if let Some(kind) = kind {
        check_rule(kind, &paths, &mut within);
    }
    violations.nest("policy", within);
    let reason = parse::reason(&mut violations, &request.reason);
    let actor = parse::actor(&mut violations, caller, &request.on_behalf_of);
    let parsed = (|| {
        Some(PolicyUpdate {
            key: key(namespace, kind)?,
            etag: etag?,
            actor: actor?,
            reason: reason?,
            change: Box::new(move |policy| changes.apply(policy)),
        })
    })();
    violations.finish(parsed)
}

/// The fields set to something other than their zero value.
fn set_fields(message: &pb::Policy) -> Vec<&'static str> {
    let (ruling, window, review) = parts(message);
    let set = [
        message.risk_level != 0,
        message.threshold != 0,
        message.counting != 0,
        message.half_life.is_some(),
        message.max_derived_voters != 0,
        message.max_resources != 0,
        message.max_value_bytes != 0,
        message.max_counted_feedback != 0,
        message.frozen,
        ruling.entitled_role != 0,
        window.good != 0,
        window.bad != 0,
        window.max_text_chars != 0,
        window.language != 0,
        review.min_bad != 0,
        review.automatic,
        message.reviewers_needed != 0,
    ];
    FIELDS
        .into_iter()
        .zip(set)
        .filter_map(|(field, set)| set.then_some(field))
        .collect()
}

/// The parts for rulings, windows and review; those that a message has not are without anything set.
fn parts(message: &pb::Policy) -> (pb::RulingPolicy, pb::WindowPolicy, pb::ReviewPolicy) {
    let (mut ruling, mut window, mut review) = Default::default();
    match message.rule {
        Some(policy::Rule::Ruling(part)) => ruling = part,
        Some(policy::Rule::Window(part)) => window = part,
        Some(policy::Rule::Review(part)) => review = part,
        None => {}
    }
    (ruling, window, review)
}

/// Each rule has its own part of the policy.
fn check_rule(kind: Kind, fields: &[&str], violations: &mut Violations) {
    let rule = kind.rules().rule;
    for &field in fields {
        let of = match field {
            "risk_level"
            | "threshold"
            | "counting"
            | "half_life"
            | "max_derived_voters"
            | "max_counted_feedback" => (matches!(rule, Rule::Votes { .. }), "votes"),
            "reviewers_needed" => (!matches!(rule, Rule::Window(_)), "votes, rulings or review"),
            _ if field.starts_with("ruling.") => (matches!(rule, Rule::Ruling(_)), "rulings"),
            _ if field.starts_with("window.") => (matches!(rule, Rule::Window(_)), "a window of ratings"),
            _ if field.starts_with("review.") => (matches!(rule, Rule::Review(_)), "review"),
            _ => (true, ""),
        };
        if let (false, decided_by) = of {
            violations.add(
                field,
                format!(
                    "is for kinds decided by {decided_by}; {kind} is decided by {}",
                    rule.decided_by()
                ),
            );
        }
    }
}

/// The fields that a mask names, each once.
fn masked(known: &[&'static str], paths: &[String], violations: &mut Violations) -> Vec<&'static str> {
    let mut fields = Vec::new();
    for path in paths.iter().take(known.len() * 2) {
        match known.iter().copied().find(|field| field == path) {
            Some(field) if fields.contains(&field) => {}
            Some(field) => fields.push(field),
            None => {
                let shown: String = path.chars().take(64).collect();
                violations.add(
                    "update_mask",
                    format!("{shown:?} is not one of {}", known.join(", ")),
                );
            }
        }
    }
    fields
}

/// What an update sets; a field that is none stays as it is.
#[derive(Clone, Copy, Default)]
struct Changes {
    risk: Option<RiskLevel>,
    threshold: Option<u32>,
    counting: Option<Counting>,
    /// `Some(None)`: votes no longer decay.
    #[expect(clippy::option_option, reason = "none: left; none within: taken away")]
    half_life: Option<Option<SignedDuration>>,
    max_derived_voters: Option<u32>,
    max_resources: Option<u64>,
    max_value_bytes: Option<u32>,
    max_counted_feedback: Option<u32>,
    frozen: Option<bool>,
    entitled: Option<Role>,
    good: Option<u32>,
    bad: Option<u32>,
    max_text_chars: Option<u32>,
    language: Option<Language>,
    min_bad: Option<u32>,
    automatic: Option<bool>,
    reviewers_needed: Option<u32>,
}

impl Changes {
    fn apply(&self, policy: &mut Policy) {
        fn set<T: Copy>(field: &mut T, change: Option<T>) {
            if let Some(change) = change {
                *field = change;
            }
        }
        set(&mut policy.votes.risk, self.risk);
        set(&mut policy.votes.threshold, self.threshold);
        set(&mut policy.votes.counting, self.counting);
        set(&mut policy.votes.half_life, self.half_life);
        set(&mut policy.votes.max_derived_voters, self.max_derived_voters);
        set(&mut policy.max_resources, self.max_resources);
        set(&mut policy.max_value_bytes, self.max_value_bytes);
        set(&mut policy.votes.max_counted_feedback, self.max_counted_feedback);
        set(&mut policy.frozen, self.frozen);
        set(&mut policy.ruling.entitled, self.entitled);
        set(&mut policy.window.good, self.good);
        set(&mut policy.window.bad, self.bad);
        set(&mut policy.window.max_text_chars, self.max_text_chars);
        set(&mut policy.window.language, self.language);
        set(&mut policy.review.min_bad, self.min_bad);
        set(&mut policy.review.automatic, self.automatic);
        set(&mut policy.reviewers_needed, self.reviewers_needed);
    }
}

/// The changes a message makes to those fields, with violations where they are out of bounds.
fn changes(message: &pb::Policy, fields: &[&str], violations: &mut Violations) -> Changes {
    let mut changes = Changes::default();
    let (ruling, window, review) = parts(message);
    for &field in fields {
        match field {
            "risk_level" => changes.risk = violations.check(field, risk(message.risk_level)),
            "counting" => changes.counting = violations.check(field, counting(message.counting)),
            "threshold" => changes.threshold = Some(unsigned(message.threshold)),
            "half_life" => changes.half_life = half_life(message.half_life.as_ref(), violations),
            "max_derived_voters" => changes.max_derived_voters = Some(unsigned(message.max_derived_voters)),
            "max_resources" => {
                changes.max_resources = Some(u64::try_from(message.max_resources).unwrap_or(0));
            }
            "max_value_bytes" => changes.max_value_bytes = Some(unsigned(message.max_value_bytes)),
            "frozen" => changes.frozen = Some(message.frozen),
            "ruling.entitled_role" => {
                changes.entitled = violations.check(field, entitled(ruling.entitled_role));
            }
            "window.good" => changes.good = violations.check(field, count(window.good)),
            "window.bad" => changes.bad = violations.check(field, count(window.bad)),
            "window.max_text_chars" => changes.max_text_chars = Some(unsigned(window.max_text_chars)),
            "window.language" => changes.language = violations.check(field, kinds::language(window.language)),
            "review.min_bad" => changes.min_bad = Some(unsigned(review.min_bad)),
            "reviewers_needed" => changes.reviewers_needed = Some(unsigned(message.reviewers_needed)),
            "review.automatic" => changes.automatic = Some(review.automatic),
            _ => changes.max_counted_feedback = Some(unsigned(message.max_counted_feedback)),
        }
    }
    // The bounds are the core's: apply the changes to an otherwise valid policy and validate that.
    let mut policy = Policy::default_for(Kind::InvocationPhrase);
    changes.apply(&mut policy);
    violations.part("", policy.validate());
    changes
}

/// A count that may be 0.
fn count(number: i32) -> Result<u32, Invalid> {
    u32::try_from(number).map_err(|_| Invalid::new(format!("must be 0 or more, is {number}")))
}

/// Negative numbers become 0, which is out of bounds as well.
fn unsigned(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

fn risk(number: i32) -> Result<RiskLevel, Invalid> {
    wire::risk_level(number)?.ok_or_else(|| Invalid::new("is required: LOW, MEDIUM or HIGH"))
}

fn counting(number: i32) -> Result<Counting, Invalid> {
    match pb::Counting::try_from(number) {
        Ok(pb::Counting::DistinctVoters) => Ok(Counting::DistinctVoters),
        Ok(pb::Counting::Occurrences) => Ok(Counting::Occurrences),
        Ok(pb::Counting::Unspecified) => Err(Invalid::new("is required: DISTINCT_VOTERS or OCCURRENCES")),
        Err(_) => Err(Invalid::new(format!("is not a known counting: {number}"))),
    }
}

fn entitled(number: i32) -> Result<Role, Invalid> {
    match pb::EntitledRole::try_from(number) {
        Ok(pb::EntitledRole::Reporter) => Ok(Role::Reporter),
        Ok(pb::EntitledRole::Reviewer) => Ok(Role::Reviewer),
        Ok(pb::EntitledRole::Operator) => Ok(Role::Operator),
        Ok(pb::EntitledRole::Admin) => Ok(Role::Admin),
        Ok(pb::EntitledRole::Unspecified) => {
            Err(Invalid::new("is required: REPORTER, REVIEWER, OPERATOR or ADMIN"))
        }
        Err(_) => Err(Invalid::new(format!("is not a known role: {number}"))),
    }
}

#[expect(
    clippy::option_option,
    reason = "the outer option is none if invalid, the inner if votes do not decay"
)]
fn half_life(
    message: Option<&prost_types::Duration>,
    violations: &mut Violations,
) -> Option<Option<SignedDuration>> {
    let Some(message) = message else {
        return Some(None);
    };
    let bounds = (
        SignedDuration::from_hours(1),
        SignedDuration::from_hours(3_650 * 24),
    );
    let parsed = wire::duration(message, bounds.0, bounds.1);
    // Stored in whole seconds.
    let parsed = violations.check("half_life", parsed)?;
    Some(Some(SignedDuration::from_secs(parsed.as_secs())))
}

fn message(in_force: &PolicyInForce) -> pb::Policy {
    let policy = &in_force.stored.policy;
    pb::Policy {
        namespace: in_force.key.namespace.to_string(),
        kind: render::kind(in_force.key.kind),
        risk_level: render::risk_level(policy.votes.risk) as i32,
        threshold: small(policy.votes.threshold),
        counting: match policy.votes.counting {
            Counting::DistinctVoters => pb::Counting::DistinctVoters,
            Counting::Occurrences => pb::Counting::Occurrences,
        } as i32,
        half_life: policy.votes.half_life.map(|half_life| prost_types::Duration {
            seconds: half_life.as_secs(),
            nanos: 0,
        }),
        max_derived_voters: small(policy.votes.max_derived_voters),
        max_resources: render::saturated(policy.max_resources),
        max_value_bytes: small(policy.max_value_bytes),
        max_counted_feedback: small(policy.votes.max_counted_feedback),
        version: policy.version,
        etag: etag::of_version(policy.version),
        updated_at: in_force.stored.updated_at.map(render::timestamp),
        reevaluation_remaining: render::saturated(in_force.remaining),
        frozen: policy.frozen,
        reviewers_needed: small(policy.reviewers_needed),
        rule: match in_force.key.kind.rules().rule {
            Rule::Votes { .. } => None,
            Rule::Review(_) => Some(policy::Rule::Review(pb::ReviewPolicy {
                min_bad: small(policy.review.min_bad),
                automatic: policy.review.automatic,
            })),
            Rule::Ruling(_) => Some(policy::Rule::Ruling(pb::RulingPolicy {
                entitled_role: match policy.ruling.entitled {
                    Role::Reporter => pb::EntitledRole::Reporter,
                    Role::Reviewer => pb::EntitledRole::Reviewer,
                    Role::Operator => pb::EntitledRole::Operator,
                    Role::Admin => pb::EntitledRole::Admin,
                } as i32,
            })),
            Rule::Window(_) => Some(policy::Rule::Window(pb::WindowPolicy {
                good: small(policy.window.good),
                bad: small(policy.window.bad),
                max_text_chars: small(policy.window.max_text_chars),
                language: policy.window.language.number(),
            })),
        },
    }
}
