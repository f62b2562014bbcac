//! Recounts the ballots of one contest.

use std::collections::HashMap;

use emend_core::{Ballot, Candidate, CandidateId, Hold, Policy, Role, Ruling, ballots::Tally};
use emend_store::audit::Findings;
use jiff::Timestamp;

use super::{Contest, Policies, decided};
use crate::audit::{CANDIDATE_OCCURRENCES, CANDIDATE_RULING, CANDIDATE_VOTES, CONTEST_ROW};
use crate::policies::PolicyKey;

/// No policy counts more ballots of a contest.
const MAX_COUNTED: usize = 100_000;

/// A contest whose ballots are being counted.
pub(super) struct Recount<'a> {
    /// The contest's key within the database.
    pub(super) id: i64,
    pub(super) contest: &'a Contest,
    /// The newest ballots.
    ballots: Vec<Ballot>,
    occurrences: HashMap<CandidateId, u64>,
}

impl<'a> Recount<'a> {
    pub(super) fn of(id: i64, contest: &'a Contest) -> Self {
        Self {
            id,
            contest,
            ballots: Vec::new(),
            occurrences: HashMap::new(),
        }
    }

    /// Takes the next ballot; they come newest first.
    pub(super) fn take(&mut self, ballot: Ballot) {
        *self.occurrences.entry(ballot.candidate).or_default() += 1;
        if self.ballots.len() < MAX_COUNTED {
            self.ballots.push(ballot);
        }
    }

    /// Checks the contest's and the candidates' figures against the ballots.
    pub(super) fn check(self, policies: &Policies, findings: &mut Findings) {
        let newest = self.ballots.first().map(|ballot| ballot.accept_order.0);
        if let (Some(row), Some(newest)) = (&self.contest.row, newest)
            && row.highest_accept_order < newest
        {
            findings.add(
                CONTEST_ROW,
                format_args!("contest {}", self.contest.name),
                format_args!(
                    "its highest accept order is {}, but it has a ballot with {newest}",
                    row.highest_accept_order
                ),
            );
        }
        let candidates: Vec<Candidate> = self
            .contest
            .candidates
            .values()
            .map(|known| known.candidate.clone())
            .collect();
        let mut tallies: HashMap<i64, Option<(Policy, Tally)>> = HashMap::new();
        for candidate in &candidates {
            let id = format!("candidate {}", candidate.id);
            let counted = self.occurrences.get(&candidate.id).copied().unwrap_or(0);
            if candidate.occurrences != counted {
                findings.add(
                    CANDIDATE_OCCURRENCES,
                    &id,
                    format_args!(
                        "its occurrence count is {}, but there are {counted} ballots",
                        candidate.occurrences
                    ),
                );
            }
            if let Some(ruling) = &candidate.ruling {
                if let Some(policy) = self.policy(policies, candidate.policy_version) {
                    check_entitlement(candidate, ruling, policy.ruling.entitled, findings);
                }
                // A ruling is nobody's rival, and its sender may have made others.
                if (candidate.reporters, candidate.net) != (counted, 0) {
                    findings.add(
                        CANDIDATE_VOTES,
                        &id,
                        format_args!(
                            "it is a ruling with {counted} ballots, but counts {} voters and {} net confirmations",
                            candidate.reporters, candidate.net
                        ),
                    );
                }
                continue;
            }
            let tally = tallies
                .entry(candidate.policy_version)
                .or_insert_with(|| self.tally(policies, candidate.policy_version));
            let Some((policy, tally)) = tally else {
                findings.add(
                    CANDIDATE_VOTES,
                    &id,
                    format_args!(
                        "version {} of its policy does not exist",
                        candidate.policy_version
                    ),
                );
                continue;
            };
            let voters = tally.of(candidate.id).voters;
            if candidate.reporters != voters {
                findings.add(
                    CANDIDATE_VOTES,
                    &id,
                    format_args!(
                        "its voter count is {}, but its ballots give {voters}",
                        candidate.reporters
                    ),
                );
            }
            // Decayed votes were counted at a time that is not stored.
            let net = tally.standings(&candidates).net(candidate.id);
            if policy.votes.half_life.is_none() && candidate.net != net {
                findings.add(
                    CANDIDATE_VOTES,
                    &id,
                    format_args!(
                        "its net confirmations are {}, but its ballots give {net}",
                        candidate.net
                    ),
                );
            }
        }
        let version = self.contest.row.as_ref().map(|row| row.policy_version);
        if let Some(policy) = version.and_then(|version| self.policy(policies, version)) {
            decided::check(self.contest, self.ballots, candidates, &policy, findings);
        }
    }

    /// The tally by a version of the contest's policy; none if that version is missing.
    fn tally(&self, policies: &Policies, version: i64) -> Option<(Policy, Tally)> {
        let policy = self.policy(policies, version)?;
        let tally = Tally::count(&self.ballots, &policy, Timestamp::UNIX_EPOCH);
        Some((policy, tally))
    }

    fn policy(&self, policies: &Policies, version: i64) -> Option<Policy> {
        let key = self.contest.key.as_ref()?;
        if version == 0 {
            return Some(Policy::default_for(key.kind));
        }
        policies.get(&(PolicyKey::of(key), version)).cloned()
    }
}

/// Whether a ruling waits for want of the right exactly if its sender's roles did not entitle to decide. What a person wrote
/// was sent by nobody.
fn check_entitlement(candidate: &Candidate, ruling: &Ruling, entitled: Role, findings: &mut Findings) {
    let is_written = ruling.approved && candidate.occurrences == 0 && ruling.roles.names().next().is_none();
    let waits_for_it = candidate.hold == Some(Hold::NotEntitled);
    if !is_written && waits_for_it == ruling.roles.permit(entitled) {
        findings.add(
            CANDIDATE_RULING,
            format_args!("candidate {}", candidate.id),
            format_args!(
                "its sender had the roles {:?}, which {} to decide, but it says otherwise",
                ruling.roles.to_string(),
                if waits_for_it { "entitle" } else { "do not entitle" },
            ),
        );
    }
}
