//! A writer that imports the same glossary again and again, with other values, in more rows than one revision takes: by
//! turns all or nothing, and skipping a row that is bad.

use emend_proto::learning::v1::{ImportAs, ImportHeader, ImportMode, ImportResourcesResponse, ImportRow};

use super::{
    Writer,
    record::Record,
    retry::{Clients, Ended, Tries},
};
use crate::harness::{Learning, alias};

/// Where imports go.
const NAMESPACE: &str = "glossary";
/// An import of so many rows takes a while on a busy machine.
pub(super) const CALL: std::time::Duration = std::time::Duration::from_secs(30);
/// How many values each term takes in turn.
const VALUES: i64 = 4;
/// A revision takes 1,000.
const ROWS: i64 = 1_100;

/// Works until it is told to stop.
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
            let revisions = (response.first_revision, response.last_revision);
            writer.record.imports.push(revisions);
        }
        writer.acknowledged();
    }
    writer.record
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
            correction: Some(alias(
                &format!("{} term {line}", writer.name),
                // In turn: a contest in which something new was proposed each time would take longer from time to time.
                &format!("entity-{}", n % VALUES),
            )),
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
        Ended::Refused(refusal, _) => panic!("{}: an import was refused: {refusal}", writer.name),
    }
}
