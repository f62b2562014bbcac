//! Checks contests, range by range: rows against each other, ballots recounted, the log replayed from the start.
//!
//! The log and the ballots are read newest first, so that no more than the newest change and the newest ballots of a
//! contest are in memory.

mod decided;
mod proposals;
mod rulings;
mod tally;
mod window;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use emend_core::{
    Candidate, CandidateId, Digest, ResourceKey, ResourceValue, Revision, Rule, Status,
    decide::Cause,
    digest::{Item, value_checksum},
};
use emend_store::{
    StoreError,
    audit::{Findings, Watch, in_groups},
};
use futures::TryStreamExt as _;

use self::tally::Recount;
use super::{
    BALLOT_CANDIDATE, CANDIDATE_HISTORY, CANDIDATE_ID, CHANGE_BEFORE, CHANGE_CHECKSUM, CONTEST_MISSING,
    CONTEST_ROW, Figures, Group, LOG_DIGEST, Policies, RESOURCE_APPLIED, RESOURCE_CHECKSUM,
    RESOURCE_COMMITTED, RESOURCE_COUNT, RESOURCE_REPLAY, SUGGESTION,
};
use crate::{
    actor::Actor,
    audit::stored::{
        AuditRead, AuditedCandidate, AuditedChange, AuditedContest, AuditedResource, AuditedTransition,
        KeyRow, Range,
    },
};

/// Contests per page.
const PAGE: u32 = 500;

/// A contest with everything that has to agree with it.
#[derive(Debug, Default)]
struct Contest {
    /// What it is called in findings: its id, or its key within the database if it has no row.
    name: String,
    row: Option<AuditedContest>,
    /// None if the row can't be read.
    key: Option<ResourceKey>,
    candidates: HashMap<CandidateId, Known>,
    resource: Option<AuditedResource>,
    /// None if there is no resource, or its row can't be read.
    value: Option<ResourceValue>,
    /// The newest change in the log.
    logged: Option<Logged>,
}

/// What the newest change of a contest says.
#[derive(Debug)]
struct Logged {
    /// The key of the candidate that was applied or removed.
    candidate: Option<i64>,
    /// The number of the cause; none if its revision is missing.
    cause: Option<i32>,
}

/// A candidate and its value as stored.
#[derive(Debug)]
struct Known {
    /// Its key within the database.
    number: i64,
    candidate: Candidate,
    value: Vec<u8>,
    transitions: i64,
    /// Who changed its status last.
    decided_by: Actor,
    /// Whether its history was checked.
    has_history: bool,
}

impl Contest {
    /// Whether a window of ratings decides it.
    fn is_window(&self) -> bool {
        let rule = self.key.as_ref().map(|key| key.kind.rules().rule);
        matches!(rule, Some(Rule::Window(_)))
    }

    /// Whether a pseudonym stands in place of its user.
    fn is_erased(&self) -> bool {
        self.row.as_ref().is_some_and(AuditedContest::is_erased)
    }

    fn is_by_rulings(&self) -> bool {
        let rule = self.key.as_ref().map(|key| &key.kind.rules().rule);
        matches!(rule, Some(Rule::Ruling(_)))
    }

    /// Whether it is decided by review.
    fn is_by_review(&self) -> bool {
        let rule = self.key.as_ref().map(|key| &key.kind.rules().rule);
        matches!(rule, Some(Rule::Review(_)))
    }
}

/// By their keys within the database.
type Contests = BTreeMap<i64, Contest>;

pub(super) async fn check(
    reading: &mut dyn AuditRead,
    policies: &Policies,
    figures: &mut Figures,
    findings: &mut Findings,
    watch: &mut dyn Watch,
) -> Result<(), StoreError> {
    watch.begins("contests", figures.contests);
    let mut replayed: BTreeMap<Group, Digest> = BTreeMap::new();
    let mut after = i64::MIN;
    loop {
        let through = reading.page_end(after, PAGE).await?;
        let range = Range { after, through };
        let mut contests = load(reading, &range, figures, findings).await?;
        check_histories(reading, &range, &mut contests, figures.head, findings).await?;
        recount(reading, &range, policies, &contests, figures, findings).await?;
        rulings::check(reading, &range, policies, &contests, findings).await?;
        window::check(reading, policies, &contests, findings).await?;
        replay(reading, &range, &mut contests, &mut replayed, findings).await?;
        for contest in contests.values() {
            if !contest.is_window() {
                check_applied(contest, findings);
            }
            check_pinned(contest, findings);
            proposals::check(contest, findings);
        }
        watch.went_on(u64::try_from(contests.len()).unwrap_or(0));
        match range.through {
            Some(through) => after = through,
            None => break,
        }
    }
    replayed.retain(|_, digest| digest.count != 0);
    if replayed != figures.digests {
        for group in replayed.keys().chain(figures.digests.keys()) {
            if replayed.get(group) != figures.digests.get(group) {
                let (namespace, kind, user_scoped) = group;
                findings.add(
                    LOG_DIGEST,
                    format_args!("namespace {namespace}, kind {kind}, user-scoped: {user_scoped}"),
                    "replaying the log gives a different digest than the resources",
                );
            }
        }
    }
    window::check_ratings(reading, findings).await?;
    proposals::check_all(reading, findings).await?;
    for stray in reading.stray_transitions().await? {
        findings.add(
            CANDIDATE_HISTORY,
            format_args!("candidate number {stray}"),
            "it does not exist, but has transitions",
        );
    }
    for wrong in reading.wrong_suggestions().await? {
        findings.add(
            SUGGESTION,
            format_args!("candidate number {wrong}"),
            "it does not agree with what is kept of it as a suggestion",
        );
    }
    check_counts(reading, findings).await
}

async fn check_counts(reading: &mut dyn AuditRead, findings: &mut Findings) -> Result<(), StoreError> {
    let [counted, mut present] = reading.resource_counts().await?;
    let mut differ = |(namespace, kind): (String, i32), counted: i64, present: i64| {
        if counted != present {
            findings.add(
                RESOURCE_COUNT,
                format_args!("namespace {namespace}, kind {kind}"),
                format_args!("the stored count is {counted}, but there are {present}"),
            );
        }
    };
    for (subject, counted) in counted {
        let present = present.remove(&subject).unwrap_or(0);
        differ(subject, counted, present);
    }
    for (subject, present) in present {
        differ(subject, 0, present);
    }
    Ok(())
}

/// Loads everything but ballots, changes and transitions, of which there may be many.
async fn load(
    reading: &mut dyn AuditRead,
    range: &Range,
    figures: &mut Figures,
    findings: &mut Findings,
) -> Result<Contests, StoreError> {
    let mut contests = Contests::new();
    for row in reading.contests(range).await? {
        let key = findings.readable(row.key())?;
        let contest = contests.entry(row.contest).or_default();
        contest.name = row.id().to_string();
        contest.key = key;
        contest.row = Some(row);
    }
    for row in reading.candidates(range).await? {
        figures.candidates += 1;
        let contest = contest_of(&mut contests, row.contest(), "candidate", &row.id(), findings);
        if let Some((candidate, kept)) = findings.readable(row.parse())? {
            check_candidate(&row, &candidate, contest, findings);
            let known = Known {
                number: row.number(),
                candidate,
                value: row.value().to_vec(),
                transitions: kept.transitions,
                decided_by: kept.decided_by,
                has_history: false,
            };
            contest.candidates.insert(known.candidate.id, known);
        }
    }
    for resource in reading.resources(range).await? {
        let value = findings.readable(resource.parse())?;
        let id = resource.contest;
        let contest = contest_of(&mut contests, id, "resource of contest", &id, findings);
        check_resource(&resource, contest, findings);
        if let Some(row) = &contest.row {
            let digests = &mut figures.digests;
            digest_of(&row.parts, digests, resource.revision, resource.bytes());
        }
        contest.value = value;
        contest.resource = Some(resource);
    }
    Ok(contests)
}

fn contest_of<'a>(
    contests: &'a mut Contests,
    contest: i64,
    what: &str,
    id: &dyn fmt::Display,
    findings: &mut Findings,
) -> &'a mut Contest {
    contests.entry(contest).or_insert_with(|| {
        findings.add(
            CONTEST_MISSING,
            format_args!("{what} {id}"),
            format_args!("its contest, number {contest}, does not exist"),
        );
        Contest {
            name: format!("number {contest}"),
            ..Contest::default()
        }
    })
}

fn check_candidate(
    row: &AuditedCandidate,
    candidate: &Candidate,
    contest: &Contest,
    findings: &mut Findings,
) {
    let Some(key) = &contest.key else { return };
    let of_contest = row.namespace == key.namespace.as_str() && row.kind == key.kind.number();
    let (is_ruling, is_proposal) = (candidate.ruling.is_some(), candidate.proposal.is_some());
    let is_its_own = match key.kind.rules().rule {
        Rule::Votes { .. } => {
            candidate.value.candidate_id(key.contest_id()) == candidate.id && !is_ruling && !is_proposal
        }
        // A ruling's id is made of its feedback or its accept order, which its ballot is compared with; a proposal's of bytes that
        // are not kept. SQLite finds both by how their ids end.
        Rule::Ruling(_) => is_ruling && !is_proposal,
        Rule::Review(_) => is_proposal && !is_ruling,
        Rule::Window(_) => false,
    };
    if !is_its_own || !of_contest || !candidate.id.may_be_of(key.contest_id()) {
        findings.add(
            CANDIDATE_ID,
            format_args!("candidate {}", candidate.id),
            "its value, namespace or kind does not match its id and contest",
        );
    }
}

fn check_resource(resource: &AuditedResource, contest: &Contest, findings: &mut Findings) {
    let id = format!("resource of contest {}", contest.name);
    if value_checksum(resource.bytes()).cast_signed() != resource.value_checksum {
        findings.add(RESOURCE_CHECKSUM, &id, "its checksum does not match its value");
    }
    if resource.logged_at.is_some_and(|at| at != resource.committed_at) {
        findings.add(
            RESOURCE_COMMITTED,
            &id,
            format_args!("its commit time is not that of revision {}", resource.revision),
        );
    }
}

fn digest_of(key: &KeyRow, digests: &mut BTreeMap<Group, Digest>, revision: i64, value: &[u8]) {
    let group = (key.namespace.clone(), key.kind, !key.user_id.is_empty());
    digests.entry(group).or_default().add(&Item {
        namespace: &key.namespace,
        kind: key.kind,
        key: &key.key,
        qualifier: &key.qualifier,
        user_id: &key.user_id,
        revision,
        value_checksum: value_checksum(value),
    });
}

async fn check_histories(
    reading: &mut dyn AuditRead,
    range: &Range,
    contests: &mut Contests,
    head: Revision,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut histories = in_groups(reading.transitions(range), |one, other| {
        one.candidate == other.candidate
    });
    while let Some(history) = histories.try_next().await? {
        let known = contests.get_mut(&history[0].contest).and_then(|contest| {
            let mut known = contest.candidates.values_mut();
            known.find(|known| known.number == history[0].candidate)
        });
        if let Some(known) = known {
            known.has_history = true;
            if let Some(wrong) = wrong_with_history(known, &history, head, findings)? {
                findings.add(
                    CANDIDATE_HISTORY,
                    format_args!("candidate {}", known.candidate.id),
                    wrong,
                );
            }
        }
    }
    drop(histories);
    let known = contests.values().flat_map(|contest| contest.candidates.values());
    for known in known.filter(|known| !known.has_history) {
        findings.add(
            CANDIDATE_HISTORY,
            format_args!("candidate {}", known.candidate.id),
            "it has no transitions",
        );
    }
    Ok(())
}

fn wrong_with_history(
    known: &Known,
    history: &[AuditedTransition],
    head: Revision,
    findings: &mut Findings,
) -> Result<Option<String>, StoreError> {
    let mut stands: Option<Status> = None;
    for (sequence, transition) in (0_i64..).zip(history) {
        let Some((from, to)) = findings.readable(transition.parse())? else {
            return Ok(None);
        };
        if transition.sequence != sequence {
            return Ok(Some(format!("transition {sequence} is missing")));
        }
        if from != stands {
            return Ok(Some(format!(
                "transition {sequence} does not start from the status before it"
            )));
        }
        if !(0..=head.0).contains(&transition.revision) {
            return Ok(Some(format!(
                "transition {sequence} names revision {}, but the head is {head}",
                transition.revision
            )));
        }
        stands = Some(to);
    }
    let count = i64::try_from(history.len()).unwrap_or(i64::MAX);
    Ok(if known.transitions != count {
        Some(format!(
            "its transition count is {}, but there are {count}",
            known.transitions
        ))
    } else if stands != Some(known.candidate.status) {
        Some(format!(
            "its status is {:?}, but its last transition led to another",
            known.candidate.status
        ))
    } else if history.last().is_some_and(|last| {
        let by = &known.decided_by;
        (last.caller.as_str(), last.on_behalf_of.as_str()) != (by.caller.as_str(), by.on_behalf_of.as_str())
    }) {
        Some("who decided it last is not who made its last transition".to_owned())
    } else {
        None
    })
}

/// Recounts the ballots of each contest.
async fn recount(
    reading: &mut dyn AuditRead,
    range: &Range,
    policies: &Policies,
    contests: &Contests,
    figures: &mut Figures,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut counted: HashSet<i64> = HashSet::new();
    let mut ballots = reading.ballots(range);
    let mut current: Option<Recount<'_>> = None;
    while let Some(row) = ballots.try_next().await? {
        figures.ballots += 1;
        let Some(ballot) = findings.readable(row.parse())? else {
            continue;
        };
        if current.as_ref().is_none_or(|recount| recount.id != row.contest()) {
            if let Some(done) = current.take() {
                done.check(policies, findings);
            }
            let Some(contest) = contests.get(&row.contest()) else {
                findings.add(
                    CONTEST_MISSING,
                    format_args!("ballot of feedback {}", ballot.feedback_id),
                    format_args!("its contest, number {}, does not exist", row.contest()),
                );
                continue;
            };
            counted.insert(row.contest());
            current = Some(Recount::of(row.contest(), contest));
        }
        if let Some(recount) = &mut current {
            if !recount.contest.candidates.contains_key(&ballot.candidate) {
                findings.add(
                    BALLOT_CANDIDATE,
                    format_args!("ballot of feedback {}", ballot.feedback_id),
                    format_args!(
                        "its contest {} has no candidate {}",
                        recount.contest.name, ballot.candidate
                    ),
                );
            }
            recount.take(ballot);
        }
    }
    if let Some(done) = current {
        done.check(policies, findings);
    }
    for (id, contest) in contests {
        if !counted.contains(id) {
            Recount::of(*id, contest).check(policies, findings);
        }
        check_row(contest, findings);
    }
    Ok(())
}

fn check_row(contest: &Contest, findings: &mut Findings) {
    let id = &contest.name;
    let Some(row) = &contest.row else { return };
    let waits = |known: &Known| matches!(known.candidate.status, Status::Pending | Status::AwaitingReview);
    let pending = contest.candidates.values().any(waits) || contest.is_window();
    if (row.pending != 0) != pending {
        findings.add(
            CONTEST_ROW,
            format_args!("contest {id}"),
            format_args!(
                "whether a candidate is pending or awaits review: stored is {}, but it should be {pending}",
                row.pending != 0
            ),
        );
    }
}

/// Checks the log of each contest, newest first, against the stored state.
async fn replay(
    reading: &mut dyn AuditRead,
    range: &Range,
    contests: &mut Contests,
    replayed: &mut BTreeMap<Group, Digest>,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut changes = reading.changes(range);
    let mut newer: Option<AuditedChange> = None;
    let mut in_log: HashSet<i64> = HashSet::new();
    while let Some(change) = changes.try_next().await? {
        let id = change.contest;
        let contest = contest_of(contests, id, "change of contest", &id, findings);
        if contest.is_window() {
            let is_newest = newer.as_ref().is_none_or(|newer| newer.contest != id);
            window::check_change(contest, &change, is_newest, findings)?;
        } else if !contest.is_erased() {
            // Of an erased user's value, only the fact that it existed is left.

            findings.readable(change.parse())?;
            let value = change.value.as_deref();
            let checksum = value.map_or(0, |value| value_checksum(value).cast_signed());
            if checksum != change.value_checksum {
                findings.add(
                    CHANGE_CHECKSUM,
                    format_args!("revision {}, contest {}", change.revision, contest.name),
                    "its checksum does not match its value",
                );
            }
        }
        match newer.take() {
            Some(newer) if newer.contest == id => {
                let (before, left) = (&newer.before_value, &change.value);
                let is_same = if contest.is_window() {
                    before.is_some() == left.is_some()
                } else {
                    before == left
                };
                if !is_same {
                    changed_before(&newer, findings);
                }
            }
            other => {
                if let Some(oldest) = other {
                    check_oldest(&oldest, findings);
                }
                in_log.insert(id);
                if let (Some(value), Some(row)) = (&change.value, &contest.row) {
                    digest_of(&row.parts, replayed, change.revision, value);
                }
                check_replayed(contest, &change, findings);
                contest.logged = Some(Logged {
                    candidate: change.candidate,
                    cause: change.cause,
                });
            }
        }
        newer = Some(change);
    }
    drop(changes);
    if let Some(oldest) = newer {
        check_oldest(&oldest, findings);
    }
    for (id, contest) in contests {
        if contest.resource.is_some() && !in_log.contains(id) {
            findings.add(
                RESOURCE_REPLAY,
                format_args!("resource of contest {}", contest.name),
                "no change in the log created it",
            );
        }
    }
    Ok(())
}

fn changed_before(change: &AuditedChange, findings: &mut Findings) {
    findings.add(
        CHANGE_BEFORE,
        format_args!("revision {}, contest number {}", change.revision, change.contest),
        "its previous value is not what the preceding change left",
    );
}

fn check_oldest(change: &AuditedChange, findings: &mut Findings) {
    if change.before_value.is_some() {
        changed_before(change, findings);
    }
}

fn check_replayed(contest: &Contest, newest: &AuditedChange, findings: &mut Findings) {
    let wrong = match (&contest.resource, &newest.value) {
        (None, Some(_)) => "it should exist by the log, but does not".to_owned(),
        (Some(_), None) => format!("revision {} deleted it, but it still exists", newest.revision),
        (Some(resource), Some(_)) if resource.revision != newest.revision => format!(
            "its revision is {}, but by the log it is {}",
            resource.revision, newest.revision
        ),
        (Some(resource), Some(value)) if resource.bytes() != value.as_slice() => {
            format!("its value is not that of revision {}", newest.revision)
        }
        (None, None) | (Some(_), Some(_)) => return,
    };
    let subject = format_args!("resource of contest {}", contest.name);
    findings.add(RESOURCE_REPLAY, subject, wrong);
}

fn check_applied(contest: &Contest, findings: &mut Findings) {
    let is_applied = |known: &&Known| known.candidate.status == Status::Applied;
    let applied: Vec<&Known> = contest.candidates.values().filter(is_applied).collect();
    let wrong = match (applied.as_slice(), &contest.resource) {
        ([], None) => return,
        // A ruling in force may say that nothing applies, or take a part of its value from those before it: evaluating the
        // contest again compares the values.
        ([known], _) if known.candidate.ruling.is_some() => return,
        ([], Some(_)) => "it has a resource, but no applied candidate".to_owned(),
        ([known], None) => format!(
            "candidate {} is applied, but there is no resource",
            known.candidate.id
        ),
        ([known], Some(resource)) => {
            let candidate = &known.candidate;
            if known.value != resource.bytes() {
                format!(
                    "the resource does not have the value of the applied candidate {}",
                    candidate.id
                )
            } else if candidate.applied_revision.0 != resource.revision {
                format!(
                    "candidate {} was applied by revision {}, but the resource is of revision {}",
                    candidate.id, candidate.applied_revision, resource.revision
                )
            } else if contest
                .logged
                .as_ref()
                .is_some_and(|logged| logged.candidate != Some(known.number))
            {
                format!(
                    "revision {} applied a candidate other than {}",
                    resource.revision, candidate.id
                )
            } else {
                return;
            }
        }
        (several, _) => format!("{} candidates are applied", several.len()),
    };
    findings.add(RESOURCE_APPLIED, format_args!("contest {}", contest.name), wrong);
}

/// Why the resource changed last.
fn logged_cause(contest: &Contest) -> Option<i32> {
    contest.logged.as_ref()?.cause
}

/// What a person set must be pinned, and so must be what a revert left empty; what votes set must not.
fn check_pinned(contest: &Contest, findings: &mut Findings) {
    let id = &contest.name;
    let Some(row) = &contest.row else { return };
    let mut candidates = contest.candidates.values().map(|known| &known.candidate);
    let by_a_person = match candidates.find(|candidate| candidate.status == Status::Applied) {
        // Nothing else decides there.
        _ if contest.is_by_review() => false,
        Some(applied) => applied.ruling.is_none() && applied.applied_threshold.is_none(),
        // What was before the decision that was undone is not known here.
        None if logged_cause(contest) == Some(Cause::Undo.number()) => row.pinned != 0,
        // Rulings pin nothing.
        None if contest.is_by_rulings() => false,
        None => logged_cause(contest) == Some(Cause::Revert.number()),
    };
    if (row.pinned != 0) != by_a_person {
        findings.add(
            CONTEST_ROW,
            format_args!("contest {id}"),
            format_args!(
                "whether a person set the value: stored is {}, but it should be {by_a_person}",
                row.pinned != 0
            ),
        );
    }
}
