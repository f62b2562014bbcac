//! What becomes of the index when the corpus has changed.

use emend_client::{Clock as _, ManualClock, Timestamp};
use search_node::{corpus::Record, index::SearchIndex, update::Counts};
use serde_json::Value;

use crate::node::{indexed, records};

/// Updates; what was counted of effects, and the audit's lines.
fn updated(index: &SearchIndex, records: &[Record], is_dry_run: bool) -> (Counts, Vec<Value>) {
    let now = ManualClock::new(Timestamp::UNIX_EPOCH).now();
    let mut audit = Vec::new();
    let summary = index.update(records, None, is_dry_run, now, &mut audit).unwrap();
    let lines = String::from_utf8(audit).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    (summary["effects"], lines.collect())
}

#[test]
fn only_what_has_changed_is_written() {
    let (_directory, index) = indexed();
    let mut records = records();
    let effects = records
        .iter()
        .filter(|record| record.namespace == "effects")
        .count();
    let unchanged = Counts {
        unchanged: effects,
        ..Counts::default()
    };
    let (counts, lines) = updated(&index, &records, false);
    assert_eq!((counts, lines.len()), (unchanged, records.len()));
    assert!(
        lines
            .iter()
            .all(|line| line["skipped_reason"] == "unchanged" && line["upserted"] == false)
    );

    assert_eq!(records[0].id, "EN-001:effect_1");
    "新しい文".clone_into(&mut records[0].text);
    let emptied = records
        .iter()
        .position(|record| record.id == "EN-002:effect_1")
        .unwrap();
    records[emptied].text = " ".to_owned();
    let removed = records
        .iter()
        .position(|record| record.id == "EN-003:effect_1")
        .unwrap();
    records.remove(removed);
    let changed = Counts {
        upserted: 1,
        unchanged: effects - 3,
        empty: 1,
        removed: 2,
        ..Counts::default()
    };
    // A dry run says the same, and leaves it to do.
    for is_dry_run in [true, true, false] {
        let (counts, lines) = updated(&index, &records, is_dry_run);
        assert_eq!(counts, changed);
        let of = |id: &str| {
            let mut of_id = lines.iter().filter(|line| line["id"] == id);
            of_id.next().unwrap().clone()
        };
        assert_eq!(
            of("EN-001:effect_1"),
            serde_json::json!({
                "id": "EN-001:effect_1",
                "namespace": "effects",
                "upserted": !is_dry_run,
                "embedded": false,
                "skipped_reason": is_dry_run.then_some("dry_run"),
                "text_len": 4,
                "ts": "1970-01-01T00:00:00Z",
            })
        );
        assert_eq!(of("EN-002:effect_1")["skipped_reason"], "empty");
        assert_eq!(of("EN-003:effect_1")["skipped_reason"], "removed");
    }
    let (counts, _) = updated(&index, &records, false);
    assert_eq!(
        counts,
        Counts {
            unchanged: effects - 2,
            empty: 1,
            ..Counts::default()
        }
    );
}
