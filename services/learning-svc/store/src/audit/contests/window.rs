//! Whether what ratings decide is what they come to, and whether the log keeps of it no more than the newest value.

use emend_core::{OutputTally, Policy, Rated, Rule, digest::value_checksum};
use emend_store::{StoreError, audit::Findings};

use super::{Contest, Contests};
use crate::audit::{
    CHANGE_CHECKSUM, CONTEST_MISSING, LOG_WINDOW, Policies, RATED_OUTPUT, RATING_LIVE, RATING_TEXTS,
    RESOURCE_WINDOW,
};
use crate::{
    audit::stored::{AuditRead, AuditedChange},
    policies::PolicyKey,
    rows::StoredId,
};

/// Compares each resource with what the newest outputs of its contest come to.
pub(super) async fn check(
    reading: &mut dyn AuditRead,
    policies: &Policies,
    contests: &Contests,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    for (&number, contest) in contests {
        let (Some(row), Some(key)) = (&contest.row, &contest.key) else {
            continue;
        };
        let Rule::Window(rules) = key.kind.rules().rule else {
            continue;
        };
        let policy = match row.policy_version {
            0 => Some(Policy::default_for(key.kind)),
            version => policies.get(&(PolicyKey::of(key), version)).cloned(),
        };
        // While it is frozen, what is shown depends on when that began.
        let Some(policy) = policy.filter(|policy| !policy.frozen) else {
            continue;
        };
        let (outputs, ratings) = reading
            .shown_outputs(number, key.contest_id(), &policy.window)
            .await?;
        let mut live: (Vec<OutputTally>, Vec<Rated>) = (Vec::new(), Vec::new());
        for output in outputs {
            live.0.extend(findings.readable(output)?);
        }
        for rated in ratings {
            live.1.extend(findings.readable(rated)?);
        }
        let due = policy.window_value(&rules, &live.0, &live.1);
        let shown = contest.value.as_ref().map(|value| &value.learned);
        // Where there is nothing yet, there may have been no room for it.
        let is_unreadable = contest.resource.is_some() && shown.is_none();
        if due.as_ref() != shown && contest.resource.is_some() && !is_unreadable {
            findings.add(
                RESOURCE_WINDOW,
                format_args!("resource of contest {}", contest.name),
                "it is not what its live ratings come to",
            );
        }
    }
    Ok(())
}

/// Checks ratings against each other, their texts and their contests, and outputs against their ratings.
pub(super) async fn check_ratings(
    reading: &mut dyn AuditRead,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    const MISSING: &str = "its contest does not exist";
    for wrong in reading.wrong_ratings().await? {
        let id = StoredId(&wrong.id);
        let rating = format!("rating of feedback {id}");
        let output = format!("rated output {id}");
        match wrong.what {
            1 => findings.add(
                RATING_LIVE,
                &rating,
                "whether it is live is not what the others of its voter and output say",
            ),
            2 => findings.add(
                RATING_TEXTS,
                &rating,
                "it has texts and is excluded, or counts and has none, or there are only texts",
            ),
            4 => findings.add(RATED_OUTPUT, &output, "it is not what its live ratings come to"),
            5 => findings.add(CONTEST_MISSING, &output, MISSING),
            _ => findings.add(CONTEST_MISSING, &rating, MISSING),
        }
    }
    Ok(())
}

/// Checks one change of a contest in the log.
pub(super) fn check_change(
    contest: &Contest,
    change: &AuditedChange,
    is_newest: bool,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let id = format!("revision {}, contest {}", change.revision, contest.name);
    let is_dropped = change.value.as_ref().is_some_and(Vec::is_empty);
    let keeps_before = change
        .before_value
        .as_ref()
        .is_some_and(|before| !before.is_empty());
    if is_newest && !is_dropped {
        findings.readable(change.parse_value())?;
        let checksum = change
            .value
            .as_deref()
            .map_or(0, |value| value_checksum(value).cast_signed());
        if checksum != change.value_checksum {
            findings.add(CHANGE_CHECKSUM, &id, "its checksum does not match its value");
        }
    }
    if is_newest && is_dropped {
        findings.add(LOG_WINDOW, &id, "it is the newest, but its value is not kept");
    } else if keeps_before || !is_newest && change.value.is_some() && !is_dropped {
        findings.add(LOG_WINDOW, &id, "it has a value that is not to be kept");
    }
    Ok(())
}
