//! What nodes answer: resources by kind, a look-up as a node would do it, the life of one, setting and deleting.

use askama::Template;
use emend_core::{Invalid, Kind, Learned};
use emend_proto::{
    common::v1::{ResourceKey, ResourceValue},
    learning::v1::{
        DeleteResourceRequest, GetCandidateRequest, GetResourceRequest, ListCandidatesRequest,
        ListNodesRequest, ListResourcesRequest, ListRevisionsRequest, NearAnswer, NearStatus,
        PutResourceRequest, ResolveRequest, ResolveResponse, Revision,
    },
};
use futures::future::try_join_all;
use http::StatusCode;
use tonic::{Code, Status};

use crate::{
    form::Fields,
    page::{Answer, Page, Part, TOLD, Visitor, html},
    pages::{
        Choice,
        evidence::{domain_of, is_page},
        kind_numbers, kinds, links,
        log::{Line, can_revert, is_settable, line},
    },
    text::{self, Language, Moment, moment},
    told::Told,
};

const PAGE: i32 = 50;

/// The page.
#[derive(Debug, Template)]
#[template(path = "learned.html")]
struct List {
    page: Page,
    kinds: Vec<Choice>,
    settable: Vec<Choice>,
    prefix: String,
    /// Whose own resources are listed; empty: those of everybody.
    owner: String,
    phrase: String,
    /// For whom the phrase is looked up.
    user: String,
    may_look_up_for_users: bool,
    resolved: Vec<Resolved>,
    rows: Vec<Row>,
    first: Option<String>,
    next: Option<String>,
    may_set: bool,
    is_filtered: bool,
    revision: i64,
    /// How many resources of the kinds that are listed are users' own, whoever's.
    users_own: Option<String>,
}

/// What a node answers for a phrase.
#[derive(Debug)]
struct Resolved {
    kind: String,
    answer: String,
    prohibited: Vec<String>,
    is_prohibited: bool,
    revision: i64,
    /// What similar phrases mean, where nothing was learned for this one.
    near: Option<NearShown>,
    near_note: Option<&'static str>,
}

/// A near answer.
#[derive(Debug)]
struct NearShown {
    choice: String,
    /// In hundredths.
    confidence: String,
    /// The nearest phrases, each with how similar it is.
    because: Vec<(String, String)>,
}

impl From<NearAnswer> for NearShown {
    fn from(near: NearAnswer) -> Self {
        let because = near
            .because
            .into_iter()
            .map(|learned| (learned.phrase, format!("{:.2}", learned.similarity)));
        Self {
            choice: near.choice,
            confidence: format!("{:.2}", near.confidence),
            because: because.collect(),
        }
    }
}

/// A resource.
#[derive(Debug)]
struct Row {
    kind: String,
    href: String,
    input: String,
    arrow: String,
    value: String,
    user: String,
    revision: i64,
    at: Moment,
}

/// The page of one resource.
#[derive(Debug, Template)]
#[template(path = "resource.html")]
struct One {
    page: Page,
    kind: String,
    kind_name: &'static str,
    input: String,
    key: ResourceKey,
    arrow: String,
    value: Option<String>,
    /// The whole text of a value that is one.
    text: Option<String>,
    choice: String,
    etag: String,
    revision: i64,
    at: Moment,
    lines: Vec<Line>,
    candidates: Vec<Origin>,
    nodes: Vec<Holding>,
    may_set: bool,
    may_delete: bool,
    /// Where its newest change is reverted, if it can be.
    revert: Option<String>,
    back: Option<(String, &'static str)>,
}

/// A candidate of the contest.
#[derive(Debug)]
struct Origin {
    href: String,
    value: String,
    status: &'static str,
    votes: i64,
    at: Moment,
    said: Vec<Said>,
}

/// A correction that proposed it.
#[derive(Debug)]
struct Said {
    who: String,
    reason: String,
    is_retracted: bool,
    at: Moment,
}

/// Whether a node has the resource.
#[derive(Debug)]
struct Holding {
    id: String,
    has_it: bool,
    applied: i64,
    at: Moment,
}

/// The address of a resource's life.
pub(crate) fn address(visitor: &Visitor, key: &ResourceKey) -> String {
    let kind = Kind::from_number(key.kind).map_or("", Kind::name);
    let fields = Fields::default()
        .with("kind", kind)
        .with("key", &key.key)
        .with("qualifier", &key.qualifier)
        .with("user", &key.user_id);
    visitor.within(Part::Learned, &["resource"], &fields)
}

/// Lists resources, and answers a phrase as a node would.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let chosen = kind_numbers(fields);
    let request = ListResourcesRequest {
        namespace: visitor.namespace.clone(),
        kinds: chosen.clone(),
        key_prefix: fields.get("prefix").to_owned(),
        user_id: fields.get("owner").to_owned(),
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
        ..ListResourcesRequest::default()
    };
    let mut resources = visitor.services.resources();
    let answer = resources
        .list_resources(visitor.services.call(request))
        .await?
        .into_inner();
    let phrase = fields.get("phrase");
    let resolved = if phrase.is_empty() {
        Vec::new()
    } else {
        resolve(visitor, phrase, fields.get("user")).await?
    };
    let page = visitor.page(Part::Learned, visitor.t("Learned", "学習結果"), fields);
    let kept = fields.without(&TOLD);
    let (first, next) = links(
        &visitor.to(Part::Learned, &Fields::default()),
        &kept,
        &answer.next_page_token,
    );
    let rows = answer.resources.iter().map(|resource| {
        let key = resource.key.clone().unwrap_or_default();
        let value = resource.value.as_ref();
        Row {
            kind: visitor.language.kind(key.kind),
            href: address(visitor, &key),
            input: text::shortened(&text::display(Some(&key), value), 160),
            arrow: text::arrow(value),
            value: text::shortened(&text::value_line(visitor.language, value), 160),
            user: key.user_id,
            revision: resource.revision,
            at: moment(resource.committed_at.as_ref()),
        }
    });
    let shown = List {
        settable: kinds(&page, &[Kind::InvocationPhrase.number()])
            .into_iter()
            .filter(|choice| {
                Kind::ALL
                    .into_iter()
                    .any(|kind| kind.name() == choice.value && is_simple(kind))
            })
            .collect(),
        kinds: kinds(&page, &chosen),
        prefix: fields.get("prefix").to_owned(),
        owner: fields.get("owner").to_owned(),
        phrase: phrase.to_owned(),
        user: fields.get("user").to_owned(),
        may_look_up_for_users: visitor
            .access
            .may_for_users("learning.v1.ResourceService/Resolve"),
        resolved,
        rows: rows.collect(),
        first,
        next,
        may_set: visitor.may("learning.v1.ResourceService/PutResource"),
        is_filtered: !kept.without(&["page"]).query().is_empty(),
        revision: answer.revision,
        users_own: (answer.user_scoped_count > 0).then(|| text::count(answer.user_scoped_count)),
        page,
    };
    Ok(html(StatusCode::OK, &shown))
}

/// Whether a value of the kind is one word, and its key needs nothing beside it.
fn is_simple(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::InvocationPhrase | Kind::EntityAlias | Kind::DomainRule | Kind::ClaimState
    )
}

async fn resolve(visitor: &Visitor, phrase: &str, user: &str) -> Result<Vec<Resolved>, Status> {
    let kinds = [Kind::InvocationPhrase, Kind::EntityAlias];
    try_join_all(kinds.map(|kind| resolved(visitor, kind, phrase, user))).await
}

async fn resolved(visitor: &Visitor, kind: Kind, phrase: &str, user: &str) -> Result<Resolved, Status> {
    let request = ResolveRequest {
        namespace: visitor.namespace.clone(),
        kind: kind.number(),
        phrase: phrase.to_owned(),
        near: true,
        user_id: user.to_owned(),
        ..ResolveRequest::default()
    };
    let mut resources = visitor.services.resources();
    let answer = resources
        .resolve(visitor.services.call(request))
        .await?
        .into_inner();
    Ok(Resolved {
        kind: visitor.language.kind(kind.number()),
        near_note: near_note(visitor.language, &answer),
        revision: answer.r#match.as_ref().map_or(0, |found| found.revision),
        answer: answer.r#match.map(|found| found.value).unwrap_or_default(),
        prohibited: answer.prohibited,
        is_prohibited: answer.match_prohibited,
        near: answer.near.map(NearShown::from),
    })
}

/// Why there is no near answer, where that is not plain.
fn near_note(language: Language, answer: &ResolveResponse) -> Option<&'static str> {
    let is_unknown = answer.r#match.is_none() && !answer.match_prohibited;
    match answer.near_status() {
        NearStatus::Fitting => Some(language.t(
            "near answers are being made: try again in a minute",
            "類似フレーズのモデルを作成中です。1分ほどしてからもう一度お試しください",
        )),
        NearStatus::TooMany => Some(language.t(
            "no near answers: more was learned than a model is made of",
            "学習済みのフレーズが多すぎるため、類似による応答はありません",
        )),
        NearStatus::Off if is_unknown => Some(language.t(
            "near answers are switched off for this kind",
            "この種別では類似による応答が無効です",
        )),
        NearStatus::Ready | NearStatus::WithoutVectors if is_unknown && answer.near.is_none() => {
            Some(language.t(
                "nothing that was learned is similar enough",
                "十分に似た学習済みフレーズはありません",
            ))
        }
        _ => None,
    }
}

/// The key that fields name.
fn key_of(visitor: &Visitor, fields: &Fields) -> Result<ResourceKey, Status> {
    let kind = kind_numbers(fields).first().copied();
    Ok(ResourceKey {
        namespace: visitor.namespace.clone(),
        kind: kind
            .ok_or_else(|| Status::from(emend_base::Error::invalid("kind", "required: one of the kinds")))?,
        key: fields.get("key").to_owned(),
        qualifier: fields.get("qualifier").to_owned(),
        user_id: fields.get("user").to_owned(),
    })
}

/// Tells the life of one: what people said, the candidates, the revisions, and which nodes have it.
pub(crate) async fn one(visitor: &Visitor, fields: &Fields) -> Answer {
    let key = key_of(visitor, fields)?;
    let services = &visitor.services;
    let mut resources = services.resources();
    let request = GetResourceRequest {
        key: Some(key.clone()),
        min_revision: 0,
    };
    let resource = match resources.get_resource(services.call(request)).await {
        Ok(answer) => answer.into_inner().resource,
        Err(status) if status.code() == Code::NotFound => None,
        Err(status) => return Err(status.into()),
    };
    let revisions = if visitor.may("learning.v1.ResourceService/ListRevisions") {
        let request = ListRevisionsRequest {
            namespace: visitor.namespace.clone(),
            kind: key.kind,
            key: key.key.clone(),
            page_size: PAGE,
            ..ListRevisionsRequest::default()
        };
        resources
            .list_revisions(services.call(request))
            .await?
            .into_inner()
            .revisions
    } else {
        Vec::new()
    };
    let own = address(
        visitor,
        resource
            .as_ref()
            .and_then(|resource| resource.key.as_ref())
            .unwrap_or(&key),
    );
    let lines = revisions.iter().flat_map(|revision| {
        line(visitor, revision)
            .into_iter()
            .map(move |line| (revision, line))
    });
    let (changed, lines): (Vec<_>, Vec<_>) = lines.filter(|(_, line)| line.href == own).unzip();
    let newest = changed.first().copied();
    // Of what is deleted: the revision that deleted it.
    let revision = resource.as_ref().map_or_else(
        || newest.map_or(0, |newest| newest.revision),
        |resource| resource.revision,
    );
    let value = resource.as_ref().and_then(|resource| resource.value.as_ref());
    let kind = Kind::from_number(key.kind);
    // What is deleted keeps the spelling that it had.
    let input = text::display(
        Some(&key),
        value.or(newest.and_then(|newest| spelled(newest, &key))),
    );
    let page = visitor.page(Part::Learned, input.clone(), fields);
    let shown = One {
        kind: visitor.language.kind(key.kind),
        kind_name: kind.map_or("", Kind::name),
        input,
        text: match text::learned(value) {
            Some(Learned::Prompt(prompt)) => Some(prompt.text().to_owned()),
            _ => None,
        },
        arrow: text::arrow(value),
        value: value.map(|value| text::shortened(&text::value_line(visitor.language, Some(value)), 300)),
        choice: text::learned(value).map_or_else(String::new, |learned| learned.maps_to().to_owned()),
        etag: resource
            .as_ref()
            .map(|resource| resource.etag.clone())
            .unwrap_or_default(),
        at: moment(
            resource
                .as_ref()
                .and_then(|resource| resource.committed_at.as_ref()),
        ),
        lines,
        revert: newest.filter(|newest| can_revert(visitor, newest)).map(|newest| {
            let number = newest.revision.to_string();
            let preview = visitor.within(Part::Log, &[&number, "revert"], &Fields::default());
            visitor.and_back(&preview)
        }),
        back: visitor.back(fields),
        candidates: origins(visitor, &key).await?,
        nodes: holdings(visitor, revision).await?,
        may_set: kind.is_some_and(is_simple) && visitor.may("learning.v1.ResourceService/PutResource"),
        may_delete: resource.is_some()
            && is_settable(key.kind)
            && visitor.may("learning.v1.ResourceService/DeleteResource"),
        revision,
        key,
        page,
    };
    Ok(html(StatusCode::OK, &shown))
}

/// A value that a revision wrote or removed for a key.
fn spelled<'r>(revision: &'r Revision, key: &ResourceKey) -> Option<&'r ResourceValue> {
    let change = revision
        .changes
        .iter()
        .find(|change| change.key.as_ref() == Some(key));
    change.and_then(|change| change.after.as_ref().or(change.before.as_ref()))
}

/// The contest's candidates, each with what people said.
async fn origins(visitor: &Visitor, key: &ResourceKey) -> Result<Vec<Origin>, Status> {
    if !visitor.may("learning.v1.CandidateService/ListCandidates") {
        return Ok(Vec::new());
    }
    let services = &visitor.services;
    let mut candidates = services.candidates();
    let request = ListCandidatesRequest {
        namespace: visitor.namespace.clone(),
        kinds: vec![key.kind],
        key: key.key.clone(),
        page_size: 10,
        ..ListCandidatesRequest::default()
    };
    let listed = candidates
        .list_candidates(services.call(request))
        .await?
        .into_inner()
        .candidates;
    let mut origins = Vec::new();
    for candidate in listed {
        let request = GetCandidateRequest {
            namespace: visitor.namespace.clone(),
            candidate_id: candidate.candidate_id.clone(),
        };
        let details = candidates
            .get_candidate(services.call(request))
            .await?
            .into_inner();
        let item = Fields::default()
            .with("status", "any")
            .with("item", &candidate.candidate_id);
        let said = details.feedback.iter().map(|feedback| {
            let vote = details
                .votes
                .iter()
                .find(|vote| vote.feedback_id == feedback.feedback_id);
            let who = vote.map_or("", |vote| &*vote.reporter_id);
            Said {
                who: visitor.language.person(who, ""),
                reason: feedback.reason.clone(),
                is_retracted: feedback.retracted,
                at: moment(feedback.received_at.as_ref()),
            }
        });
        origins.push(Origin {
            href: visitor.and_back(&visitor.to(Part::Review, &item)),
            value: text::shortened(&text::value_line(visitor.language, candidate.value.as_ref()), 160),
            status: visitor.language.status(candidate.status),
            votes: candidate.reporter_count,
            at: moment(candidate.created_at.as_ref()),
            said: said.take(10).collect(),
        });
    }
    Ok(origins)
}

/// Which nodes have applied a revision.
async fn holdings(visitor: &Visitor, revision: i64) -> Result<Vec<Holding>, Status> {
    if revision == 0 || !visitor.may("learning.v1.SubscriptionService/ListNodes") {
        return Ok(Vec::new());
    }
    let request = ListNodesRequest::default();
    let mut nodes = visitor.services.nodes();
    let listed = nodes
        .list_nodes(visitor.services.call(request))
        .await?
        .into_inner()
        .nodes;
    Ok(listed
        .into_iter()
        .map(|node| {
            let applied = node.applied.map_or(0, |cursor| cursor.revision);
            Holding {
                id: node.info.map(|info| info.id).unwrap_or_default(),
                has_it: applied >= revision,
                applied,
                at: moment(node.seen_at.as_ref()),
            }
        })
        .collect())
}

/// Sets a value as a person's decision.
pub(crate) async fn set(visitor: &Visitor, fields: &Fields) -> Answer {
    let mut key = key_of(visitor, fields)?;
    if key.kind == Kind::DomainRule.number() {
        if is_page(&key.key) {
            return Err(Status::from(emend_base::Error::invalid(
                "key",
                visitor.t(
                    "that is the address of one page, and rules are about whole sites: type the site",
                    "1つのページの URL です。ルールはサイト全体に適用されるため、サイトを入力してください",
                ),
            ))
            .into());
        }
        key.key = domain_of(&key.key).to_owned();
    }
    let refused = |why: String| Status::from(emend_base::Error::invalid("value", why));
    let kind = Kind::from_number(key.kind).ok_or_else(|| refused("no known kind".to_owned()))?;
    let learned = Learned::of(kind, fields.get("value").to_owned()).map_err(|Invalid(why)| refused(why))?;
    let request = PutResourceRequest {
        value: Some(ResourceValue {
            display: key.key.clone(),
            value: Some(emend_wire::kinds::value(&learned)),
            ..ResourceValue::default()
        }),
        key: Some(key),
        etag: fields.get("etag").to_owned(),
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut resources = visitor.services.resources();
    let answer = resources
        .put_resource(visitor.services.call(request))
        .await?
        .into_inner();
    let key = answer
        .resource
        .and_then(|resource| resource.key)
        .unwrap_or_default();
    gone_to(visitor, &key, Told::set("set", answer.revision))
}

/// Deletes a value.
pub(crate) async fn delete(visitor: &Visitor, fields: &Fields) -> Answer {
    let key = key_of(visitor, fields)?;
    let request = DeleteResourceRequest {
        key: Some(key.clone()),
        etag: fields.get("etag").to_owned(),
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    };
    let mut resources = visitor.services.resources();
    let answer = resources
        .delete_resource(visitor.services.call(request))
        .await?
        .into_inner();
    gone_to(visitor, &key, Told::set("deleted", answer.revision))
}

/// Goes to the page of a resource, which tells what was done to it.
fn gone_to(visitor: &Visitor, key: &ResourceKey, told: Told) -> Answer {
    let told = visitor.telling(told.of(&key.key)).query();
    visitor.go(&format!(
        "{}&{}",
        address(visitor, key),
        told.trim_start_matches('?')
    ))
}

#[cfg(test)]
mod tests {
    use emend_proto::learning::v1::Match;

    use super::*;

    #[test]
    fn a_look_up_says_why_there_is_no_near_answer() {
        let note = |status: NearStatus, is_known: bool| {
            let answer = ResolveResponse {
                near_status: status.into(),
                r#match: is_known.then(Match::default),
                ..ResolveResponse::default()
            };
            near_note(Language::English, &answer).unwrap_or_default()
        };
        for is_known in [false, true] {
            assert!(note(NearStatus::Fitting, is_known).contains("being made"));
            assert!(note(NearStatus::TooMany, is_known).contains("more was learned"));
        }
        assert!(note(NearStatus::Off, false).contains("switched off"));
        assert!(note(NearStatus::Ready, false).contains("similar enough"));
        assert_eq!(
            [note(NearStatus::Off, true), note(NearStatus::Ready, true)],
            ["", ""]
        );
    }
}
