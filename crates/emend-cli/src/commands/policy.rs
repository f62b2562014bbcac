//! `emend policy`: what it takes to learn something.

mod near;

use clap::Subcommand;
use emend_core::NearLookup;
use emend_proto::{
    common::v1::RiskLevel,
    learning::v1::{
        Combining, Counting, EntitledRole, GetNamespacePolicyRequest, GetPolicyRequest, NamespacePolicy,
        Policy, PreviewPolicyRequest, ReviewPolicy, RulingPolicy, UpdateNamespacePolicyRequest,
        UpdatePolicyRequest, WindowPolicy, policy,
    },
};
use prost_types::{FieldMask, Timestamp};

use self::near::NearArgs;
use super::{
    Decision,
    previews::{self, Tried},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Output, counted},
    view,
    words::{self, Count, InLanguage, Kind, Risk, SpanOrNone},
};

/// Get or set a policy.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend policy get invocation_phrase
  emend policy set invocation_phrase --threshold 5 --reason \"too many wrong ones\" --by dana
  emend policy set entity_alias --risk medium
  emend policy set prohibition --half-life 90d
  emend policy set prohibition --half-life none
  emend policy set domain_rule --entitled operator
  emend policy set prompt --reviewers-needed 2 --reason \"prompts reach everybody\"
  emend policy set few_shot_set --good 8 --language ja
  emend policy set few_shot_set --frozen true --reason \"somebody floods it\"
  emend policy set invocation_phrase --near-min-confidence 0.9
  emend policy preview invocation_phrase --threshold 2 --near-min-confidence 0.7 --days 14
  emend policy namespace
  emend policy namespace --combining one-per-source --min-claims 10

After a change every contest is evaluated again in the background; `get` shows how many remain.
Near answers are those to phrases that nobody corrected, by what was learned for similar ones. How
they are given is a resource of the kind near_lookup, which nodes have with what they answer.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the policy in force
    Get {
        /// The kind of resource
        #[arg(value_enum)]
        kind: Kind,
    },
    /// Change the given fields and keep the rest
    Set(Box<SetArgs>),
    /// Show what a change would apply at once, and which answers to recorded queries it would change
    Preview(Box<PreviewArgs>),
    /// Show the policy of the namespace as a whole, or change the given fields of it
    Namespace(NamespaceArgs),
}

#[derive(Debug, clap::Args)]
struct NamespaceArgs {
    /// What of the edges of a claim weighs in its confidence
    #[arg(long, value_enum)]
    combining: Option<CombiningWay>,
    /// With fewer claims than this a domain is not blocked for those that are rejected, 1 to 1000000
    #[arg(long, value_name = "COUNT")]
    min_claims: Option<i32>,
    /// A domain is blocked where more of 1000 of its claims are rejected, 0 to 1000
    #[arg(long, value_name = "COUNT")]
    rejected_permille: Option<i32>,
    /// Only if it still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
    #[command(flatten)]
    decision: Decision,
}

/// What counts where several edges of a claim come from one source.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CombiningWay {
    /// Each edge
    CountAll,
    /// Of each relation the strongest edge of each source
    OnePerSource,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "emend policy set <KIND> <OPTIONS>")]
struct SetArgs {
    /// The kind of resource
    #[arg(value_enum)]
    kind: Kind,
    #[command(flatten)]
    changes: Changes,
    /// Only if it still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
    #[command(flatten)]
    decision: Decision,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "emend policy preview <KIND> <OPTIONS>")]
struct PreviewArgs {
    /// The kind of resource
    #[arg(value_enum)]
    kind: Kind,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    tried: Tried,
}

/// The fields that are given.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true)
    .args(["risk", "threshold", "counting", "half_life", "max_derived_voters", "max_resources", "max_value_bytes",
           "max_counted_feedback", "frozen", "entitled", "good", "bad", "max_text_chars", "language", "min_bad", "automatic",
           "reviewers_needed", "near_min_confidence", "near_method", "near_vectors"]))]
struct Changes {
    /// How much harm a wrong promotion would do
    #[arg(long, value_enum)]
    risk: Option<Risk>,
    /// Net confirmations required at medium risk, 1 to 1000
    #[arg(long, value_name = "COUNT")]
    threshold: Option<i32>,
    /// What to count
    #[arg(long, value_enum)]
    counting: Option<Count>,
    /// The time in which a vote's weight halves, for example 90d; `none`: votes do not decay
    #[arg(long, value_name = "SPAN", value_parser = words::span_or_none)]
    half_life: Option<SpanOrNone>,
    /// The most voters derived from one caller that count in a contest
    #[arg(long, value_name = "COUNT")]
    max_derived_voters: Option<i32>,
    /// The most resources of this kind
    #[arg(long, value_name = "COUNT")]
    max_resources: Option<i64>,
    /// The most encoded bytes of one value
    #[arg(long, value_name = "BYTES")]
    max_value_bytes: Option<i32>,
    /// Count only this many of a contest's corrections, the newest
    #[arg(long, value_name = "COUNT")]
    max_counted_feedback: Option<i32>,
    /// Whether corrections put nothing into force until this is taken back
    #[arg(long, value_name = "BOOL")]
    frozen: Option<bool>,
    /// Whose decisions are effective at once, for kinds decided by rulings
    #[arg(long, value_enum)]
    entitled: Option<Entitled>,
    /// How many good examples a set shows, 0 to 20
    #[arg(long, value_name = "COUNT")]
    good: Option<i32>,
    /// How many examples to avoid a set shows, 0 to 20
    #[arg(long, value_name = "COUNT")]
    bad: Option<i32>,
    /// The characters after which a text of an example is cut, 100 to 10000
    #[arg(long, value_name = "COUNT")]
    max_text_chars: Option<i32>,
    /// The language around examples
    #[arg(long, value_enum)]
    language: Option<InLanguage>,
    /// How many bad ratings since the newest proposal an improvement of a prompt needs, 1 to 1000
    #[arg(long, value_name = "COUNT")]
    min_bad: Option<i32>,
    /// Whether an improvement is generated as soon as there are that many, without a request
    #[arg(long, value_name = "BOOL")]
    automatic: Option<bool>,
    /// How many reviewers have to approve what a person applies, 1 or 2
    #[arg(long, value_name = "COUNT")]
    reviewers_needed: Option<i32>,
    #[command(flatten)]
    near: NearArgs,
}

/// A role that decides by rulings.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Entitled {
    Reporter,
    Reviewer,
    Operator,
    Admin,
}

/// The part of the policy for the kind's rule.
fn rule(set: &Changes) -> Option<policy::Rule> {
    if let Some(entitled) = set.entitled {
        let role = match entitled {
            Entitled::Reporter => EntitledRole::Reporter,
            Entitled::Reviewer => EntitledRole::Reviewer,
            Entitled::Operator => EntitledRole::Operator,
            Entitled::Admin => EntitledRole::Admin,
        };
        return Some(policy::Rule::Ruling(RulingPolicy {
            entitled_role: role.into(),
        }));
    }
    if set.min_bad.is_some() || set.automatic.is_some() {
        return Some(policy::Rule::Review(ReviewPolicy {
            min_bad: set.min_bad.unwrap_or_default(),
            automatic: set.automatic.unwrap_or_default(),
        }));
    }
    let is_window =
        set.good.is_some() || set.bad.is_some() || set.max_text_chars.is_some() || set.language.is_some();
    is_window.then(|| {
        policy::Rule::Window(WindowPolicy {
            good: set.good.unwrap_or_default(),
            bad: set.bad.unwrap_or_default(),
            max_text_chars: set.max_text_chars.unwrap_or_default(),
            language: set.language.map_or(0, InLanguage::number),
        })
    })
}

/// Gets or sets a policy.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let mut client = context.policies().await?;
    let policy = match args.action {
        Action::Get { kind } => {
            let request = GetPolicyRequest {
                namespace: context.namespace(),
                kind: kind.number(),
            };
            client
                .get_policy(context.request(request))
                .await?
                .into_inner()
                .policy
        }
        Action::Set(args) => set(*args, context).await?,
        Action::Preview(args) => return preview(*args, context, output).await,
        Action::Namespace(args) => return namespace(args, context, output).await,
    };
    let policy = policy.ok_or_else(|| Failure::failed("learning-svc answered without the policy"))?;
    let near = near::get(context, policy.kind).await?;
    output.result(&near::json(&policy, near.as_ref()), || {
        text(&policy, near.as_ref())
    })
}

/// The paths of the fields that are given.
fn paths(set: &Changes) -> FieldMask {
    mask([
        (set.risk.is_some(), "risk_level"),
        (set.threshold.is_some(), "threshold"),
        (set.counting.is_some(), "counting"),
        (set.half_life.is_some(), "half_life"),
        (set.max_derived_voters.is_some(), "max_derived_voters"),
        (set.max_resources.is_some(), "max_resources"),
        (set.max_value_bytes.is_some(), "max_value_bytes"),
        (set.max_counted_feedback.is_some(), "max_counted_feedback"),
        (set.frozen.is_some(), "frozen"),
        (set.entitled.is_some(), "ruling.entitled_role"),
        (set.good.is_some(), "window.good"),
        (set.bad.is_some(), "window.bad"),
        (set.max_text_chars.is_some(), "window.max_text_chars"),
        (set.language.is_some(), "window.language"),
        (set.min_bad.is_some(), "review.min_bad"),
        (set.automatic.is_some(), "review.automatic"),
        (set.reviewers_needed.is_some(), "reviewers_needed"),
    ])
}

/// The policy with the fields that are given.
fn given(set: &Changes, kind: Kind, namespace: String) -> Result<Policy> {
    let half_life = set.half_life.and_then(|SpanOrNone(span)| span);
    let half_life = half_life
        .map(prost_types::Duration::try_from)
        .transpose()
        .map_err(|_| Failure::usage("--half-life is too long"))?;
    Ok(Policy {
        namespace,
        kind: kind.number(),
        risk_level: set.risk.map_or(0, |risk| RiskLevel::from(risk) as i32),
        threshold: set.threshold.unwrap_or_default(),
        counting: set.counting.map_or(0, |counting| Counting::from(counting) as i32),
        half_life,
        max_derived_voters: set.max_derived_voters.unwrap_or_default(),
        max_resources: set.max_resources.unwrap_or_default(),
        max_value_bytes: set.max_value_bytes.unwrap_or_default(),
        max_counted_feedback: set.max_counted_feedback.unwrap_or_default(),
        frozen: set.frozen.unwrap_or_default(),
        reviewers_needed: set.reviewers_needed.unwrap_or_default(),
        rule: rule(set),
        ..Default::default()
    })
}

/// Changes what is given. How near answers are given is a resource, and changed apart.
async fn set(args: SetArgs, context: &Context) -> Result<Option<Policy>> {
    let kind = args.kind.number();
    let update_mask = paths(&args.changes);
    let mut client = context.policies().await?;
    let policy = if update_mask.paths.is_empty() {
        let request = GetPolicyRequest {
            namespace: context.namespace(),
            kind,
        };
        client
            .get_policy(context.request(request))
            .await?
            .into_inner()
            .policy
    } else {
        let request = UpdatePolicyRequest {
            policy: Some(Policy {
                etag: args.etag,
                ..given(&args.changes, args.kind, context.namespace())?
            }),
            update_mask: Some(update_mask),
            reason: args.decision.reason.clone(),
            on_behalf_of: args.decision.by.clone(),
        };
        client
            .update_policy(context.request(request))
            .await?
            .into_inner()
            .policy
    };
    if args.changes.near.is_given() {
        near::set(context, kind, &args.changes.near, &args.decision).await?;
    }
    Ok(policy)
}

async fn preview(args: PreviewArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let kind = args.kind.number();
    let changes = &args.changes;
    let near = if changes.near.is_given() {
        near::message(near::changed(context, kind, &changes.near).await?)
    } else {
        None
    };
    let request = PreviewPolicyRequest {
        policy: Some(given(changes, args.kind, context.namespace())?),
        update_mask: Some(paths(changes)),
        near,
        queries: previews::searched(context, &args.tried).await?,
    };
    let mut client = context.policies().await?;
    let answer = client
        .preview_policy(context.request(request))
        .await?
        .into_inner();
    let width = output.width();
    output.result(&view::message(&answer), || {
        let applied = format!(
            "{} of {} that wait would apply another value at once",
            answer.resource_count,
            counted(answer.contest_count, "contest", "contests"),
        );
        let resources = answer.resources.iter().map(|resource| match &resource.after {
            Some(after) => format!("  {}", view::value_pair(Some(after))),
            None => format!(
                "  {}: nothing any more",
                resource.key.as_ref().map_or("", |key| &key.key)
            ),
        });
        let lines: Vec<String> = std::iter::once(applied).chain(resources).collect();
        let changes = answer.changes.clone().unwrap_or_default();
        format!(
            "{}\n{}",
            lines.join("\n"),
            previews::text(&changes, &args.tried, width)
        )
    })
}

/// The fields that are given.
fn mask<const N: usize>(fields: [(bool, &str); N]) -> FieldMask {
    let given = fields.into_iter().filter(|(is_given, _)| *is_given);
    FieldMask {
        paths: given.map(|(_, path)| path.to_owned()).collect(),
    }
}

/// Shows the policy of a namespace as a whole, or changes it where fields are given.
async fn namespace(args: NamespaceArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let mut client = context.policies().await?;
    let update_mask = mask([
        (args.combining.is_some(), "combining"),
        (args.min_claims.is_some(), "min_claims"),
        (args.rejected_permille.is_some(), "rejected_permille"),
    ]);
    let namespace = context.namespace();
    let policy = if update_mask.paths.is_empty() {
        if !(args.etag.is_empty() && args.decision.reason.is_empty() && args.decision.by.is_empty()) {
            return Err(Failure::usage(
                "nothing is to be changed: give --combining, --min-claims or --rejected-permille",
            ));
        }
        let request = GetNamespacePolicyRequest { namespace };
        let answer = client.get_namespace_policy(context.request(request)).await?;
        answer.into_inner().policy
    } else {
        let request = UpdateNamespacePolicyRequest {
            policy: Some(NamespacePolicy {
                namespace,
                combining: args.combining.map_or(0, |way| match way {
                    CombiningWay::CountAll => Combining::CountAll.into(),
                    CombiningWay::OnePerSource => Combining::OnePerSource.into(),
                }),
                min_claims: args.min_claims.unwrap_or_default(),
                rejected_permille: args.rejected_permille.unwrap_or_default(),
                etag: args.etag,
                ..Default::default()
            }),
            update_mask: Some(update_mask),
            reason: args.decision.reason,
            on_behalf_of: args.decision.by,
        };
        let answer = client.update_namespace_policy(context.request(request)).await?;
        answer.into_inner().policy
    };
    let policy = policy.ok_or_else(|| Failure::failed("learning-svc answered without the policy"))?;
    output.result(&view::message(&policy), || namespace_text(&policy))
}

fn namespace_text(policy: &NamespacePolicy) -> String {
    aligned(&[
        ("namespace", policy.namespace.clone()),
        ("combining", lower(policy.combining().as_str_name(), "COMBINING_")),
        ("min claims", policy.min_claims.to_string()),
        ("rejected permille", policy.rejected_permille.to_string()),
        ("version", version(policy.version, policy.updated_at.as_ref())),
        ("etag", policy.etag.clone()),
    ])
}

/// The name of an enum's value without the enum's, in lower case.
fn lower(name: &str, prefix: &str) -> String {
    name.trim_start_matches(prefix).to_ascii_lowercase()
}

fn version(version: i64, updated_at: Option<&Timestamp>) -> String {
    match version {
        0 => "0 (the default; never set)".into(),
        version => format!("{version}, set at {}", view::short_time(updated_at)),
    }
}

fn aligned(rows: &[(&str, String)]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for (name, value) in rows {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{name:<21} {value}");
    }
    text
}

fn text(policy: &Policy, near: Option<&NearLookup>) -> String {
    let counting = Counting::try_from(policy.counting).map_or("", |counting| counting.as_str_name());
    let half_life = policy
        .half_life
        .as_ref()
        .map_or_else(|| "none: votes do not decay".into(), view::span_text);
    let remaining = match policy.reevaluation_remaining {
        0 => "none: every contest is evaluated by this version".into(),
        1 => "1 contest is still to be evaluated by this version".into(),
        count => format!("{count} contests are still to be evaluated by this version"),
    };
    let rule_rows: Vec<(&str, String)> = match &policy.rule {
        None => vec![
            ("risk", words::risk_name(policy.risk_level)),
            ("threshold", policy.threshold.to_string()),
            ("counting", lower(counting, "COUNTING_")),
            ("half-life", half_life),
            ("max derived voters", policy.max_derived_voters.to_string()),
            ("max counted feedback", policy.max_counted_feedback.to_string()),
        ],
        Some(policy::Rule::Ruling(ruling)) => {
            let role = ruling.entitled_role().as_str_name();
            vec![("entitled", lower(role, "ENTITLED_ROLE_"))]
        }
        Some(policy::Rule::Review(review)) => vec![
            ("min bad", review.min_bad.to_string()),
            ("automatic", review.automatic.to_string()),
        ],
        Some(policy::Rule::Window(window)) => {
            vec![
                ("good", window.good.to_string()),
                ("bad", window.bad.to_string()),
                ("max text chars", window.max_text_chars.to_string()),
                ("language", lower(window.language().as_str_name(), "LANGUAGE_")),
            ]
        }
    };
    let first = vec![
        ("namespace", policy.namespace.clone()),
        ("kind", words::kind_name(policy.kind)),
    ];
    let last = vec![
        ("max resources", policy.max_resources.to_string()),
        ("max value bytes", policy.max_value_bytes.to_string()),
        ("frozen", policy.frozen.to_string()),
        ("reviewers needed", policy.reviewers_needed.to_string()),
        ("version", version(policy.version, policy.updated_at.as_ref())),
        ("etag", policy.etag.clone()),
        ("remaining", remaining),
    ];
    let rows: Vec<_> = first
        .into_iter()
        .chain(rule_rows)
        .chain(near::rows(near))
        .chain(last)
        .collect();
    aligned(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_contest_is_called_one_contest() {
        let policy = Policy {
            reevaluation_remaining: 1,
            ..Policy::default()
        };
        let text = text(&policy, None);
        assert!(text.contains("1 contest is still to be evaluated"), "{text}");
    }
}
