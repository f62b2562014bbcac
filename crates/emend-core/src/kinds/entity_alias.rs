//! A name people use and the entity it means. Decided by votes; the entities proposed for one alias are rivals.

use super::KindRules;
use crate::policy::RiskLevel;

pub(super) const RULES: KindRules = KindRules {
    name: "entity_alias",
    number: 2,
    default_risk: RiskLevel::Low,
    qualifier: None,
    describe: |alias, entity| format!("“{alias}” means the entity “{entity}”"),
};
