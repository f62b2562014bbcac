//! Every check of the audit, made to fail.

use std::collections::BTreeSet;

use emend_audit::audit;
use emend_store::audit::IgnoreProgress;
use emend_tests::{
    faults::runs::is_long,
    harness::{
        System,
        system::Service::{self, Feedback},
        tamper::{Copy, Frozen},
    },
};

use super::a_bit_of_everything;

/// The oldest feedback.
macro_rules! oldest {
    () => {
        "(SELECT min(accept_order) FROM feedback)"
    };
}

/// Feedback whose ballot counts.
macro_rules! counting {
    () => {
        "(SELECT feedback_id FROM ballots WHERE retracted = 0 ORDER BY feedback_id LIMIT 1)"
    };
}

mod contests;
mod delivery;
mod evidence;
mod feedback;
mod log;
mod searches;

/// All cases that both databases understand.
const CASES: [&[Case]; 6] = [
    feedback::CASES,
    searches::CASES,
    log::CASES,
    contests::CASES,
    evidence::CASES,
    delivery::CASES,
];

/// What takes SQL of one database.
const SQLITE_CASES: &[Case] = &[("ACCEPT_ORDER", Feedback, "UPDATE accept_order SET last = 1")];
const POSTGRES_CASES: &[Case] = &[("ACCEPT_ORDER", Feedback, "SELECT setval('accept_order', 1)")];

async fn codes_found(copy: &Copy) -> BTreeSet<&'static str> {
    let report = audit(copy.databases(), &mut IgnoreProgress, &mut |_| {})
        .await
        .unwrap();
    report.findings.counts().keys().copied().collect()
}

/// The code of the check that must notice, and what is done. Other checks may notice too.
type Case = (&'static str, Service, &'static str);

/// All cases, or only the first of each code, because copies of a PostgreSQL database take a while. `EMEND_TEST_LONG=1`
/// asks for all.
fn cases(own: &[Case], all: bool) -> Vec<Case> {
    let mut codes = BTreeSet::new();
    let cases = CASES.into_iter().flatten().chain(own).copied();
    cases.filter(|(code, ..)| codes.insert(*code) || all).collect()
}

async fn every_check_notices(frozen: &Frozen, cases: &[Case]) {
    let sound = frozen.copy().await;
    let report = audit(sound.databases(), &mut IgnoreProgress, &mut |_| {})
        .await
        .unwrap();
    assert_eq!(report.findings.kept(), [], "nobody tampered with it");
    assert_eq!(
        (report.feedback, report.undelivered),
        (35, 1),
        "it looked at everything"
    );
    assert!(report.learning.digests.len() > 3, "{:?}", report.learning);
    sound.close().await;

    let mut noticed: BTreeSet<&str> = BTreeSet::new();
    let mut missed = Vec::new();
    for (code, service, sql) in cases {
        let copy = frozen.copy().await;
        copy.tamper(*service, sql).await;
        let found = codes_found(&copy).await;
        if !found.contains(code) {
            missed.push(format!("{code} did not notice {sql:?}; noticed: {found:?}"));
        }
        noticed.insert(code);
        copy.close().await;
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    let never: Vec<&str> = emend_audit::checks()
        .map(|check| check.code)
        .filter(|code| !noticed.contains(code))
        .collect();
    assert_eq!(never, [""; 0], "these checks were never seen to fail");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_reports_its_violation_on_sqlite() {
    let frozen = Box::pin(a_bit_of_everything(System::sqlite().await)).await;
    every_check_notices(&frozen, &cases(SQLITE_CASES, true)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_reports_its_violation_on_postgresql() {
    if let Some(system) = System::postgres(1, 1).await {
        let frozen = Box::pin(a_bit_of_everything(system)).await;
        every_check_notices(&frozen, &cases(POSTGRES_CASES, is_long())).await;
    }
}
