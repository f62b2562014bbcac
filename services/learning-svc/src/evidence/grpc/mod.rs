//! The evidence service.

pub(crate) mod citations;
pub(crate) mod deletes;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(crate) mod parse;
pub(crate) mod reads;
pub(crate) mod render;
mod trust;

use emend_base::Error;
use emend_core::{Violations, evidence::EvidenceId};
use emend_proto::learning::v1::{self as pb, evidence_service_server::EvidenceService};
use emend_serve::{auth::Call, caller::caller_of};
use emend_wire::page::{self, QueryHash};
use futures::stream::{self, BoxStream, StreamExt as _};
use learning_store::actor::Actor;
use tonic::{Request, Response, Status};

use crate::{evidence::Evidence, export_slots::ExportSlots, grpc::parse::namespace, roles::open};

/// Serves the use cases of the evidence graph.
#[derive(Debug, Clone)]
pub(crate) struct EvidenceHandler {
    evidence: Evidence,
    exports: ExportSlots,
}

impl EvidenceHandler {
    /// Serves the use cases of `evidence`.
    pub(crate) fn new(evidence: Evidence) -> Self {
        Self {
            evidence,
            exports: ExportSlots::default(),
        }
    }
}

/// The messages of a stream.
type Messages<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl EvidenceService for EvidenceHandler {
    type ExportMaterialsStream = Messages<pb::ExportMaterialsResponse>;
    type ExportCorrectionsStream = Messages<pb::ExportCorrectionsResponse>;

    async fn upsert_evidence(
        &self,
        request: Request<pb::UpsertEvidenceRequest>,
    ) -> Result<Response<pb::UpsertEvidenceResponse>, Status> {
        let actor = Actor::caller(caller_of(&request));
        let Call { message, .. } = open(request)?;
        let upsert = parse::upsert(&message).map_err(Error::from)?;
        let done = if message.replace {
            self.evidence.replace(&upsert, actor).await?
        } else {
            self.evidence.upsert(&upsert).await?
        };
        Ok(Response::new(pb::UpsertEvidenceResponse {
            added: small(done.upserted.added),
            corrections_arrived: small(done.arrived.corrections),
            corrections_applied: small(done.arrived.applied),
        }))
    }

    async fn delete_evidence(
        &self,
        request: Request<pb::DeleteEvidenceRequest>,
    ) -> Result<Response<pb::DeleteEvidenceResponse>, Status> {
        let caller = caller_of(&request);
        let Call { message, .. } = open(request)?;
        let deletion = deletes::parse(&message, &caller).map_err(Error::from)?;
        let deleted = self.evidence.delete(&deletion).await?;
        Ok(Response::new(deletes::render(deleted)))
    }

    async fn get_claim(
        &self,
        request: Request<pb::GetClaimRequest>,
    ) -> Result<Response<pb::GetClaimResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let mut violations = Violations::new();
        let namespace = namespace(&mut violations, &message.namespace);
        let claim = violations.check("claim_id", EvidenceId::parse(&message.claim_id));
        let (namespace, claim) = violations.finish(namespace.zip(claim)).map_err(Error::from)?;
        let both = message.both_readings;
        let found = self.evidence.claim(&namespace, &claim, both).await?;
        Ok(Response::new(pb::GetClaimResponse {
            claim: Some(render::claim(found)),
        }))
    }

    async fn list_claims(
        &self,
        request: Request<pb::ListClaimsRequest>,
    ) -> Result<Response<pb::ListClaimsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let query = QueryHash::of(
            "ListClaims",
            &pb::ListClaimsRequest {
                page_size: 0,
                page_token: String::new(),
                ..message.clone()
            },
        );
        let (filter, after, limit) = parse::list_claims(&message, query).map_err(Error::from)?;
        let (claims, next) = self.evidence.claims(&filter, after, limit).await?;
        let positions: Vec<i64> = claims.iter().map(|(position, _)| *position).collect();
        let claims = claims
            .into_iter()
            .map(|(_, claim)| render::claim(claim))
            .collect();
        let (claims, was_cut) = page::cut(claims);
        let last = claims.len().checked_sub(1).and_then(|last| positions.get(last));
        let next = if was_cut { last.copied() } else { next };
        let next_page_token = next.map_or_else(String::new, |next| page::number_token(query, next));
        Ok(Response::new(pb::ListClaimsResponse {
            claims,
            next_page_token,
        }))
    }

    async fn list_edges(
        &self,
        request: Request<pb::ListEdgesRequest>,
    ) -> Result<Response<pb::ListEdgesResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let query = QueryHash::of(
            "ListEdges",
            &pb::ListEdgesRequest {
                page_size: 0,
                page_token: String::new(),
                ..message.clone()
            },
        );
        let (filter, after, limit) = parse::list_edges(&message, query).map_err(Error::from)?;
        let (edges, more) = self.evidence.edges(&filter, after, limit).await?;
        let positions: Vec<_> = edges.iter().map(|(position, _)| *position).collect();
        let edges = edges.into_iter().map(|(_, edge)| render::edge(edge)).collect();
        let (edges, next_page_token) =
            one_page(edges, &positions, more, |last| parse::edge_token(query, last));
        Ok(Response::new(pb::ListEdgesResponse {
            edges,
            next_page_token,
        }))
    }

    async fn list_domain_rules(
        &self,
        request: Request<pb::ListDomainRulesRequest>,
    ) -> Result<Response<pb::ListDomainRulesResponse>, Status> {
        Ok(Response::new(
            trust::list_domain_rules(&self.evidence, request).await?,
        ))
    }

    async fn list_blocked_domains(
        &self,
        request: Request<pb::ListBlockedDomainsRequest>,
    ) -> Result<Response<pb::ListBlockedDomainsResponse>, Status> {
        Ok(Response::new(
            trust::list_blocked_domains(&self.evidence, request).await?,
        ))
    }

    async fn list_evidence_events(
        &self,
        request: Request<pb::ListEvidenceEventsRequest>,
    ) -> Result<Response<pb::ListEvidenceEventsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let query = reads::events_query(&message);
        let (filter, before, limit) = reads::list_events(&message, query).map_err(Error::from)?;
        let (events, more) = self.evidence.events(&filter, before, limit).await?;
        let positions: Vec<_> = events.iter().map(|(position, _)| *position).collect();
        let events = events.into_iter().map(|(_, event)| reads::event(event)).collect();
        let (events, next_page_token) =
            one_page(events, &positions, more, |last| reads::event_token(query, last));
        Ok(Response::new(pb::ListEvidenceEventsResponse {
            events,
            next_page_token,
        }))
    }

    async fn get_review_stats(
        &self,
        request: Request<pb::GetReviewStatsRequest>,
    ) -> Result<Response<pb::GetReviewStatsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let filter = reads::review_stats(&message).map_err(Error::from)?;
        let stats = self.evidence.review_stats(&filter).await?;
        Ok(Response::new(reads::stats(&stats)))
    }

    async fn export_materials(
        &self,
        request: Request<pb::ExportMaterialsRequest>,
    ) -> Result<Response<Self::ExportMaterialsStream>, Status> {
        let Call { message, .. } = open(request)?;
        let (namespace, task) = reads::export_materials(&message).map_err(Error::from)?;
        let slot = self.exports.take()?;
        let both = message.both_readings;
        let export = self
            .evidence
            .export_materials(&namespace, &task, both, slot)
            .await?;
        let messages = streamed(export.pages(), |line| Some(reads::line(line)));
        Ok(Response::new(messages))
    }

    async fn export_corrections(
        &self,
        request: Request<pb::ExportCorrectionsRequest>,
    ) -> Result<Response<Self::ExportCorrectionsStream>, Status> {
        let Call { message, .. } = open(request)?;
        let (filter, test_percent) = reads::export_corrections(&message).map_err(Error::from)?;
        let slot = self.exports.take()?;
        let export = self.evidence.export_corrections(filter, slot).await?;
        let messages = streamed(export.pages(), move |sample| reads::sample(sample, test_percent));
        Ok(Response::new(messages))
    }

    async fn rank_citations(
        &self,
        request: Request<pb::RankCitationsRequest>,
    ) -> Result<Response<pb::RankCitationsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let citations = citations::parse(&message).map_err(Error::from)?;
        let ranked = self.evidence.rank_citations(&citations).await?;
        Ok(Response::new(citations::render(ranked)))
    }

    async fn apply_trust_file(
        &self,
        request: Request<pb::ApplyTrustFileRequest>,
    ) -> Result<Response<pb::ApplyTrustFileResponse>, Status> {
        Ok(Response::new(
            trust::apply_trust_file(&self.evidence, request).await?,
        ))
    }
}

/// The messages of an export, page by page as the client takes them.
fn streamed<T, M>(
    pages: BoxStream<'static, Result<Vec<T>, Error>>,
    render: impl Fn(T) -> Option<M> + Send + 'static,
) -> Messages<M>
where
    T: Send + 'static,
    M: Send + 'static,
{
    let messages = pages.map(move |page| match page {
        Ok(page) => page.into_iter().filter_map(&render).map(Ok).collect(),
        Err(error) => vec![Err(Status::from(error))],
    });
    messages.flat_map(stream::iter).boxed()
}

/// The items that fit on a page, and the token of the next one if there is any.
fn one_page<M: prost::Message, P: Copy>(
    items: Vec<M>,
    positions: &[P],
    more: bool,
    token: impl Fn(P) -> String,
) -> (Vec<M>, String) {
    let (items, was_cut) = page::cut(items);
    let last = items.len().checked_sub(1).and_then(|last| positions.get(last));
    let next = last
        .filter(|_| more || was_cut)
        .map_or_else(String::new, |last| token(*last));
    (items, next)
}

fn small(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
