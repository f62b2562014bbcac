//! What people decided about claims and edges, and the order of results by the trust in their sources.

use emend_core::{ClaimState, EdgeRelation, Namespace, Revision, TrustLevel, evidence};

use super::{LearnedView, Reading, entry::Found};

/// What was decided about a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimDecided {
    /// The decision.
    pub state: ClaimState,
    /// The revision that applied it.
    pub revision: Revision,
}

/// The label that a person gave an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeDecided {
    /// The label; never `Cites`.
    pub relation: EdgeRelation,
    /// The revision that applied it.
    pub revision: Revision,
}

impl LearnedView {
    /// What people decided about a claim, by its id, which is compared byte for byte; `None`: nothing.
    pub fn claim_state(&self, namespace: &Namespace, claim_id: &str) -> Option<ClaimDecided> {
        self.read().claim_state(namespace, claim_id).cloned()
    }

    /// The label that a person gave an edge, by its id, which is compared byte for byte; `None`: the model's applies.
    pub fn edge_label(&self, namespace: &Namespace, edge_id: &str) -> Option<EdgeDecided> {
        self.read().edge_label(namespace, edge_id)
    }

    /// Orders results by the trust in their sources; see [`Reading::rank`].
    pub fn rank<T, H: AsRef<str>>(
        &self,
        namespace: &Namespace,
        results: impl IntoIterator<Item = (T, H, f64)>,
    ) -> Vec<(T, H, f64)> {
        self.read().rank(namespace, results)
    }
}

impl Reading<'_> {
    /// What people decided about a claim, by its id; `None`: nothing.
    pub fn claim_state(&self, namespace: &Namespace, claim_id: &str) -> Option<&ClaimDecided> {
        self.of_id(namespace, claim_id)?.claim()
    }

    /// The label that a person gave an edge, by its id; `None`: the model's applies.
    pub fn edge_label(&self, namespace: &Namespace, edge_id: &str) -> Option<EdgeDecided> {
        self.of_id(namespace, edge_id)?.edge()
    }

    /// What was learned for a key of the form `exact`.
    pub(super) fn of_id(&self, namespace: &Namespace, id: &str) -> Option<Found<'_>> {
        let key = self.hash.namespace(namespace.as_str()) ^ self.hash.phrase(id.trim());
        self.state.find(key)
    }

    /// Orders results, each with its source's host as written and its score, 0.0 or more: without those of blocked sources,
    /// scores multiplied by the weight of the source's trust, the best first, equal ones as they came. A host that is no domain
    /// name is UNVERIFIED; a score that is no number comes last.
    pub fn rank<T, H: AsRef<str>>(
        &self,
        namespace: &Namespace,
        results: impl IntoIterator<Item = (T, H, f64)>,
    ) -> Vec<(T, H, f64)> {
        let weighed = results.into_iter().filter_map(|(result, host, score)| {
            let level = evidence::host(host.as_ref())
                .map_or(TrustLevel::default(), |name| self.trust_level(namespace, &name));
            (level != TrustLevel::Blocked).then(|| (result, host, score * level.weight()))
        });
        let mut ranked: Vec<(T, H, f64)> = weighed.collect();
        let comparable = |score: f64| if score.is_nan() { f64::NEG_INFINITY } else { score };
        ranked.sort_by(|(_, _, one), (_, _, other)| comparable(*other).total_cmp(&comparable(*one)));
        ranked
    }
}
