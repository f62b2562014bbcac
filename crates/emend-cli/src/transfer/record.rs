//! One row, independent of the file format.

use emend_core::{Invalid, Kind, Learned, Relation, kinds::HUMAN};
use emend_proto::{
    common::v1::{
        Correction, EntityCorrection, PhraseMapping, Prohibition, Resource, TermCorrection, VerbCorrection,
        correction::Correction as Variant,
    },
    learning::v1::ImportRow,
};
use emend_wire::kinds::{
    claim_decision, domain_decision, edge_correction, relation_number, tuning_correction,
};
use serde::{Serialize, Serializer};

use crate::view;

/// The columns that export writes, in this order.
pub const COLUMNS: [&str; 5] = ["type", "input", "choice", "relation", "user_id"];

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What it teaches.
    pub kind: Kind,
    /// The phrase, alias, term, pattern of domains, query type, or id of a claim or edge.
    pub input: String,
    /// The verb, the entity's id, the choice never to offer, the term that it stands for, the decision as one word, or the
    /// tuning as one line.
    pub choice: String,
    /// How a synonym is related to the term that it stands for.
    pub relation: Option<Relation>,
    /// What the system chose; may be empty. Imported, but never exported.
    pub system_choice: String,
    /// For this user only; empty for everybody.
    pub user_id: String,
}

impl Record {
    /// The columns that export writes, with what they hold.
    pub(super) fn columns(&self) -> [(&'static str, &str); 5] {
        let [kind, input, choice, relation, user_id] = COLUMNS;
        [
            (kind, self.kind.name()),
            (input, &self.input),
            (choice, &self.choice),
            (relation, self.relation.map_or("", Relation::name)),
            (user_id, &self.user_id),
        ]
    }
}

/// As a mapping, without empty columns.
impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.columns().into_iter().filter(|(_, text)| !text.is_empty()))
    }
}

/// Said of a key that can't be named.
pub(super) const EMPTY_KEY: &str = "a key is empty";

/// Why a row is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{description}", prefixed(.field))]
pub struct RowError {
    /// The field; empty if it is about the row as a whole.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
    effect: Effect,
}

/// What a row that is not taken does to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The row is bad; the others can be read.
    Bad,
    /// Nothing after it can be read either.
    EndsFile,
    /// It says nothing, which is not wrong.
    PassedOver,
}

fn prefixed(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("{field}: ")
    }
}

impl RowError {
    /// A field is bad.
    pub fn field(field: &str, description: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            description: description.into(),
            effect: Effect::Bad,
        }
    }

    /// The row as a whole is bad.
    pub fn row(description: impl Into<String>) -> Self {
        Self::field("", description)
    }

    /// What the row, or a part of it, says nothing with.
    pub fn passed_over(description: impl Into<String>) -> Self {
        Self {
            effect: Effect::PassedOver,
            ..Self::row(description)
        }
    }

    /// The same, but with it the file ends for whoever reads it.
    pub(super) fn of_the_file(self) -> Self {
        Self {
            effect: Effect::EndsFile,
            ..self
        }
    }

    /// Whether nothing after it can be read either.
    pub fn ends_file(&self) -> bool {
        self.effect == Effect::EndsFile
    }

    /// Whether it says nothing, which is not wrong.
    pub fn is_passed_over(&self) -> bool {
        self.effect == Effect::PassedOver
    }
}

/// The fields, each of which may have several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Type,
    Input,
    Choice,
    SystemChoice,
    UserId,
    Relation,
}

/// A field by one of its names, and the kind that this name alone belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldName {
    field: Field,
    kind: Option<Kind>,
}

impl FieldName {
    /// The field with this name.
    pub(super) fn parse(name: &str) -> Result<Self, RowError> {
        let any = |field| Ok(Self { field, kind: None });
        let only = |field, kind| {
            Ok(Self {
                field,
                kind: Some(kind),
            })
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "type" => any(Field::Type),
            "input" | "phrase" | "original_input" => any(Field::Input),
            "alias" => only(Field::Input, Kind::EntityAlias),
            "term" => only(Field::Input, Kind::Synonym),
            "pattern" => only(Field::Input, Kind::DomainRule),
            "claim_id" => only(Field::Input, Kind::ClaimState),
            "edge_id" => only(Field::Input, Kind::EdgeLabel),
            "query_type" => only(Field::Input, Kind::SearchTuning),
            "choice" | "correct_choice" | "decision" | "label" => any(Field::Choice),
            "verb" => only(Field::Choice, Kind::InvocationPhrase),
            "entity" | "entity_id" => only(Field::Choice, Kind::EntityAlias),
            "forbidden_choice" => only(Field::Choice, Kind::Prohibition),
            "representative" => only(Field::Choice, Kind::Synonym),
            "tuning" => only(Field::Choice, Kind::SearchTuning),
            "relation" => any(Field::Relation),
            "system_choice" => any(Field::SystemChoice),
            "user_id" | "user" => any(Field::UserId),
            "" => Err(RowError::row(EMPTY_KEY)),
            _ => Err(RowError::field(
                name,
                "is not known; expected type, input (or phrase, alias, term, pattern, claim_id, edge_id, query_type), choice \
                 (or verb, entity_id, forbidden_choice, representative, decision, label, tuning), relation, \
                 system_choice, user_id",
            )),
        }
    }
}

/// Collects the fields of one row.
#[derive(Debug, Default)]
pub(super) struct Fields {
    values: [Option<String>; 6],
    /// The kinds that names of fields belong to, where those say one.
    kinds: Vec<Kind>,
}

impl Fields {
    /// Sets a field; a repeated field is an error.
    pub(super) fn set(
        &mut self,
        FieldName { field, kind }: FieldName,
        value: String,
    ) -> Result<(), RowError> {
        self.kinds.extend(kind);
        let slot = &mut self.values[field as usize];
        if slot.is_some() {
            return Err(RowError::row(format!("the field {field:?} is given twice")));
        }
        *slot = Some(value);
        Ok(())
    }

    /// The row, if it has all required fields. Lengths and characters are left to the server to check.
    pub(super) fn finish(self) -> Result<Record, RowError> {
        let [kind, input, choice, system_choice, user_id, relation] = self.values;
        let required = |name: &str, value: Option<String>| {
            value
                .filter(|value| !value.trim().is_empty())
                .ok_or_else(|| RowError::field(name, "is required"))
        };
        let named = |name: &str, Invalid(why): Invalid| RowError::field(name, why);
        // `phrase,verb` says without a type what its rows are; a type, where there is one, says it for sure.
        let named_kind = self
            .kinds
            .first()
            .filter(|first| self.kinds.iter().all(|kind| kind == *first));
        let kind = match (kind, named_kind) {
            (None, Some(kind)) => *kind,
            (kind, _) => {
                Kind::parse_any(&required("type", kind)?).map_err(|invalid| named("type", invalid))?
            }
        };
        let rule = kind.rules().rule;
        if !rule.is_by_corrections() {
            let why = format!("{kind} can't be imported: it is decided by {}", rule.decided_by());
            return Err(RowError::field("type", why));
        }
        let relation = relation
            .filter(|relation| !relation.trim().is_empty())
            .map(|relation| Relation::parse(&relation))
            .transpose()
            .map_err(|invalid| named("relation", invalid))?;
        if relation.is_some() && kind != Kind::Synonym {
            return Err(RowError::field("relation", "is for rows of type synonym only"));
        }
        let choice = required("choice", choice)?;
        Learned::of(kind, choice.clone()).map_err(|invalid| named("choice", invalid))?;
        Ok(Record {
            kind,
            input: required("input", input)?,
            choice,
            relation,
            system_choice: system_choice.unwrap_or_default(),
            user_id: user_id.unwrap_or_default(),
        })
    }
}

impl Record {
    /// A term that stands for another.
    pub(super) fn synonym(term: String, representative: String, relation: Relation) -> Self {
        Self {
            kind: Kind::Synonym,
            input: term,
            choice: representative,
            relation: Some(relation),
            system_choice: String::new(),
            user_id: String::new(),
        }
    }

    /// The row as the service takes it.
    pub fn to_import_row(&self, line: u64) -> Result<ImportRow, RowError> {
        let input = self.input.clone();
        let learned = Learned::of(self.kind, self.choice.clone());
        let variant = match learned.map_err(|Invalid(why)| RowError::field("choice", why))? {
            Learned::Verb(verb) if self.system_choice.is_empty() => {
                Variant::PhraseMapping(PhraseMapping { phrase: input, verb })
            }
            Learned::Verb(verb) => Variant::Verb(VerbCorrection {
                original_input: input,
                system_choice: self.system_choice.clone(),
                correct_choice: verb,
            }),
            Learned::Entity(entity) => Variant::Entity(EntityCorrection {
                original_input: input,
                system_choice: self.system_choice.clone(),
                correct_choice: entity,
            }),
            Learned::Forbidden(forbidden_choice) => Variant::Prohibition(Prohibition {
                phrase: input,
                forbidden_choice,
            }),
            Learned::Synonym(synonym) => Variant::Term(TermCorrection {
                term: synonym.representative,
                equivalents: vec![input],
                relation: relation_number(self.relation.unwrap_or_default()).into(),
            }),
            Learned::DomainRule(value) => domain_decision(input, value.rule),
            Learned::ClaimState(Some(state)) => claim_decision(input, &state),
            Learned::EdgeLabel(Some(label)) => edge_correction(input, label),
            Learned::SearchTuning(Some(set)) => tuning_correction(input, set.tuning()),
            _ => {
                return Err(RowError::field("choice", "is nothing that a correction says"));
            }
        };
        Ok(ImportRow {
            line: i64::try_from(line).unwrap_or(i64::MAX),
            correction: Some(Correction {
                correction: Some(variant),
            }),
            user_id: self.user_id.clone(),
        })
    }

    /// The row for a resource; `None` for a kind that this version cannot write, for what no correction says, and for rules of
    /// domains in layers of the system's own.
    pub fn of_resource(resource: &Resource) -> Option<Self> {
        let key = resource.key.as_ref()?;
        let value = resource.value.as_ref()?;
        let learned = view::learned(Some(value))?;
        let is_of_people = learned.kind() != Kind::DomainRule || key.qualifier == HUMAN;
        if !learned.kind().rules().rule.is_by_corrections() || !is_of_people {
            return None;
        }
        Some(Self {
            kind: learned.kind(),
            input: if value.display.is_empty() {
                key.key.clone()
            } else {
                value.display.clone()
            },
            choice: learned.maps_to().to_owned(),
            relation: match &learned {
                Learned::Synonym(synonym) => Some(synonym.relation),
                _ => None,
            },
            system_choice: String::new(),
            user_id: key.user_id.clone(),
        })
    }
}
