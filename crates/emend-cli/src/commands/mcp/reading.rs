//! Tools that read: what was learned, what is proposed and why, evidence, prompts.

use std::cmp::Reverse;

use emend_core::Kind;
use emend_proto::learning::v1::{
    BackendCandidate, CandidateStatus, ExportMaterialsRequest, GetCandidateRequest, GetCandidateResponse,
    GetPolicyRequest, GetReviewStatsRequest, ListBlockedDomainsRequest, ListCandidatesRequest,
    ListNodesRequest, ListRevisionsRequest, RenderPromptRequest, ResolveRequest, ResolveResponse, Revision,
};
use serde_json::{Map, Value, json};
use tokio_stream::StreamExt as _;

use super::{
    Server,
    arguments::{
        ExplainArguments, ListArguments, MaterialsArguments, PromptArguments, ResolveArguments,
        StatusArgument, StatusArguments,
    },
    results,
    tools::{LIST_NODES, RESOLVE},
};
use crate::{
    failure::{Failure, Result},
    output::counted,
    view,
};

/// The candidates of a page, unless a call asks for another number, and at most.
const CANDIDATES: i32 = 20;
const MOST_CANDIDATES: i32 = 100;
/// The materials of a page, unless a call asks for another number, and at most.
const MATERIALS: i32 = 100;
const MOST_MATERIALS: i32 = 500;

impl Server {
    pub(super) async fn look_up(&self, arguments: ResolveArguments) -> Result<Value> {
        let own = arguments.own_choices.into_iter().map(|choice| BackendCandidate {
            value: choice.value,
            score: choice.score,
        });
        let user_id = match arguments.reporter {
            Some(reporter) => {
                self.may_for_users("reporter", RESOLVE).await?;
                reporter
            }
            None if self.rights.may_for_users(&self.context, RESOLVE).await => self.reporter.clone(),
            None => String::new(),
        };
        let kind = Kind::from(arguments.resolve_type);
        let resolved = self
            .resolved(kind, arguments.phrase, user_id, own.collect(), arguments.near)
            .await?;
        Ok(results::resolved(&resolved))
    }

    async fn resolved(
        &self,
        kind: Kind,
        phrase: String,
        user_id: String,
        backend_candidates: Vec<BackendCandidate>,
        near: bool,
    ) -> Result<ResolveResponse> {
        let request = ResolveRequest {
            namespace: self.context.namespace(),
            kind: kind.number(),
            phrase,
            user_id,
            backend_candidates,
            near,
            min_revision: self.newest(),
        };
        let mut client = self.context.resources().await?;
        Ok(client.resolve(self.context.request(request)).await?.into_inner())
    }

    pub(super) async fn candidates(&self, arguments: ListArguments) -> Result<Value> {
        // No statuses at all can't be meant.
        let statuses = arguments.statuses.filter(|statuses| !statuses.is_empty());
        let statuses =
            statuses.unwrap_or_else(|| vec![StatusArgument::Pending, StatusArgument::AwaitingReview]);
        let request = ListCandidatesRequest {
            namespace: self.context.namespace(),
            statuses: statuses
                .into_iter()
                .map(|status| CandidateStatus::from(status) as i32)
                .collect(),
            key: arguments.phrase.unwrap_or_default(),
            page_size: page_size(arguments.page_size, CANDIDATES, MOST_CANDIDATES)?,
            page_token: arguments.page_token.unwrap_or_default(),
            ..ListCandidatesRequest::default()
        };
        let (candidates, next_page_token) = self.page_of(request).await?;
        Ok(results::listed(&candidates, &next_page_token))
    }

    pub(super) async fn explain(&self, arguments: ExplainArguments) -> Result<Value> {
        let kind = Kind::from(arguments.resolve_type);
        let phrase = arguments.phrase;
        let resolved = self
            .resolved(kind, phrase.clone(), String::new(), Vec::new(), true)
            .await?;
        let request = ListCandidatesRequest {
            namespace: self.context.namespace(),
            kinds: vec![kind.number(), Kind::Prohibition.number()],
            key: phrase.clone(),
            page_size: CANDIDATES,
            page_token: arguments.page_token.unwrap_or_default(),
            ..ListCandidatesRequest::default()
        };
        let (candidates, next_page_token) = self.page_of(request).await?;
        let (revisions, has_more_revisions) = self.changes_of(kind, &phrase).await?;
        let mut policies = self.context.policies().await?;
        let request = GetPolicyRequest {
            namespace: self.context.namespace(),
            kind: kind.number(),
        };
        let policy = policies
            .get_policy(self.context.request(request))
            .await?
            .into_inner();
        let nodes = if self.rights.may(&self.context, LIST_NODES).await {
            Some(self.context.list(&ListNodesRequest::default(), 0).await?.0)
        } else {
            None
        };
        Ok(results::explained(results::Explained {
            resolved: &resolved,
            candidates: &candidates,
            next_page_token: &next_page_token,
            revisions,
            has_more_revisions,
            policy: &policy.policy.unwrap_or_default(),
            nodes,
        }))
    }

    /// The newest revisions that changed what a phrase is answered with, or what is never answered, and whether there are more.
    async fn changes_of(&self, kind: Kind, phrase: &str) -> Result<(Vec<Revision>, bool)> {
        let mut client = self.context.resources().await?;
        let (mut revisions, mut has_more) = (Vec::new(), false);
        for kind in [kind, Kind::Prohibition] {
            let request = ListRevisionsRequest {
                namespace: self.context.namespace(),
                kind: kind.number(),
                key: phrase.to_owned(),
                page_size: CANDIDATES,
                ..ListRevisionsRequest::default()
            };
            let page = client
                .list_revisions(self.context.request(request))
                .await?
                .into_inner();
            has_more |= !page.next_page_token.is_empty();
            revisions.extend(page.revisions);
        }
        revisions.sort_by_key(|revision| Reverse(revision.revision));
        // One that changed both was read twice.
        revisions.dedup_by_key(|revision| revision.revision);
        Ok((revisions, has_more))
    }

    /// A page of candidates, each with its votes, and the token of the next page.
    pub(super) async fn page_of(
        &self,
        request: ListCandidatesRequest,
    ) -> Result<(Vec<GetCandidateResponse>, String)> {
        let mut client = self.context.candidates().await?;
        let page = client
            .list_candidates(self.context.request(request))
            .await?
            .into_inner();
        let mut candidates = Vec::with_capacity(page.candidates.len());
        for candidate in page.candidates {
            candidates.push(self.candidate(candidate.candidate_id).await?);
        }
        Ok((candidates, page.next_page_token))
    }

    /// A candidate with its votes and what became of it.
    pub(super) async fn candidate(&self, candidate_id: String) -> Result<GetCandidateResponse> {
        let request = GetCandidateRequest {
            namespace: self.context.namespace(),
            candidate_id,
        };
        let mut client = self.context.candidates().await?;
        let response = client.get_candidate(self.context.request(request)).await?;
        Ok(response.into_inner())
    }

    pub(super) async fn status(&self, arguments: StatusArguments) -> Result<Value> {
        let request = ListBlockedDomainsRequest {
            namespace: self.context.namespace(),
            page_size: page_size(arguments.page_size, 100, 1_000)?,
            page_token: arguments.page_token.unwrap_or_default(),
        };
        let mut client = self.context.evidence().await?;
        let page = client
            .list_blocked_domains(self.context.request(request))
            .await?
            .into_inner();
        let review = match arguments.task_id {
            Some(task_id) => {
                let request = GetReviewStatsRequest {
                    namespace: self.context.namespace(),
                    task_id,
                    ..GetReviewStatsRequest::default()
                };
                let stats = client.get_review_stats(self.context.request(request)).await?;
                Some(view::evidence::review_stats(&stats.into_inner()))
            }
            None => None,
        };
        let blocked: Vec<Value> = page
            .domains
            .iter()
            .map(|domain| {
                let mut domain = view::blocked_domain(domain);
                domain["original_trust_level"] = domain["original_level"].take();
                if let Some(fields) = domain.as_object_mut() {
                    fields.remove("original_level");
                }
                domain
            })
            .collect();
        Ok(json!({
            "message": format!("{} blocked on this page.", counted(blocked.len(), "domain is", "domains are")),
            "blocked_domains": blocked,
            "next_page_token": page.next_page_token,
            "review": review,
        }))
    }

    pub(super) async fn materials(&self, arguments: MaterialsArguments) -> Result<Value> {
        let limit = page_size(arguments.page_size, MATERIALS, MOST_MATERIALS)?;
        let limit = usize::try_from(limit).unwrap_or_default();
        let token = arguments.page_token.filter(|token| !token.is_empty());
        let from = match token.as_deref().map(str::parse::<usize>) {
            None => 0,
            Some(Ok(from)) => from,
            Some(Err(_)) => return Err(super::invalid("page_token", "is none that get_materials gave")),
        };
        let request = ExportMaterialsRequest {
            namespace: self.context.namespace(),
            task_id: arguments.task_id,
            ..ExportMaterialsRequest::default()
        };
        let mut client = self.context.evidence().await?;
        let mut lines = client
            .export_materials(self.context.request(request))
            .await?
            .into_inner();
        let mut sorts = Map::new();
        let (mut place, mut more) = (0, false);
        while let Some(line) = lines.next().await {
            let Some(material) = view::evidence::material(&line?) else {
                continue;
            };
            if place == from + limit {
                more = true;
                break;
            }
            if place >= from {
                for (sort, value) in material.as_object().into_iter().flatten() {
                    let list = sorts.entry(format!("{sort}s")).or_insert_with(|| json!([]));
                    if let Some(list) = list.as_array_mut() {
                        list.push(value.clone());
                    }
                }
            }
            place += 1;
        }
        let mut of = |sort: &str| sorts.remove(sort).unwrap_or_else(|| json!([]));
        let which = if more {
            "there are more: call again with `next_page_token` as `page_token`"
        } else {
            "there are no more"
        };
        let count = counted(place.saturating_sub(from), "material", "materials");
        Ok(json!({
            "message": format!("{count}; {which}."),
            "pages": of("pages"),
            "fragments": of("fragments"),
            "claims": of("claims"),
            "edges": of("edges"),
            "next_page_token": if more { place.to_string() } else { String::new() },
        }))
    }

    pub(super) async fn prompt(&self, arguments: PromptArguments) -> Result<Value> {
        let request = RenderPromptRequest {
            namespace: self.context.namespace(),
            target: arguments.target,
            label: arguments.label.unwrap_or_default(),
            variables: arguments.variables.into_iter().collect(),
            min_revision: self.newest(),
            ..RenderPromptRequest::default()
        };
        let mut client = self.context.outputs().await?;
        let prompt = client
            .render_prompt(self.context.request(request))
            .await?
            .into_inner();
        let settings: Map<String, Value> = prompt
            .settings
            .into_iter()
            .map(|setting| (setting.name, setting.value.into()))
            .collect();
        Ok(json!({
            "message": format!("Version {} of the prompt.", prompt.version),
            "text": prompt.text,
            "version": prompt.version,
            "settings": settings,
            "good_examples": prompt.good_examples,
            "bad_examples": prompt.bad_examples,
            "revision": prompt.revision,
        }))
    }
}

/// The size that a call asks for, or the default, within the bounds.
fn page_size(asked: Option<i32>, default: i32, most: i32) -> Result<i32, Failure> {
    match asked {
        None => Ok(default),
        Some(asked) if (1..=most).contains(&asked) => Ok(asked),
        Some(asked) => Err(super::invalid(
            "page_size",
            format!("must be from 1 to {most}; is {asked}"),
        )),
    }
}
