//! What rows of several capabilities have in common, and how it is parsed: rows are never trusted.

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

use std::fmt;

use emend_core::{Caller, ContestId, Invalid, Kind, Namespace, ResourceKey, ResourceValue, Roles};
use emend_store::{CorruptRow, StoreError};
use jiff::Timestamp;
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::{actor::Actor, policies::PolicyKey};

/// The table and row of a column, to be named in errors.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub table: &'static str,
    pub id: &'a dyn fmt::Display,
}

/// An id as stored: the 16 bytes of a UUID. Shown as text; other bytes, in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredId<'a>(pub &'a [u8]);

impl fmt::Display for StoredId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Uuid::from_slice(self.0) {
            Ok(id) => write!(f, "{id}"),
            Err(_) => self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// The bytes of an id that may be missing.
pub(crate) fn optional_id(id: Option<Uuid>) -> Option<Vec<u8>> {
    id.map(|id| id.as_bytes().to_vec())
}

impl At<'_> {
    pub(crate) fn corrupt(self, column: &'static str, reason: impl std::fmt::Display) -> StoreError {
        CorruptRow::new(self.table, column, self.id, reason).into()
    }

    /// The parsed value of a column.
    pub(crate) fn parse<T>(self, column: &'static str, parsed: Result<T, Invalid>) -> Result<T, StoreError> {
        parsed.map_err(|invalid| self.corrupt(column, invalid))
    }

    /// The value of a code, which must be known.
    pub(crate) fn known<T>(
        self,
        column: &'static str,
        code: impl std::fmt::Display,
        known: Option<T>,
    ) -> Result<T, StoreError> {
        known.ok_or_else(|| self.corrupt(column, format_args!("unknown: {code}")))
    }

    /// A number that must fit the target type, for example not be negative.
    pub(crate) fn number<T, N: TryInto<T> + std::fmt::Display + Copy>(
        self,
        column: &'static str,
        number: N,
    ) -> Result<T, StoreError> {
        number
            .try_into()
            .map_err(|_| self.corrupt(column, format_args!("out of range: {number}")))
    }

    /// Parses microseconds since 1970.
    pub(crate) fn time(self, column: &'static str, micros: i64) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(micros).map_err(|error| self.corrupt(column, error))
    }

    /// Roles joined by commas.
    pub(crate) fn roles(self, column: &'static str, joined: &str) -> Result<Roles, StoreError> {
        self.parse(
            column,
            Roles::parse(joined.split(',').filter(|name| !name.is_empty())),
        )
    }

    pub(crate) fn uuid(self, column: &'static str, bytes: &[u8]) -> Result<Uuid, StoreError> {
        Uuid::from_slice(bytes).map_err(|error| self.corrupt(column, error))
    }

    pub(crate) fn value(self, column: &'static str, bytes: &[u8]) -> Result<ResourceValue, StoreError> {
        self.parse(column, emend_wire::value::decode(bytes))
    }
}

/// The parts of a resource key.
#[derive(Debug, FromRow)]
pub(crate) struct KeyRow {
    pub contest_id: Vec<u8>,
    pub namespace: String,
    pub kind: i32,
    pub key: String,
    pub qualifier: String,
    pub user_id: String,
}

/// A key, with that of its contest within the database.
#[derive(Debug, FromRow)]
pub(crate) struct PlacedKeyRow {
    pub contest: i64,
    #[sqlx(flatten)]
    pub key: KeyRow,
}

impl KeyRow {
    /// The key. Its parts must give the id it is stored under.
    pub(crate) fn parse(&self, table: &'static str) -> Result<ResourceKey, StoreError> {
        let at = At {
            table,
            id: &StoredId(&self.contest_id),
        };
        let kind = at.known("kind", self.kind, Kind::from_number(self.kind))?;
        let key = ResourceKey::parse(
            &self.namespace,
            Some(kind),
            &self.key,
            &self.qualifier,
            &self.user_id,
        )
        .map_err(|violations| at.corrupt("key", violations))?;
        let id = ContestId(at.uuid("contest_id", &self.contest_id)?);
        if key.contest_id() == id {
            Ok(key)
        } else {
            Err(at.corrupt("key", "another key than the one that gives this id"))
        }
    }
}

#[derive(Debug, FromRow)]
pub(crate) struct CountRow {
    pub namespace: String,
    pub kind: i32,
    pub count: i64,
}

impl CountRow {
    pub(crate) fn parse(&self) -> Result<(PolicyKey, u64), StoreError> {
        let at = At {
            table: "resource_counts",
            id: &self.namespace,
        };
        let key = PolicyKey {
            namespace: at.parse("namespace", Namespace::parse(&self.namespace))?,
            kind: at.known("kind", self.kind, Kind::from_number(self.kind))?,
        };
        Ok((key, at.number("count", self.count)?))
    }
}

pub(crate) fn actor(
    at: At<'_>,
    column: &'static str,
    caller: &str,
    on_behalf_of: &str,
) -> Result<Actor, StoreError> {
    Ok(Actor {
        caller: at.parse(column, Caller::parse(caller))?,
        on_behalf_of: on_behalf_of.to_owned(),
    })
}
