//! The evidence service.

pub(crate) mod citations;
pub(crate) mod parse;
pub(crate) mod render;

use emend_base::Error;
use emend_core::{Violations, evidence::EvidenceId};
use emend_proto::learning::v1::{self as pb, evidence_service_server::EvidenceService};
use emend_serve::auth::Call;
use emend_wire::page::{self, QueryHash};
use futures::stream::BoxStream;
use tonic::{Request, Response, Status};

use crate::{app::App, grpc::parse::namespace, roles::open};

/// Serves the evidence use cases of an `App`.
#[derive(Debug, Clone)]
pub(crate) struct EvidenceGraph {
    app: App,
}

impl EvidenceGraph {
    /// Serves the use cases of `app`.
    pub(crate) fn new(app: App) -> Self {
        Self { app }
    }
}

/// The messages of a stream.
type Messages<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl EvidenceService for EvidenceGraph {
    type ExportMaterialsStream = Messages<pb::ExportMaterialsResponse>;
    type ExportCorrectionsStream = Messages<pb::ExportCorrectionsResponse>;

    async fn upsert_evidence(
        &self,
        request: Request<pb::UpsertEvidenceRequest>,
    ) -> Result<Response<pb::UpsertEvidenceResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let upsert = parse::upsert(&message).map_err(Error::from)?;
        let done = self.app.upsert_evidence(&upsert).await?;
        Ok(Response::new(pb::UpsertEvidenceResponse {
            added: small(done.upserted.added),
            corrections_arrived: small(done.arrived),
        }))
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
        let found = self.app.claim(&namespace, &claim).await?;
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
        let (claims, more) = self.app.claims(&filter, after, limit).await?;
        let positions: Vec<i64> = claims.iter().map(|(position, _)| *position).collect();
        let claims = claims
            .into_iter()
            .map(|(_, claim)| render::claim(claim))
            .collect();
        let (claims, next_page_token) =
            one_page(claims, &positions, more, |last| page::number_token(query, last));
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
        let (edges, more) = self.app.edges(&filter, after, limit).await?;
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
        _request: Request<pb::ListDomainRulesRequest>,
    ) -> Result<Response<pb::ListDomainRulesResponse>, Status> {
        Err(Error::Unimplemented("ListDomainRules").into())
    }

    async fn list_blocked_domains(
        &self,
        _request: Request<pb::ListBlockedDomainsRequest>,
    ) -> Result<Response<pb::ListBlockedDomainsResponse>, Status> {
        Err(Error::Unimplemented("ListBlockedDomains").into())
    }

    async fn list_evidence_events(
        &self,
        _request: Request<pb::ListEvidenceEventsRequest>,
    ) -> Result<Response<pb::ListEvidenceEventsResponse>, Status> {
        Err(Error::Unimplemented("ListEvidenceEvents").into())
    }

    async fn get_review_stats(
        &self,
        _request: Request<pb::GetReviewStatsRequest>,
    ) -> Result<Response<pb::GetReviewStatsResponse>, Status> {
        Err(Error::Unimplemented("GetReviewStats").into())
    }

    async fn export_materials(
        &self,
        _request: Request<pb::ExportMaterialsRequest>,
    ) -> Result<Response<Self::ExportMaterialsStream>, Status> {
        Err(Error::Unimplemented("ExportMaterials").into())
    }

    async fn export_corrections(
        &self,
        _request: Request<pb::ExportCorrectionsRequest>,
    ) -> Result<Response<Self::ExportCorrectionsStream>, Status> {
        Err(Error::Unimplemented("ExportCorrections").into())
    }

    async fn rank_citations(
        &self,
        request: Request<pb::RankCitationsRequest>,
    ) -> Result<Response<pb::RankCitationsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let citations = citations::parse(&message).map_err(Error::from)?;
        let ranked = self.app.rank_citations(&citations).await?;
        Ok(Response::new(citations::render(ranked)))
    }

    async fn apply_trust_file(
        &self,
        _request: Request<pb::ApplyTrustFileRequest>,
    ) -> Result<Response<pb::ApplyTrustFileResponse>, Status> {
        Err(Error::Unimplemented("ApplyTrustFile").into())
    }
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
