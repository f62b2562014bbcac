//! The request to delete evidence, and its answer.

use std::collections::BTreeSet;

use emend_core::{Caller, Violations, evidence::EvidenceId, violation::bounded_prose};
use emend_proto::learning::v1 as pb;
use learning_store::evidence::graph::{Deletion, MAX_UPSERT};

use crate::{
    evidence::deletes::DeletedElements,
    grpc::parse::{self, REASON},
};

/// Parses the request: every violation at once.
pub(crate) fn parse(request: &pb::DeleteEvidenceRequest, caller: &Caller) -> Result<Deletion, Violations> {
    let pb::DeleteEvidenceRequest {
        namespace,
        page_ids,
        fragment_ids,
        claim_ids,
        edge_ids,
        reason,
        on_behalf_of,
    } = request;
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, namespace);
    let count = page_ids.len() + fragment_ids.len() + claim_ids.len() + edge_ids.len();
    if !(1..=MAX_UPSERT).contains(&count) {
        violations.add(
            "",
            format!("must have 1 to {MAX_UPSERT} ids together, has {count}"),
        );
        return Err(violations);
    }
    let pages = ids(&mut violations, "page_ids", page_ids);
    let fragments = ids(&mut violations, "fragment_ids", fragment_ids);
    let claims = ids(&mut violations, "claim_ids", claim_ids);
    let edges = ids(&mut violations, "edge_ids", edge_ids);
    let reason = violations.check("reason", bounded_prose(reason, 0, REASON));
    let actor = parse::actor(&mut violations, caller, on_behalf_of);
    let parsed = (|| {
        Some(Deletion {
            namespace: namespace?,
            pages,
            fragments,
            claims,
            edges,
            reason: reason?,
            actor: actor?,
        })
    })();
    violations.finish(parsed)
}

fn ids(violations: &mut Violations, field: &str, raw: &[String]) -> Vec<EvidenceId> {
    let mut ids = BTreeSet::new();
    for (index, id) in raw.iter().enumerate() {
        ids.extend(violations.check(&format!("{field}[{index}]"), EvidenceId::parse(id)));
    }
    ids.into_iter().collect()
}

/// Renders what was deleted.
pub(crate) fn render(deleted: DeletedElements) -> pb::DeleteEvidenceResponse {
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    pb::DeleteEvidenceResponse {
        pages: count(deleted.pages),
        fragments: count(deleted.fragments),
        claims: count(deleted.claims),
        edges: count(deleted.edges),
    }
}
