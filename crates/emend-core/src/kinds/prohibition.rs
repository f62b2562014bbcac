//! A choice that must never be offered for a phrase. Decided by votes; the choice is the key's qualifier, so there are
//! no rivals.

use super::KindRules;
use crate::policy::RiskLevel;

pub(super) const RULES: KindRules = KindRules {
    name: "prohibition",
    number: 3,
    default_risk: RiskLevel::Medium,
    qualifier: Some("the forbidden choice"),
    describe: |phrase, choice| format!("“{choice}” is never offered for “{phrase}”"),
};
