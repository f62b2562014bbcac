//! What can be bound to a parameter of a statement.

use sqlx::{
    Encode, Postgres, Sqlite, Type, error::BoxDynError, postgres::PgArguments, sqlite::SqliteArguments,
};

/// A value bound to a parameter. Each is of one type, also where it is null.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// An INTEGER of 32 bits.
    I32(Option<i32>),
    /// A BIGINT.
    I64(Option<i64>),
    /// A DOUBLE PRECISION.
    F64(Option<f64>),
    /// A TEXT.
    Text(Option<String>),
    /// A BYTEA or BLOB.
    Bytes(Option<Vec<u8>>),
    /// An array of integers; PostgreSQL's alone.
    I32s(Vec<i32>),
    /// An array of integers of 64 bits; PostgreSQL's alone.
    I64s(Vec<i64>),
    /// An array of texts, of which some may be null; PostgreSQL's alone.
    Texts(Vec<Option<String>>),
    /// An array of bytes, of which some may be null; PostgreSQL's alone.
    ByteArrays(Vec<Option<Vec<u8>>>),
}

impl Argument {
    pub(super) fn bind_sqlite(self, arguments: &mut SqliteArguments) -> Result<(), sqlx::Error> {
        fn add<'t, T>(arguments: &mut SqliteArguments, value: T) -> Result<(), BoxDynError>
        where
            T: Encode<'t, Sqlite> + Type<Sqlite>,
        {
            sqlx::Arguments::add(arguments, value)
        }
        match self {
            Self::I32(value) => add(arguments, value),
            Self::I64(value) => add(arguments, value),
            Self::F64(value) => add(arguments, value),
            Self::Text(value) => add(arguments, value),
            Self::Bytes(value) => add(arguments, value),
            Self::I32s(_) | Self::I64s(_) | Self::Texts(_) | Self::ByteArrays(_) => {
                Err("SQLite has no arrays to bind".into())
            }
        }
        .map_err(sqlx::Error::Encode)
    }

    pub(super) fn bind_postgres(self, arguments: &mut PgArguments) -> Result<(), sqlx::Error> {
        fn add<'t, T>(arguments: &mut PgArguments, value: T) -> Result<(), BoxDynError>
        where
            T: Encode<'t, Postgres> + Type<Postgres>,
        {
            sqlx::Arguments::add(arguments, value)
        }
        match self {
            Self::I32(value) => add(arguments, value),
            Self::I64(value) => add(arguments, value),
            Self::F64(value) => add(arguments, value),
            Self::Text(value) => add(arguments, value),
            Self::Bytes(value) => add(arguments, value),
            Self::I32s(value) => add(arguments, value),
            Self::I64s(value) => add(arguments, value),
            Self::Texts(value) => add(arguments, value),
            Self::ByteArrays(value) => add(arguments, value),
        }
        .map_err(sqlx::Error::Encode)
    }
}

/// From a value, and from one that may be absent.
macro_rules! arguments {
    ($($variant:ident: $($from:ty),+;)+) => {$($(
        impl From<$from> for Argument {
            fn from(value: $from) -> Self {
                Self::$variant(Some(value.into()))
            }
        }

        impl From<Option<$from>> for Argument {
            fn from(value: Option<$from>) -> Self {
                Self::$variant(value.map(Into::into))
            }
        }
    )+)+};
}

arguments! {
    I32: i32;
    I64: i64;
    F64: f64;
    Text: String, &str;
    Bytes: Vec<u8>, &[u8];
}

impl From<&String> for Argument {
    fn from(value: &String) -> Self {
        value.as_str().into()
    }
}

impl From<&Vec<u8>> for Argument {
    fn from(value: &Vec<u8>) -> Self {
        value.as_slice().into()
    }
}

impl From<Vec<i32>> for Argument {
    fn from(values: Vec<i32>) -> Self {
        Self::I32s(values)
    }
}

impl From<Vec<i64>> for Argument {
    fn from(values: Vec<i64>) -> Self {
        Self::I64s(values)
    }
}

impl From<Vec<&str>> for Argument {
    fn from(values: Vec<&str>) -> Self {
        Self::Texts(values.into_iter().map(|value| Some(value.to_owned())).collect())
    }
}

impl From<Vec<Option<&str>>> for Argument {
    fn from(values: Vec<Option<&str>>) -> Self {
        Self::Texts(values.into_iter().map(|value| value.map(str::to_owned)).collect())
    }
}

impl From<Vec<&[u8]>> for Argument {
    fn from(values: Vec<&[u8]>) -> Self {
        Self::ByteArrays(values.into_iter().map(|value| Some(value.to_vec())).collect())
    }
}

impl From<Vec<Option<&[u8]>>> for Argument {
    fn from(values: Vec<Option<&[u8]>>) -> Self {
        Self::ByteArrays(
            values
                .into_iter()
                .map(|value| value.map(<[u8]>::to_vec))
                .collect(),
        )
    }
}
