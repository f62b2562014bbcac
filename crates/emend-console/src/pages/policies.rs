//! What it takes to learn something, kind by kind, in words; and the switch that stops learning.

mod fields;
mod near;
mod said;
mod words;

use askama::Template;
use emend_core::Kind;
use emend_proto::learning::v1::{
    Combining, GetNamespacePolicyRequest, GetPolicyRequest, NamespacePolicy, Policy,
    UpdateNamespacePolicyRequest, UpdatePolicyRequest,
};
use futures::future::try_join_all;
use http::StatusCode;
use prost_types::FieldMask;
use tonic::Status;

use self::{
    fields::{Field, Input, fields, label, near_fields},
    said::{changed, choice},
    words::{second, words},
};
use crate::{
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::Choice,
    text::{Moment, moment},
    told::Told,
    typed,
};

/// How a namespace combines edges, and by which name a form says so.
const COMBININGS: [(i32, &str); 2] = [
    (Combining::CountAll as i32, "count_all"),
    (Combining::OnePerSource as i32, "one_per_source"),
];

/// The page.
#[derive(Debug, Template)]
#[template(path = "policies.html")]
struct Policies {
    page: Page,
    cards: Vec<Card>,
    whole: Whole,
    may_change: bool,
    may_change_whole: bool,
    may_set_near: bool,
}

/// One kind.
#[derive(Debug)]
struct Card {
    kind: &'static str,
    label: String,
    words: String,
    frozen: bool,
    version: i64,
    etag: String,
    changed: Moment,
    remaining: i64,
    fields: Vec<Field>,
    /// How phrases that nobody corrected are answered; empty where no phrase is looked up as one.
    near: Vec<Field>,
    near_etag: String,
}

/// What is settled for the namespace as a whole.
#[derive(Debug)]
struct Whole {
    etag: String,
    version: i64,
    fields: Vec<Field>,
}

/// Shows all policies.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Profile);
    let cards = kinds.map(async |kind| {
        let policy = read(visitor, kind).await?;
        let mut card = card(visitor, kind, &policy);
        if let Some((near, etag)) = near::read(visitor, kind).await? {
            (card.near, card.near_etag) = (near_fields(visitor.language, &near), etag);
        }
        Ok::<_, Status>(card)
    });
    let request = GetNamespacePolicyRequest {
        namespace: visitor.namespace.clone(),
    };
    let mut client = visitor.services.policies();
    let whole = client
        .get_namespace_policy(visitor.services.call(request))
        .await?;
    let policies = Policies {
        cards: try_join_all(cards).await?,
        whole: whole_of(visitor, whole.into_inner().policy.unwrap_or_default()),
        may_change: visitor.may("learning.v1.PolicyService/UpdatePolicy"),
        may_set_near: visitor.may("learning.v1.ResourceService/PutResource"),
        may_change_whole: visitor.may("learning.v1.PolicyService/UpdateNamespacePolicy"),
        page: visitor.page(Part::Policies, visitor.t("Policies", "ポリシー"), fields),
    };
    Ok(html(StatusCode::OK, &policies))
}

async fn read(visitor: &Visitor, kind: Kind) -> Result<Policy, Status> {
    let request = GetPolicyRequest {
        namespace: visitor.namespace.clone(),
        kind: kind.number(),
    };
    let mut client = visitor.services.policies();
    let answer = client.get_policy(visitor.services.call(request)).await?;
    Ok(answer.into_inner().policy.unwrap_or_default())
}

fn card(visitor: &Visitor, kind: Kind, policy: &Policy) -> Card {
    Card {
        kind: kind.name(),
        label: visitor.language.kind(kind.number()),
        words: words(visitor.language, kind, policy) + second(visitor.language, policy),
        frozen: policy.frozen,
        version: policy.version,
        etag: policy.etag.clone(),
        changed: moment(policy.updated_at.as_ref()),
        remaining: policy.reevaluation_remaining,
        fields: fields(visitor.language, kind, policy),
        near: Vec::new(),
        near_etag: String::new(),
    }
}

fn whole_of(visitor: &Visitor, policy: NamespacePolicy) -> Whole {
    let t = |english: &'static str, japanese: &'static str| visitor.language.t(english, japanese);
    let labels = [
        t("each weighs", "すべて数える"),
        t("the strongest weighs", "最も強いものだけ"),
    ];
    let combinings = COMBININGS.into_iter().zip(labels);
    let combining = combinings.map(|((number, name), label)| Choice {
        value: name.to_owned(),
        label: label.to_owned(),
        is_chosen: number == policy.combining,
    });
    let number = |value: i32, least, most| Input::Number {
        value: value.into(),
        least,
        most,
    };
    let fields = vec![
        Field {
            path: "combining",
            label: label(visitor.language, "combining"),
            effect: t(
                "What of them counts for the confidence of the claim.",
                "主張の信頼度の計算で数えるものを決めます。",
            ),
            input: Input::Choices(combining.collect()),
        },
        Field {
            path: "min_claims",
            label: label(visitor.language, "min_claims"),
            effect: t(
                "With fewer claims a domain is never blocked for rejected ones.",
                "主張がこれより少ないドメインは、却下を理由にブロックされません。",
            ),
            input: number(policy.min_claims, 1, 1_000_000),
        },
        Field {
            path: "rejected_permille",
            label: label(visitor.language, "rejected_permille"),
            effect: t(
                "A domain is blocked where more of 1,000 of its claims are rejected.",
                "主張の却下率がこの値を超えたドメインはブロックされます。",
            ),
            input: number(policy.rejected_permille, 0, 1_000),
        },
    ];
    Whole {
        fields,
        etag: policy.etag,
        version: policy.version,
    }
}

/// The kind that the path names.
fn kind_of(visitor: &Visitor) -> Result<Kind, Status> {
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == visitor.item);
    kind.ok_or_else(|| Status::from(emend_base::Error::not_found("kind", visitor.item.clone())))
}

/// Goes back to the policies, which tell what was done to that of a kind, or of the namespace.
fn saved(visitor: &Visitor, done: &str, kind: Option<Kind>) -> Answer {
    let label = kind.map(|kind| visitor.language.kind(kind.number()));
    let told = Told::new(done).of(label.as_deref().unwrap_or_default());
    visitor.go(&visitor.to(Part::Policies, &visitor.telling(told)))
}

/// Changes the policy of a kind, or freezes what is learned of it.
pub(crate) async fn update(visitor: &Visitor, fields: &Fields) -> Answer {
    let kind = kind_of(visitor)?;
    if fields.has("near.method") {
        near::set(visitor, kind, fields).await?;
        return saved(visitor, "saved", Some(kind));
    }
    let (mut policy, paths) = changed(kind, fields)?;
    if paths == ["frozen"] && fields.get("reason").is_empty() {
        return Err(Status::from(emend_base::Error::invalid(
            "reason",
            "required: why it is stopped",
        ))
        .into());
    }
    policy.namespace.clone_from(&visitor.namespace);
    policy.kind = kind.number();
    policy.etag = typed::etag(fields)?;
    let done = match (paths == ["frozen"], policy.frozen) {
        (true, true) => "frozen",
        (true, false) => "learns",
        _ => "saved",
    };
    let request = UpdatePolicyRequest {
        policy: Some(policy),
        update_mask: Some(FieldMask {
            paths: paths.into_iter().map(str::to_owned).collect(),
        }),
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut client = visitor.services.policies();
    client.update_policy(visitor.services.call(request)).await?;
    saved(visitor, done, Some(kind))
}

/// Changes the policy of the namespace.
pub(crate) async fn update_namespace(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = UpdateNamespacePolicyRequest {
        policy: Some(NamespacePolicy {
            namespace: visitor.namespace.clone(),
            combining: choice(fields, "combining", &COMBININGS)?,
            min_claims: typed::number(fields, "min_claims")?,
            rejected_permille: typed::number(fields, "rejected_permille")?,
            etag: typed::etag(fields)?,
            ..NamespacePolicy::default()
        }),
        update_mask: Some(FieldMask {
            paths: ["combining", "min_claims", "rejected_permille"]
                .map(str::to_owned)
                .into(),
        }),
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut client = visitor.services.policies();
    client
        .update_namespace_policy(visitor.services.call(request))
        .await?;
    saved(visitor, "saved", None)
}
