//! What a resource shows: one JSON document, with the fields that hold what others wrote named in it.

use emend_core::{Kind, Learned};
use emend_proto::{
    common::v1::Resource,
    learning::v1::{
        CandidateStatus, GetClaimRequest, ListCandidatesRequest, ListEdgesRequest, ListResourcesRequest,
    },
};
use serde_json::{Value, json};

use super::{
    super::{Server, answers, results},
    address::{Address, Shown},
};
use crate::{
    failure::{Failure, Result},
    view,
};

/// How much a page has of each.
const LEARNED: i32 = 100;
const CANDIDATES: i32 = 20;
const EDGES: i32 = 100;

impl Server {
    /// What a resource of this server's namespace shows.
    pub(in super::super) async fn contents(&self, address: &Address) -> Result<Value> {
        let mut shown = match &address.shown {
            Shown::Learned(kind) => self.learned(*kind, address).await?,
            Shown::Pending => Box::pin(self.pending(address)).await?,
            Shown::Claim(id) => self.claim(id, address).await?,
            Shown::Prompt(target) => self.prompts_of(target).await?,
        };
        shown["namespace"] = address.namespace.clone().into();
        Ok(shown)
    }

    async fn learned(&self, kind: Kind, address: &Address) -> Result<Value> {
        let request = ListResourcesRequest {
            page_size: LEARNED,
            page_token: address.page_token.clone(),
            ..self.resources_of(kind)
        };
        let mut client = self.context.resources().await?;
        let page = client
            .list_resources(self.context.request(request))
            .await?
            .into_inner();
        let learned: Vec<Value> = page.resources.iter().map(learned).collect();
        let count = learned.len();
        let shown = json!({
            "message": format!("{}: {count} on this page.", kind.rules().summary),
            "type": kind.name(),
            "learned": learned,
            "next": address.next(&page.next_page_token),
            "revision": page.revision,
        });
        Ok(answers::LEARNED.marked(shown))
    }

    /// The kind's resources, as new as what was answered before.
    pub(in super::super) fn resources_of(&self, kind: Kind) -> ListResourcesRequest {
        ListResourcesRequest {
            namespace: self.context.namespace(),
            kinds: vec![kind.number()],
            min_revision: self.newest(),
            ..ListResourcesRequest::default()
        }
    }

    async fn pending(&self, address: &Address) -> Result<Value> {
        let request = ListCandidatesRequest {
            namespace: self.context.namespace(),
            statuses: vec![
                CandidateStatus::Pending as i32,
                CandidateStatus::AwaitingReview as i32,
            ],
            page_size: CANDIDATES,
            page_token: address.page_token.clone(),
            ..ListCandidatesRequest::default()
        };
        let (candidates, next_page_token) = self.page_of(request).await?;
        let mut shown = results::page(&candidates);
        shown["next"] = address.next(&next_page_token).into();
        Ok(answers::CANDIDATES.marked(shown))
    }

    async fn claim(&self, id: &str, address: &Address) -> Result<Value> {
        let mut client = self.context.evidence().await?;
        let request = GetClaimRequest {
            namespace: self.context.namespace(),
            claim_id: id.to_owned(),
            ..GetClaimRequest::default()
        };
        let claim = client
            .get_claim(self.context.request(request))
            .await?
            .into_inner();
        let request = ListEdgesRequest {
            namespace: self.context.namespace(),
            claim_id: id.to_owned(),
            page_size: EDGES,
            page_token: address.page_token.clone(),
            ..ListEdgesRequest::default()
        };
        let page = client
            .list_edges(self.context.request(request))
            .await?
            .into_inner();
        let edges: Vec<Value> = page.edges.iter().map(view::evidence::edge).collect();
        let shown = json!({
            "message": format!("A claim as corrected, and {} of its edges.", edges.len()),
            "claim": view::evidence::claim(&claim.claim.unwrap_or_default()),
            "edges": edges,
            "next": address.next(&page.next_page_token),
        });
        Ok(answers::CLAIM.marked(shown))
    }

    async fn prompts_of(&self, target: &str) -> Result<Value> {
        let mut found = Vec::new();
        let mut client = self.context.resources().await?;
        for kind in [Kind::Prompt, Kind::FewShotSet] {
            let request = ListResourcesRequest {
                key_prefix: target.to_owned(),
                page_size: LEARNED,
                ..self.resources_of(kind)
            };
            let page = client
                .list_resources(self.context.request(request))
                .await?
                .into_inner();
            // Keys stand in their order: those that only begin so come after it.
            let own = page
                .resources
                .into_iter()
                .filter(|resource| resource.key.as_ref().is_some_and(|key| key.key == target));
            found.extend(own);
        }
        if found.is_empty() {
            return Err(Failure::NotFound(
                "no prompt and no examples of this target".to_owned(),
            ));
        }
        let prompts: Vec<Value> = found.iter().filter_map(prompt).collect();
        let examples = found.iter().find_map(examples);
        let shown = json!({
            "message": "What an AI is asked with for this target: the current prompt of each label, and the examples that people rated.",
            "target": target,
            "prompts": prompts,
            "examples": examples,
        });
        Ok(answers::PROMPTS.marked(shown))
    }
}

/// What was learned for a key.
fn learned(resource: &Resource) -> Value {
    let key = resource.key.clone().unwrap_or_default();
    json!({
        "key": key.key,
        "qualifier": key.qualifier,
        "written_as": resource.value.as_ref().map_or("", |value| value.display.as_str()),
        "value": view::value_text(resource.value.as_ref()),
        "at": view::time(resource.committed_at.as_ref()),
        "revision": resource.revision,
    })
}

fn prompt(resource: &Resource) -> Option<Value> {
    let Some(Learned::Prompt(prompt)) = view::learned(resource.value.as_ref()) else {
        return None;
    };
    let variables = prompt.variables().iter();
    let variables: Vec<Value> = variables
        .map(|variable| json!({"name": variable.name, "default": variable.default}))
        .collect();
    let settings = prompt.settings().iter();
    let settings: Vec<Value> = settings
        .map(|setting| json!({"name": setting.name, "value": setting.value}))
        .collect();
    Some(json!({
        "label": resource.key.as_ref().map_or("", |key| key.qualifier.as_str()),
        "version": prompt.version,
        "text": prompt.text(),
        "variables": variables,
        "settings": settings,
        "at": view::time(resource.committed_at.as_ref()),
        "revision": resource.revision,
    }))
}

fn examples(resource: &Resource) -> Option<Value> {
    let Some(Learned::FewShotSet(set)) = view::learned(resource.value.as_ref()) else {
        return None;
    };
    let shown = |examples: &[emend_core::ratings::Example]| -> Vec<Value> {
        let shown = examples.iter().map(|example| {
            json!({
                "input": example.input,
                "output": example.output,
                "corrected": example.corrected,
                "issues": example.issues,
            })
        });
        shown.collect()
    };
    Some(json!({
        "good": shown(&set.good),
        "bad": shown(&set.bad),
        "revision": resource.revision,
    }))
}
