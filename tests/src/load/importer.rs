//! A writer that imports the same glossary repeatedly, with changing values, in more rows than fit in one revision:
//! alternately all-or-nothing and skipping one bad row.

use emend_proto::learning::v1::{ImportAs, ImportHeader, ImportMode, ImportResourcesResponse, ImportRow};

use super::{
    Writer,
    record::{Import, Record},
    retry::{Clients, Ended, Tries},
};
use crate::harness::{Learning, alias};

/// The namespace of imports.
const NAMESPACE: &str = "glossary";
/// The timeout of an import: this many rows take a while on a busy machine.
pub(super) const CALL: std::time::Duration = std::time::Duration::from_secs(30);
/// The number of values that each term rotates through.
const VALUES: i64 = 4;
/// More than fit in one revision, which takes 1,000.
const ROWS: i64 = 1_100;

/// Imports until it is stopped.
pub(super) async fn work(mut writer: Writer, mut clients: Clients<Learning>) -> Record {
    let mut n = 0;
    while writer.goes_on().await {
        n += 1;
        let skipping = n % 2 == 0;
        let (response, tries) = import(&mut writer, &mut clients, n, skipping).await;
        assert_eq!(response.rejected_count, i64::from(skipping), "{response:?}");
        if tries == Tries::One {
            assert_eq!(
                response.applied_count, ROWS,
                "every row has another value: {response:?}"
            );
        }
        if response.last_revision > 0 {
            writer.record.imports.push(Import {
                namespace: NAMESPACE.into(),
                keys: (1..=ROWS).map(|line| term(&writer, line)).collect(),
                value: value(n),
                first: response.first_revision,
                last: response.last_revision,
                applied: response.applied_count,
            });
        }
        writer.acknowledged();
    }
    writer.record
}

/// A term of the writer's glossary, normalised.
fn term(writer: &Writer, line: i64) -> String {
    format!("{} term {line}", writer.name)
}

/// Values rotate: a contest that got a new candidate each time would grow slower with time.
fn value(n: i64) -> String {
    format!("entity-{}", n % VALUES)
}

async fn import(
    writer: &mut Writer,
    clients: &mut Clients<Learning>,
    n: i64,
    skipping: bool,
) -> (ImportResourcesResponse, Tries) {
    let mode = if skipping {
        ImportMode::SkipInvalid
    } else {
        ImportMode::AllOrNothing
    };
    let header = ImportHeader {
        namespace: NAMESPACE.into(),
        mode: mode.into(),
        import_as: ImportAs::Decision.into(),
        reason: "the glossary".into(),
        ..ImportHeader::default()
    };
    let mut rows: Vec<ImportRow> = (1..=ROWS)
        .map(|line| ImportRow {
            line,
            correction: Some(alias(&term(writer, line), &value(n))),
            user_id: String::new(),
        })
        .collect();
    if skipping {
        rows.push(ImportRow {
            line: ROWS + 1,
            correction: None,
            user_id: String::new(),
        });
    }
    let call = |client: Learning| {
        let (header, rows) = (header.clone(), rows.clone());
        async move { client.import(header, rows).await }
    };
    match clients.until_answered(writer, "an import", call).await {
        Ended::Acknowledged(response, tries) => (response, tries),
        Ended::Refused(refusal) => panic!("{}: an import was refused: {refusal}", writer.name),
    }
}
