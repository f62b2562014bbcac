//! A name people use and the entity it means. Decided by votes; the entities proposed for one alias are rivals.

use super::{Field, Form, KindRules, Learned, Rule};
use crate::roles::RiskLevel;

pub(super) const RULES: KindRules = KindRules {
    name: "entity_alias",
    number: 2,
    summary: "A name people use and the entity it means",
    short_name: "entity",
    aliases: &["alias", "entity-alias", "entity_correction"],
    key: Form::Phrase,
    qualifier: None,
    rule: Rule::Votes {
        default_risk: RiskLevel::Low,
    },
    parse: |choice| Ok(Learned::Entity(choice)),
    allows: |_, _| Ok(()),
    is_answer: true,
    arrow: '→',
};

pub(super) fn fields(entity: &str) -> Vec<Field<'_>> {
    vec![Field::distinguishing("entity_id", entity)]
}

pub(super) fn maps_to(entity: &str) -> &str {
    entity
}

pub(super) fn describe(alias: &str, entity: &str) -> String {
    format!("“{alias}” means the entity “{entity}”")
}
