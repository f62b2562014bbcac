//! The versions of a prompt: what each is, which are current, and making one current again.

use std::collections::HashMap;

use emend_base::Error;
use emend_core::{
    Candidate, CandidateId, Event, Learned, Namespace, ResourceKey, ResourceValue, Revision,
    candidate::Verdict,
};
use learning_store::{
    actor::Actor,
    contests::{CandidateRecord, Named},
    outputs::improvements::{ImprovementRecord, OutputStore, VersionRecord},
};

use crate::{
    decisions::{numbering::RevisionChoice, open::Attribution},
    failure::{Failure, refused},
    outputs::Outputs,
};

/// A generated prompt with what it is shown beside.
#[derive(Debug, Clone)]
pub struct Improvement {
    /// What is kept of it.
    pub record: ImprovementRecord,
    /// The label under which it would be current.
    pub label: String,
    /// The text of the version that it was made for.
    pub previous_text: String,
    /// Its text.
    pub text: String,
}

/// Which version to make current, and why.
#[derive(Debug, Clone)]
pub struct UseVersion {
    /// The prompt, under its label.
    pub key: ResourceKey,
    /// The version.
    pub version: u32,
    /// The reason given.
    pub reason: Option<String>,
    /// Who wants it.
    pub actor: Actor,
}

/// A page of versions that were generated from ratings redacted since.
#[derive(Debug)]
pub struct RedactedVersions {
    /// Each with how many of the ratings were redacted, that which was made last first.
    pub versions: Vec<(VersionRecord, u64)>,
    /// The place of each in the list.
    pub places: Vec<i64>,
    /// Whether there are more.
    pub more: bool,
}

impl Outputs {
    /// What is kept of a candidate as a generated prompt; none of others.
    pub async fn improvement(&self, generated: &CandidateRecord) -> Result<Option<Improvement>, Error> {
        let (Some(kept), Learned::Prompt(prompt)) =
            (generated.candidate.proposal, &generated.candidate.value.learned)
        else {
            return Ok(None);
        };
        let outputs = self.stored();
        let found = outputs
            .improvements(&[generated.candidate.id])
            .await?
            .remove(&generated.candidate.id);
        let Some(record) = found else { return Ok(None) };
        let previous = outputs
            .version_value(generated.key.contest_id(), kept.base)
            .await?;
        Ok(Some(Improvement {
            record,
            label: generated.key.qualifier.clone(),
            previous_text: previous.as_ref().map(text_of).unwrap_or_default(),
            text: prompt.text().to_owned(),
        }))
    }

    /// How many redacted ratings each of these candidates, or what it was edited from, was generated from, by its id; those of
    /// which none was are left out.
    pub async fn redactions(&self, records: &[CandidateRecord]) -> Result<HashMap<CandidateId, u64>, Error> {
        let prompts = records.iter().map(|record| &record.candidate);
        let prompts = prompts.filter(|candidate| matches!(candidate.value.learned, Learned::Prompt(_)));
        let redacted = redactions(self.stored(), prompts.clone()).await?;
        let counted = prompts.map(|candidate| candidate.id).zip(redacted);
        Ok(counted.filter(|(_, redacted)| *redacted > 0).collect())
    }

    /// A page of the versions of a target, the greatest number first; how many of the ratings that each was made of have been
    /// redacted; and whether there are more.
    pub async fn prompt_versions(
        &self,
        target: &ResourceKey,
        before: Option<u32>,
        limit: u32,
    ) -> Result<(Vec<(VersionRecord, u64)>, bool), Error> {
        let outputs = self.stored();
        let mut versions = outputs.versions(target, before, limit + 1).await?;
        let more = versions.len() > limit as usize;
        versions.truncate(limit as usize);
        Ok((with_redactions(outputs, versions).await?, more))
    }

    /// A page of the versions in a namespace, of one target if one is given, that were generated from ratings redacted since, or
    /// edited from such; after a place in this list.
    pub async fn redacted_versions(
        &self,
        namespace: &Namespace,
        target: Option<&ResourceKey>,
        after: Option<i64>,
        limit: u32,
    ) -> Result<RedactedVersions, Error> {
        let outputs = self.stored();
        let mut found = outputs
            .redacted_versions(namespace, target, after, limit + 1)
            .await?;
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let (places, versions) = found.into_iter().unzip();
        Ok(RedactedVersions {
            versions: with_redactions(outputs, versions).await?,
            places,
            more,
        })
    }

    /// Makes a version current that was approved before. Returns the version as it is now, and the revision written.
    pub async fn use_version(&self, wanted: &UseVersion) -> Result<(VersionRecord, u64, Revision), Error> {
        let revision = self.decisions.retry(|| self.try_use_version(wanted)).await?;
        self.decisions.publish(revision).await;
        let before = Some(wanted.version.saturating_add(1));
        let (mut versions, _) = self.prompt_versions(&wanted.key, before, 1).await?;
        let (version, redacted) = versions.pop().ok_or_else(|| unknown(wanted))?;
        Ok((version, redacted, revision))
    }

    async fn try_use_version(&self, wanted: &UseVersion) -> Result<Revision, Failure> {
        let UseVersion {
            key,
            version,
            reason,
            actor,
        } = wanted;
        let contest = key.contest_id();
        let mut tx = self.database.begin_whole().await?;
        let mut unit = self.decisions.open(&mut *tx, [key.clone()]).await?;
        let found = tx.improvements().version(key, *version).await?;
        let candidate = found.ok_or_else(|| unknown(wanted))?.candidate;
        let is_approved = candidate
            .proposal
            .is_some_and(|kept| kept.verdict == Verdict::Approved);
        if !is_approved {
            return Err(refused(&emend_core::Refusal::NotApproved, &candidate.id.to_string()).into());
        }
        unit.read_named(&mut *tx, contest, Named::Version(*version))
            .await?;
        let event = Event::MakeCurrent {
            version: *version,
            value: candidate.value,
            reason: reason.clone(),
        };
        let attribution = Attribution::by(actor.clone(), reason.clone().unwrap_or_default());
        let made = unit
            .decide(contest, &event, &attribution, RevisionChoice::Own)
            .map_err(|refusal| refused(&refusal, &candidate.id.to_string()))?;
        let written = self.decisions.commit(tx, &mut unit).await?;
        Ok(written.revisions.of(made.revision))
    }
}

/// Versions, each with how many redacted ratings it, or what it was edited from, was generated from.
async fn with_redactions(
    outputs: &dyn OutputStore,
    versions: Vec<VersionRecord>,
) -> Result<Vec<(VersionRecord, u64)>, Error> {
    let candidates = versions.iter().map(|version| &version.record.candidate);
    let redacted = redactions(outputs, candidates).await?;
    Ok(versions.into_iter().zip(redacted).collect())
}

/// How many redacted ratings each of these, or what it was edited from, was generated from.
async fn redactions<'c>(
    outputs: &dyn OutputStore,
    candidates: impl Iterator<Item = &'c Candidate> + Clone,
) -> Result<Vec<u64>, Error> {
    let origins = |candidate: &Candidate| [Some(candidate.id), candidate.edited_from].into_iter().flatten();
    let ids: Vec<CandidateId> = candidates.clone().flat_map(origins).collect();
    let improvements = outputs.improvements(&ids).await?;
    let counted = candidates.map(|candidate| {
        let known = origins(candidate).filter_map(|id| improvements.get(&id));
        known.map(|improvement| improvement.redacted).sum()
    });
    Ok(counted.collect())
}

fn unknown(wanted: &UseVersion) -> Error {
    Error::not_found("prompt version", format!("{}/{}", wanted.key.key, wanted.version))
}

fn text_of(value: &ResourceValue) -> String {
    match &value.learned {
        Learned::Prompt(prompt) => prompt.text().to_owned(),
        _ => String::new(),
    }
}
