//! A phrase and the verb it invokes. Decided by votes; the verbs proposed for one phrase are rivals.

use super::KindRules;
use crate::policy::RiskLevel;

pub(super) const RULES: KindRules = KindRules {
    name: "invocation_phrase",
    number: 1,
    default_risk: RiskLevel::Medium,
    qualifier: None,
    describe: |input, verb| format!("“{input}” means the verb “{verb}”"),
};
