//! The findings of a database audit, and opening a database read-only.
//!
//! An audit reads everything in one consistent state and compares it with what must hold. Each such condition is a
//! [`Check`] with a code that never changes; a violation is a [`Finding`]. The services define what is checked.

use std::{collections::BTreeMap, fmt};

use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use sqlx::migrate::Migrator;

use crate::{CorruptRow, StoreError};

/// How many findings of one check are kept with their evidence; the rest are only counted.
pub const KEPT_FINDINGS: usize = 25;

/// One condition that must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Check {
    /// Its name for programs, which never changes.
    pub code: &'static str,
    /// The condition, in one sentence.
    pub holds: &'static str,
}

/// Declares checks as constants, together with the list of all, so that none is left out.
#[macro_export]
macro_rules! checks {
    ($( $name:ident: $holds:literal; )+) => {
        $(
            #[doc = $holds]
            pub const $name: $crate::audit::Check =
                $crate::audit::Check { code: stringify!($name), holds: $holds };
        )+

        /// All of them.
        pub const CHECKS: &[$crate::audit::Check] = &[$( $name ),+];
    };
}

/// A row that can't be read at all. Any audit may find one.
pub const ROW_CORRUPT: Check = Check {
    code: "ROW_CORRUPT",
    holds: "Every row can be read: ids, values, states and times are valid.",
};

/// A violation of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The violated check.
    pub check: Check,
    /// Which rows, by their ids; never what a person wrote.
    pub evidence: String,
    /// What is wrong, in one sentence.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.check.code, self.evidence, self.message)
    }
}

/// The findings so far, in bounded memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    kept: Vec<Finding>,
    counts: BTreeMap<&'static str, usize>,
}

impl Findings {
    /// Records a finding.
    pub fn add(&mut self, check: Check, evidence: impl fmt::Display, message: impl fmt::Display) {
        let count = self.counts.entry(check.code).or_default();
        *count += 1;
        if *count <= KEPT_FINDINGS {
            self.kept.push(Finding {
                check,
                evidence: evidence.to_string(),
                message: message.to_string(),
            });
        }
    }

    /// Records an unreadable row.
    pub fn add_corrupt(&mut self, row: &CorruptRow) {
        let evidence = format!("{} {}", row.table, row.id);
        self.add(
            ROW_CORRUPT,
            evidence,
            format_args!("column {}: {}", row.column, row.reason),
        );
    }

    /// The value read, or `None` after recording a corrupt row.
    pub fn readable<T>(&mut self, read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(StoreError::Corrupt(row)) => {
                self.add_corrupt(&row);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The first [`KEPT_FINDINGS`] findings of each check, in the order found.
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    /// The number of findings of each check that found any.
    pub fn counts(&self) -> &BTreeMap<&'static str, usize> {
        &self.counts
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// Groups consecutive rows that are the `same`; groups are never empty. An error ends the stream.
pub fn in_groups<'a, T: Send + 'a>(
    rows: BoxStream<'a, Result<T, StoreError>>,
    same: fn(&T, &T) -> bool,
) -> BoxStream<'a, Result<Vec<T>, StoreError>> {
    let begun = (rows, None);
    stream::try_unfold(
        begun,
        move |(mut rows, ahead): (BoxStream<'a, _>, Option<T>)| async move {
            let first = match ahead {
                Some(row) => row,
                None => match rows.next().await {
                    Some(row) => row?,
                    None => return Ok(None),
                },
            };
            let mut group = vec![first];
            while let Some(row) = rows.next().await {
                let row = row?;
                if !same(&group[0], &row) {
                    return Ok(Some((group, (rows, Some(row)))));
                }
                group.push(row);
            }
            Ok(Some((group, (stream::empty().boxed(), None))))
        },
    )
    .boxed()
}

/// Observes the progress of a long audit.
pub trait Watch: Send {
    /// Starts on `what`; `of` is how many there are, or 0 if unknown.
    fn begins(&mut self, step: &'static str, count: u64);

    /// `by` more are done.
    fn went_on(&mut self, by: u64);
}

/// Ignores progress.
#[derive(Debug, Clone, Copy)]
pub struct IgnoreProgress;

impl Watch for IgnoreProgress {
    fn begins(&mut self, _what: &'static str, _of: u64) {}

    fn went_on(&mut self, _by: u64) {}
}

/// Why a database can't be audited.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The tables belong to another version. An audit does not migrate them.
    #[error(
        "its tables are of another version (migrations {found:?}, expected {expected:?}): start the service of this \
         version once, which brings them up to date, or use the program that goes with them"
    )]
    Schema {
        /// The applied migrations; empty if the service has nothing there.
        found: Vec<i64>,
        /// The migrations that this version knows.
        expected: Vec<i64>,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Fails unless the applied migrations are exactly those that this version knows.
pub(crate) fn same_schema(found: Vec<i64>, migrations: &Migrator) -> Result<(), OpenError> {
    let expected: Vec<i64> = migrations.iter().map(|migration| migration.version).collect();
    if found == expected {
        Ok(())
    } else {
        Err(OpenError::Schema { found, expected })
    }
}

/// Lists the applied migrations.
pub(crate) const APPLIED: &str = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: Check = Check {
        code: "SOUND",
        holds: "It is sound.",
    };

    #[test]
    fn all_findings_are_counted_and_a_bounded_number_is_kept() {
        let mut findings = Findings::default();
        assert!(findings.is_empty());
        for n in 0..100 {
            findings.add(SOUND, n, "it is not");
        }
        findings.add_corrupt(&CorruptRow::new("inbox", "outcome", 7, "no message"));
        assert_eq!(findings.kept().len(), KEPT_FINDINGS + 1);
        assert_eq!(
            (findings.counts()["SOUND"], findings.counts()["ROW_CORRUPT"]),
            (100, 1)
        );
        assert_eq!(
            findings.kept().last().unwrap().to_string(),
            "ROW_CORRUPT inbox 7: column outcome: no message"
        );
    }

    #[tokio::test]
    async fn adjacent_rows_about_the_same_subject_are_grouped() {
        let rows = [(1, 'a'), (1, 'b'), (2, 'c'), (3, 'd'), (3, 'e')];
        let rows = stream::iter(rows).map(Ok).boxed();
        let groups: Vec<_> = in_groups(rows, |a, b| a.0 == b.0).collect().await;
        let sizes: Vec<usize> = groups.into_iter().map(|group| group.unwrap().len()).collect();
        assert_eq!(sizes, [2, 1, 2]);
    }

    #[test]
    fn an_unreadable_row_is_a_finding_and_an_unreachable_database_an_error() {
        let mut findings = Findings::default();
        let corrupt = StoreError::from(CorruptRow::new("inbox", "outcome", 7, "no message"));
        assert_eq!(findings.readable::<()>(Err(corrupt)).unwrap(), None);
        assert_eq!(findings.kept().len(), 1);
        let away = StoreError::from(sqlx::Error::PoolTimedOut);
        assert!(findings.readable::<()>(Err(away)).is_err());
        assert_eq!(findings.readable(Ok(1)).unwrap(), Some(1));
    }
}
