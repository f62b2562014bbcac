//! How queries of each type are searched.

use std::sync::Arc;

use emend_core::{Namespace, Violations, search::Tuning};
use emend_proto::common::v1::SearchTuningValue;

use super::{LearnedView, Reading};

impl LearnedView {
    /// How queries of a type are searched, by its name, which is compared byte for byte: as an operator set it, else with the
    /// defaults. [`RetryPlan`](emend_core::search::RetryPlan) has its steps.
    pub fn tuning(&self, namespace: &Namespace, query_type: &str) -> Arc<Tuning> {
        self.read().tuning(namespace, query_type)
    }
}

impl Reading<'_> {
    /// How queries of a type are searched; see [`LearnedView::tuning`].
    pub fn tuning(&self, namespace: &Namespace, query_type: &str) -> Arc<Tuning> {
        let found = self.of_id(namespace, query_type);
        found
            .and_then(|found| found.tuning().cloned())
            .unwrap_or_default()
    }
}

/// The tuning of a request that tries one out ([`SearchRequest`](emend_proto::search::v1::SearchRequest)); one that is cleared
/// has the defaults. Fails with every field that is wrong.
pub fn tuning_to_try(message: &SearchTuningValue) -> Result<Arc<Tuning>, Violations> {
    let tuning = emend_wire::search::tuning(message)?;
    Ok(tuning.map(|set| set.tuning().clone()).unwrap_or_default())
}
