//! One row, independent of the file format.

use emend_proto::{
    common::v1::{
        Correction, EntityCorrection, PhraseMapping, Prohibition, Resource, VerbCorrection,
        correction::Correction as Variant,
    },
    learning::v1::ImportRow,
};
use serde::Serialize;

use crate::{view, words::Kind};

/// The columns that export writes, in this order.
pub const COLUMNS: [&str; 4] = ["type", "input", "choice", "user_id"];

/// The type of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowType {
    /// A phrase means a verb.
    Phrase,
    /// An alias means an entity.
    Entity,
    /// A choice must never be offered for a phrase.
    Prohibition,
}

impl RowType {
    fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "phrase" | "phrase_mapping" | "verb" | "verb_correction" | "invocation_phrase" => {
                Some(Self::Phrase)
            }
            "entity" | "alias" | "entity_correction" | "entity_alias" => Some(Self::Entity),
            "prohibition" | "prohibit" => Some(Self::Prohibition),
            _ => None,
        }
    }

    /// The name as written in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Phrase => "phrase",
            Self::Entity => "entity",
            Self::Prohibition => "prohibition",
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// The type of the row.
    #[serde(rename = "type")]
    pub row_type: RowType,
    /// The phrase or alias.
    pub input: String,
    /// The verb, the entity's id, or the choice never to offer.
    pub choice: String,
    /// What the system chose; may be empty. Imported, but never exported.
    #[serde(skip)]
    pub system_choice: String,
    /// For this user only; empty for everybody.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_id: String,
}

/// Why a row is bad.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{description}", prefixed(.field))]
pub struct RowError {
    /// The field; empty if the row as a whole is bad.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
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
        }
    }

    /// The row as a whole is bad.
    pub fn row(description: impl Into<String>) -> Self {
        Self::field("", description)
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
}

impl Field {
    /// The field with this name.
    pub(super) fn parse(name: &str) -> Result<Self, RowError> {
        match name
            .trim()
            .trim_start_matches('\u{FEFF}')
            .to_ascii_lowercase()
            .as_str()
        {
            "type" => Ok(Self::Type),
            "input" | "phrase" | "alias" | "original_input" => Ok(Self::Input),
            "choice" | "verb" | "entity" | "entity_id" | "correct_choice" | "forbidden_choice" => {
                Ok(Self::Choice)
            }
            "system_choice" => Ok(Self::SystemChoice),
            "user_id" | "user" => Ok(Self::UserId),
            _ => Err(RowError::field(
                name,
                "is not known; expected type, input (or phrase, alias), choice (or verb, entity_id, forbidden_choice), \
                 system_choice, user_id",
            )),
        }
    }
}

/// Collects the fields of one row.
#[derive(Debug, Default)]
pub(super) struct Fields([Option<String>; 5]);

impl Fields {
    /// Sets a field; a repeated field is an error.
    pub(super) fn set(&mut self, field: Field, value: String) -> Result<(), RowError> {
        let slot = &mut self.0[field as usize];
        if slot.is_some() {
            return Err(RowError::row(format!("the field {field:?} is given twice")));
        }
        *slot = Some(value);
        Ok(())
    }

    /// The row, if it has all required fields. Lengths and characters are left to the server to check.
    pub(super) fn finish(self) -> Result<Record, RowError> {
        let [row_type, input, choice, system_choice, user_id] = self.0;
        let required = |name: &str, value: Option<String>| {
            value
                .filter(|value| !value.trim().is_empty())
                .ok_or_else(|| RowError::field(name, "is required"))
        };
        let row_type = required("type", row_type)?;
        let row_type = RowType::parse(&row_type).ok_or_else(|| {
            RowError::field(
                "type",
                format!("must be phrase, entity or prohibition, is {row_type:?}"),
            )
        })?;
        Ok(Record {
            row_type,
            input: required("input", input)?,
            choice: required("choice", choice)?,
            system_choice: system_choice.unwrap_or_default(),
            user_id: user_id.unwrap_or_default(),
        })
    }
}

impl Record {
    /// The row as the service takes it.
    pub fn to_import_row(&self, line: u64) -> ImportRow {
        let (input, choice) = (self.input.clone(), self.choice.clone());
        let variant = match self.row_type {
            RowType::Phrase if self.system_choice.is_empty() => Variant::PhraseMapping(PhraseMapping {
                phrase: input,
                verb: choice,
            }),
            RowType::Phrase => Variant::Verb(VerbCorrection {
                original_input: input,
                system_choice: self.system_choice.clone(),
                correct_choice: choice,
            }),
            RowType::Entity => Variant::Entity(EntityCorrection {
                original_input: input,
                system_choice: self.system_choice.clone(),
                correct_choice: choice,
            }),
            RowType::Prohibition => Variant::Prohibition(Prohibition {
                phrase: input,
                forbidden_choice: choice,
            }),
        };
        ImportRow {
            line: i64::try_from(line).unwrap_or(i64::MAX),
            correction: Some(Correction {
                correction: Some(variant),
            }),
            user_id: self.user_id.clone(),
        }
    }

    /// The row for a resource; `None` for a kind that this version cannot write.
    pub fn of_resource(resource: &Resource) -> Option<Self> {
        let key = resource.key.as_ref()?;
        let value = resource.value.as_ref()?;
        Some(Self {
            row_type: match Kind::from_number(key.kind)? {
                Kind::InvocationPhrase => RowType::Phrase,
                Kind::EntityAlias => RowType::Entity,
                Kind::Prohibition => RowType::Prohibition,
            },
            input: if value.display.is_empty() {
                key.key.clone()
            } else {
                value.display.clone()
            },
            choice: view::maps_to(Some(value)).to_owned(),
            system_choice: String::new(),
            user_id: key.user_id.clone(),
        })
    }
}
