//! Words that stand out in what was rated down, rewordings that worked, and synonyms made of them.

use askama::Template;
use emend_core::{Invalid, Kind, Learned, Relation, Synonym};
use emend_proto::{
    common::v1::{ResourceKey, ResourceValue},
    feedback::v1::ListNegativeTermsRequest,
    learning::v1::{
        ApproveCandidateRequest, CandidateStatus, ListCandidatesRequest, ListResourcesRequest,
        PutResourceRequest,
    },
};
use http::StatusCode;
use tonic::Status;

use super::{period::Period, tabs};
use crate::{
    form::Fields,
    page::{Answer, Page, Part, TOLD, Visitor, html},
    pages::{learned, links, review, tabs::Tab},
    text::{self, Moment, count, moment},
    told::Told,
};

const PAGE: i32 = 50;

/// The page.
#[derive(Debug, Template)]
#[template(path = "search_words.html")]
struct Words {
    page: Page,
    tabs: Vec<Tab>,
    period: Period,
    query_type: String,
    terms: Vec<Term>,
    negatives: String,
    rewrites: Vec<Rewrite>,
    may_approve: bool,
    term: String,
    /// The query for which a synonym is made; empty if none was named.
    query: String,
    /// Where that is tried out.
    attempt: String,
    /// Each as it is sent, and its label.
    relations: Vec<(&'static str, &'static str)>,
    synonyms: Vec<Pair>,
    may_set: bool,
    first: Option<String>,
    next: Option<String>,
}

/// A word that stands out.
#[derive(Debug)]
struct Term {
    word: String,
    score: String,
    negative: String,
    all: String,
    href: String,
}

/// A proposal that a term stands for another, mostly because people reworded a query so and then found something.
#[derive(Debug)]
struct Rewrite {
    id: String,
    etag: String,
    href: String,
    term: String,
    arrow: String,
    value: String,
    votes: i64,
    since: Moment,
}

/// A term and what it stands for.
#[derive(Debug)]
struct Pair {
    href: String,
    term: String,
    arrow: String,
    value: String,
}

/// Shows words and synonyms.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let period = Period::of(fields)?;
    let request = ListNegativeTermsRequest {
        namespace: visitor.namespace.clone(),
        rated_from: period.from,
        rated_before: period.before,
        query_type: fields.get("type").to_owned(),
        page_size: 20,
    };
    let mut queries = visitor.services.queries();
    let terms = queries
        .list_negative_terms(visitor.services.call(request))
        .await?
        .into_inner();
    let (synonyms, next_token) = synonyms(visitor, fields).await?;
    let here = |fields: &Fields| visitor.within(Part::Search, &["words"], fields);
    let kept = fields.without(&TOLD);
    let (first, next) = links(&here(&Fields::default()), &kept, &next_token);
    let words = Words {
        tabs: tabs(visitor, "words"),
        rewrites: rewrites(visitor).await?,
        may_approve: visitor.may("learning.v1.CandidateService/ApproveCandidate"),
        query_type: fields.get("type").to_owned(),
        period,
        negatives: count(terms.negative_query_count),
        terms: terms
            .terms
            .into_iter()
            .map(|term| Term {
                href: here(&kept.with("term", &term.term)) + "#term",
                score: format!("{:.3}", term.score),
                negative: count(term.negative_count),
                all: count(term.query_count),
                word: term.term,
            })
            .collect(),
        term: fields.get("term").to_owned(),
        attempt: visitor.within(
            Part::Search,
            &["try"],
            &Fields::default()
                .with("query", fields.get("query"))
                .with("type", fields.get("type")),
        ),
        query: fields.get("query").to_owned(),
        relations: Relation::ALL
            .map(|relation| (relation.name(), visitor.language.synonymy(relation)))
            .to_vec(),
        synonyms,
        may_set: visitor.may("learning.v1.ResourceService/PutResource"),
        first,
        next,
        page: visitor.page(
            Part::Search,
            visitor.t("Words and synonyms", "語と同義語"),
            fields,
        ),
    };
    Ok(html(StatusCode::OK, &words))
}

/// Synonyms that are proposed, those with the most votes first.
async fn rewrites(visitor: &Visitor) -> Result<Vec<Rewrite>, Status> {
    if !visitor.may("learning.v1.CandidateService/ListCandidates") {
        return Ok(Vec::new());
    }
    let request = ListCandidatesRequest {
        namespace: visitor.namespace.clone(),
        kinds: vec![Kind::Synonym.number()],
        statuses: [CandidateStatus::Pending, CandidateStatus::AwaitingReview]
            .map(i32::from)
            .to_vec(),
        page_size: PAGE,
        ..ListCandidatesRequest::default()
    };
    let mut candidates = visitor.services.candidates();
    let answer = candidates
        .list_candidates(visitor.services.call(request))
        .await?
        .into_inner();
    let mut rewrites: Vec<Rewrite> = answer
        .candidates
        .into_iter()
        .map(|candidate| {
            let value = candidate.value.as_ref();
            let item = Fields::default().with("item", &candidate.candidate_id);
            Rewrite {
                href: visitor.to(Part::Review, &item.with("status", "any")),
                term: text::display(candidate.key.as_ref(), value),
                arrow: text::arrow(value),
                value: text::value_line(visitor.language, value),
                votes: candidate.reporter_count.max(candidate.occurrence_count),
                since: moment(candidate.created_at.as_ref()),
                id: candidate.candidate_id,
                etag: candidate.etag,
            }
        })
        .collect();
    rewrites.sort_by_key(|rewrite| std::cmp::Reverse(rewrite.votes));
    Ok(rewrites)
}

/// Makes a synonym of what is proposed.
pub(crate) async fn approve_rewrite(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = ApproveCandidateRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: visitor.item.clone(),
        etag: fields.get("etag").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
        ..ApproveCandidateRequest::default()
    };
    let mut candidates = visitor.services.candidates();
    let answer = candidates
        .approve_candidate(visitor.services.call(request))
        .await?
        .into_inner();
    let told = visitor.telling(review::approved(visitor, answer, false).await?);
    let words = visitor.within(Part::Search, &["words"], &Fields::default());
    visitor.go_back(fields, &words, &told)
}

async fn synonyms(visitor: &Visitor, fields: &Fields) -> Result<(Vec<Pair>, String), Status> {
    if !visitor.may("learning.v1.ResourceService/ListResources") {
        return Ok((Vec::new(), String::new()));
    }
    let request = ListResourcesRequest {
        namespace: visitor.namespace.clone(),
        kinds: vec![Kind::Synonym.number()],
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
        ..ListResourcesRequest::default()
    };
    let mut resources = visitor.services.resources();
    let answer = resources
        .list_resources(visitor.services.call(request))
        .await?
        .into_inner();
    let pairs = answer.resources.iter().map(|resource| {
        let key = resource.key.clone().unwrap_or_default();
        let value = resource.value.as_ref();
        Pair {
            href: learned::address(visitor, &key),
            term: text::display(Some(&key), value),
            arrow: text::arrow(value),
            value: text::value_line(visitor.language, value),
        }
    });
    Ok((pairs.collect(), answer.next_page_token))
}

/// Makes a synonym, as a person's decision.
pub(crate) async fn add_synonym(visitor: &Visitor, fields: &Fields) -> Answer {
    let relation = Relation::parse(fields.get("relation"));
    let relation =
        relation.map_err(|Invalid(why)| Status::from(emend_base::Error::invalid("relation", why)))?;
    let representative = fields.get("representative").to_owned();
    let value = emend_wire::kinds::value(&Learned::Synonym(Synonym {
        relation,
        representative: representative.clone(),
    }));
    let request = PutResourceRequest {
        key: Some(ResourceKey {
            namespace: visitor.namespace.clone(),
            kind: Kind::Synonym.number(),
            key: fields.get("term").to_owned(),
            qualifier: representative,
            user_id: String::new(),
        }),
        value: Some(ResourceValue {
            display: fields.get("term").to_owned(),
            value: Some(value),
            ..ResourceValue::default()
        }),
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
        ..PutResourceRequest::default()
    };
    let mut resources = visitor.services.resources();
    let answer = resources
        .put_resource(visitor.services.call(request))
        .await?
        .into_inner();
    let what = format!("{} ≈ {}", fields.get("term"), fields.get("representative"));
    let done = visitor.telling(Told::set("set", answer.revision).of(&what));
    let words = visitor.within(Part::Search, &["words"], &Fields::default());
    visitor.go_back(fields, &words, &done)
}
