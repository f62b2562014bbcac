//! Requests that are answered page by page.

use emend_proto::{
    common::v1::Resource,
    feedback::v1::{
        DeadLetter, Feedback, ListDeadLettersRequest, ListFeedbackRequest, ListQueriesRequest, Query,
    },
    learning::v1::{
        BlockedDomain, Candidate, Claim, DomainRuleRecord, Edge, EvidenceEvent, ListBlockedDomainsRequest,
        ListCandidatesRequest, ListClaimsRequest, ListDomainRulesRequest, ListEdgesRequest,
        ListEvidenceEventsRequest, ListNodesRequest, ListOutputStatsRequest, ListPromptVersionsRequest,
        ListResourcesRequest, ListSuggestionsRequest, Node, ProfileSuggestion, PromptVersion, TargetStats,
    },
};

use super::{Context, pages};
use crate::failure::Result;

/// A request that is answered page by page.
pub trait Listing {
    /// What is listed.
    type Item;

    /// Asks for pages until there are `limit` items.
    fn list(
        &self,
        context: &Context,
        limit: usize,
    ) -> impl Future<Output = Result<(Vec<Self::Item>, bool)>> + Send;
}

impl Context {
    /// What a request asks for, at most `limit` (0: all), and whether there is more.
    pub async fn list<L: Listing>(&self, request: &L, limit: usize) -> Result<(Vec<L::Item>, bool)> {
        request.list(self, limit).await
    }
}

/// For each request its service's client and method, the field with the items, and how many of them a page holds at most.
macro_rules! listings {
    ($($request:ident: $service:ident.$method:ident, $items:ident: $item:ty, $max_page:literal;)*) => {$(
        impl Listing for $request {
            type Item = $item;

            async fn list(&self, context: &Context, limit: usize) -> Result<(Vec<$item>, bool)> {
                let client = context.$service().await?;
                pages(limit, $max_page, |page_size, page_token| {
                    let request = $request { page_size, page_token, ..self.clone() };
                    let mut client = client.clone();
                    async move {
                        let page = client.$method(context.request(request)).await?.into_inner();
                        Ok((page.$items, page.next_page_token))
                    }
                })
                .await
            }
        }
    )*};
}

listings! {
    ListBlockedDomainsRequest: evidence.list_blocked_domains, domains: BlockedDomain, 1_000;
    ListCandidatesRequest: candidates.list_candidates, candidates: Candidate, 500;
    ListClaimsRequest: evidence.list_claims, claims: Claim, 1_000;
    ListDeadLettersRequest: feedback.list_dead_letters, dead_letters: DeadLetter, 500;
    ListDomainRulesRequest: evidence.list_domain_rules, rules: DomainRuleRecord, 1_000;
    ListEdgesRequest: evidence.list_edges, edges: Edge, 1_000;
    ListEvidenceEventsRequest: evidence.list_evidence_events, events: EvidenceEvent, 1_000;
    ListFeedbackRequest: feedback.list_feedback, feedback: Feedback, 500;
    ListNodesRequest: subscriptions.list_nodes, nodes: Node, 1_000;
    ListPromptVersionsRequest: outputs.list_prompt_versions, versions: PromptVersion, 100;
    ListOutputStatsRequest: outputs.list_output_stats, targets: TargetStats, 50;
    ListQueriesRequest: queries.list_queries, queries: Query, 500;
    ListResourcesRequest: resources.list_resources, resources: Resource, 1_000;
    ListSuggestionsRequest: profiles.list_suggestions, suggestions: ProfileSuggestion, 500;
}
