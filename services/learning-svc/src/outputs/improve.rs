//! Generating a better prompt, in three steps: what it is made of is read and noted in one transaction, then it is generated
//! outside of any, and proposed in another.
//!
//! Of a target one is generated at a time over all replicas, and while one awaits review no other: the contest that counts the
//! versions of the target is locked for both transactions, and between them a lease says that somebody is at work. Whoever
//! dies leaves only that lease; once it has expired, the next caller begins anew. A caller that no longer waits changes nothing:
//! what was begun is a task of the process, which proposes it, or gives it up when the process ends. Ratings go on being taken
//! in meanwhile: their contest is not locked.

use std::time::Duration;

use emend_base::{Error, error::PreconditionViolation};
use emend_core::{
    Event, FeedbackId, Kind, Learned, Prompt, RatingClass, ResourceKey, ResourceValue, Violations,
    kinds::PRODUCTION,
    outputs::{Improved, Material, RatedOutput, Unimproved},
};
use learning_store::{
    actor::Actor,
    contests::CandidateRecord,
    outputs::improvements::{Arrival, Begun, Counts, Finished, Lease, Progress},
    policies::PolicyKey,
};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use crate::{
    decisions::{
        numbering::RevisionChoice,
        open::{Attribution, OpenContests},
    },
    failure::{Failure, refused, subject, value_too_large},
    generator::GeneratorError,
    outputs::{Outputs, metrics::Generation},
};

/// How much longer others leave an improvement alone that somebody began than its generator may take, so that it is not taken over
/// while it is proposed.
const LEASE_MARGIN: Duration = Duration::from_secs(20);
/// Of each class, how many of the newest ratings an improvement is made of.
const MATERIAL: [(RatingClass, u32); 3] = [
    (RatingClass::Bad, 20),
    (RatingClass::Good, 5),
    (RatingClass::Neutral, 5),
];

/// The prompt of a target under a label.
pub(crate) fn prompt_key(namespace: &str, target: &str, label: &str) -> Result<ResourceKey, Violations> {
    ResourceKey::parse(namespace, Some(Kind::Prompt), target, label, "").map_err(|violations| {
        // The request has names of its own for the parts of the key.
        let mut renamed = Violations::new();
        for violation in violations.into_vec() {
            let field = match violation.field.as_str() {
                "key" => "target".to_owned(),
                "qualifier" => "label".to_owned(),
                _ => violation.field,
            };
            renamed.add(field, violation.description);
        }
        renamed
    })
}

/// The key whose contest counts the versions of a prompt's target.
pub(crate) fn counting(prompt: &ResourceKey) -> ResourceKey {
    prompt.numbered_with().unwrap_or_else(|| prompt.clone())
}

/// The key of the ratings of a prompt's target.
pub(crate) fn window_of(prompt: &ResourceKey) -> ResourceKey {
    ResourceKey {
        namespace: prompt.namespace.clone(),
        kind: Kind::FewShotSet,
        key: prompt.key.clone(),
        qualifier: String::new(),
        user: None,
    }
}

/// Why no improvement can be generated now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// No version is current.
    NoPrompt,
    /// One awaits review (its candidate), or is being generated.
    Open(Option<emend_core::CandidateId>),
    /// Bad ratings are missing.
    TooFew(u64),
}

impl Hindrance {
    /// What hinders it, if anything does.
    pub(crate) fn of(has_prompt: bool, progress: &Progress, missing: u64) -> Option<Self> {
        if !has_prompt {
            Some(Self::NoPrompt)
        } else if progress.open().is_some() || progress.is_running {
            Some(Self::Open(progress.open()))
        } else if missing > 0 {
            Some(Self::TooFew(missing))
        } else {
            None
        }
    }

    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::NoPrompt => "NO_PROMPT",
            Self::Open(_) => "IMPROVEMENT_OPEN",
            Self::TooFew(_) => "TOO_FEW_RATINGS",
        }
    }

    fn error(&self, key: &ResourceKey) -> Error {
        let message = match self {
            Self::NoPrompt => format!(
                "{} has no prompt that is current under the label {}",
                key.key, key.qualifier
            ),
            Self::Open(Some(candidate)) => {
                format!(
                    "an improvement of {} awaits review: candidate {candidate}",
                    key.key
                )
            }
            Self::Open(None) => format!("an improvement of {} is being generated", key.key),
            Self::TooFew(1) => format!("an improvement of {} needs 1 more bad rating", key.key),
            Self::TooFew(missing) => {
                format!("an improvement of {} needs {missing} more bad ratings", key.key)
            }
        };
        let about = match self {
            Self::Open(Some(candidate)) => candidate.to_string(),
            _ => subject(key),
        };
        precondition(self.reason(), message, about)
    }
}

/// An improvement under way.
struct Started {
    lease: Lease,
    /// The version that it is made for.
    base: u32,
    material: Material,
    counts: Counts,
    newest_rating: Arrival,
}

impl Outputs {
    /// Generates an improvement of the prompt with this key, which then awaits review. If this is dropped, it is generated all
    /// the same.
    pub async fn generate_improvement(
        &self,
        key: &ResourceKey,
        actor: &Actor,
    ) -> Result<CandidateRecord, Error> {
        let (outputs, key, actor) = (self.clone(), key.clone(), actor.clone());
        let (answer, answered) = oneshot::channel();
        self.lifecycle.spawn("generate an improvement", async move {
            // Nobody hears it if the caller no longer waits.
            let _ = answer.send(outputs.begin_and_propose(&key, &actor).await);
        });
        answered.await.unwrap_or_else(|_| {
            Err(Error::Unavailable {
                reason: "SHUTTING_DOWN",
                message: "this replica shuts down".to_owned(),
                retry_after: None,
            })
        })
    }

    async fn begin_and_propose(&self, key: &ResourceKey, actor: &Actor) -> Result<CandidateRecord, Error> {
        let started = self.decisions.retry(|| self.begin_improvement(key)).await?;
        let proposed = match self.generated(key, &started).await {
            Ok((improved, version)) => self
                .decisions
                .retry(|| self.propose_improvement(key, actor, &started, &improved, &version))
                .await
                .map_err(Error::from)
                .inspect_err(|error| {
                    self.generations.ended(match error {
                        Error::Aborted { .. } => Generation::Overtaken,
                        _ => Generation::Failed,
                    });
                }),
            Err(error) => Err(error),
        };
        match proposed {
            Ok(candidate) => {
                self.generations.ended(Generation::Proposed);
                Ok(candidate)
            }
            Err(error) => {
                if let Err(left) = self.give_up(started.lease).await {
                    tracing::warn!(error = %left, "can't give up an improvement; its lease expires by itself");
                }
                Err(error)
            }
        }
    }

    /// Reads what the improvement is made of, and notes that it is being generated.
    async fn begin_improvement(&self, key: &ResourceKey) -> Result<Started, Failure> {
        let (target, window) = (counting(key), window_of(key).contest_id());
        let mut tx = self.database.begin_whole().await?;
        let unit = self.decisions.open(&mut *tx, [key.clone()]).await?;
        let language = tx
            .policies()
            .stored(&PolicyKey::of(&window_of(key)))
            .await?
            .policy
            .window
            .language;
        let min_bad = u64::from(unit.policy(key).review.min_bad);
        let progress = tx.improvements().progress(target.contest_id()).await?;
        let prompt = current(&unit, key);
        let version = tx.improvements().current_version(key.contest_id()).await?;
        let missing = match version {
            Some(version) => {
                let counted = tx.improvements().count_for(window, version).await?;
                min_bad.saturating_sub(counted.bad)
            }
            None => min_bad,
        };
        if let Some(hindrance) = Hindrance::of(prompt.is_some(), &progress, missing) {
            return Err(hindrance.error(key).into());
        }
        let (Some((prompt, base)), Some(version)) = (prompt, version) else {
            return Err(Hindrance::NoPrompt.error(key).into());
        };
        let rated = tx.improvements().newest_for(window, version, &MATERIAL).await?;
        let lease = Lease {
            improvement: self.decisions.entropy.uuid_v7(self.decisions.clock.now()),
            token: self.decisions.entropy.uuid_v4(),
        };
        let begun = Begun {
            lease,
            target: target.contest_id(),
            contest: key.contest_id(),
            base,
            generator: self.generator.name().to_owned(),
        };
        let lasts = self.generator.patience() + LEASE_MARGIN;
        tx.improvements().begin(&begun, lasts).await?;
        tx.commit().await?;
        let mut counts = Counts::default();
        for (_, rating) in &rated {
            counts.add(rating.class, 1);
        }
        let newest_rating = rated.iter().map(|(arrival, _)| *arrival).max();
        let ratings = rated.into_iter().map(|(_, rated)| RatedOutput {
            feedback: rated.feedback,
            class: rated.class,
            texts: rated.texts,
        });
        Ok(Started {
            lease,
            base,
            counts,
            newest_rating: newest_rating.unwrap_or_default(),
            material: Material {
                target: key.key.to_string(),
                prompt,
                language,
                ratings: ratings.collect(),
            },
        })
    }

    /// Generates it, and checks what comes back.
    async fn generated(&self, key: &ResourceKey, started: &Started) -> Result<(Improved, Prompt), Error> {
        let began = Instant::now();
        let patience = self.generator.patience();
        let improved = tokio::select! {
            biased;
            improved = timeout(patience, self.generator.improve(&started.material)) => {
                improved.unwrap_or_else(|_| {
                    let patience = patience.as_secs();
                    Err(GeneratorError::Unavailable(format!("it did not answer within {patience} seconds")))
                })
            }
            () = self.lifecycle.soft().cancelled() => {
                Err(GeneratorError::Unavailable("this replica shuts down and does not wait for it".to_owned()))
            }
        };
        self.generations.took(began.elapsed());
        let checked = improved.and_then(|improved| {
            let version = improved
                .version_of(&started.material.prompt)
                .map_err(|violations| GeneratorError::BadAnswer(violations.to_string()))?;
            Ok((improved, version))
        });
        checked.map_err(|error| {
            let outcome = match &error {
                GeneratorError::Unimproved(why) => {
                    self.generations.ended(Generation::Unimproved);
                    return unimproved(*why, key);
                }
                GeneratorError::Unavailable(_) | GeneratorError::Refused(_) => Generation::Unavailable,
                GeneratorError::BadAnswer(_) => Generation::BadAnswer,
            };
            self.generations.ended(outcome);
            error.logged(&*self.generator, "improvement")
        })
    }

    /// Proposes it, if what it was made for is still current and nobody else took it over.
    async fn propose_improvement(
        &self,
        key: &ResourceKey,
        actor: &Actor,
        started: &Started,
        improved: &Improved,
        version: &Prompt,
    ) -> Result<CandidateRecord, Failure> {
        let contest = key.contest_id();
        let mut tx = self.database.begin_whole().await?;
        let mut unit = self.decisions.open(&mut *tx, [key.clone()]).await?;
        if current(&unit, key).is_none_or(|(_, base)| base != started.base) {
            return Err(overtaken("another version of the prompt became current meanwhile").into());
        }
        let feedback: Vec<FeedbackId> = started
            .material
            .ratings
            .iter()
            .map(|rating| rating.feedback)
            .collect();
        // What was taken back or erased while it was generated must not come back in a prompt.
        let known = tx.ratings().known(&feedback).await?;
        if known.values().any(|known| known.rated.excluded) {
            return Err(
                overtaken("a rating that it was made of was taken back or redacted meanwhile").into(),
            );
        }
        let value = ResourceValue::of(Learned::Prompt(version.clone()));
        unit.check_size(key, &value).map_err(value_too_large)?;
        let event = Event::Proposed {
            proposal: started.lease.improvement.as_bytes().to_vec(),
            value,
        };
        let attribution = Attribution::by(actor.clone(), "");
        let made = unit
            .decide(contest, &event, &attribution, RevisionChoice::Own)
            .map_err(|refusal| refused(&refusal, &subject(key)))?;
        let candidate = made
            .subject
            .ok_or_else(|| Error::internal("a proposal has no candidate"))?;
        let finished = Finished {
            candidate,
            reason: improved.reason.clone(),
            counts: started.counts,
            newest_rating: started.newest_rating,
            feedback,
        };
        if !tx.improvements().finish(started.lease, &finished).await? {
            return Err(overtaken("it took so long that another improvement was begun").into());
        }
        self.decisions.commit(tx, &mut unit).await?;
        unit.record(contest, candidate).ok_or_else(|| {
            Error::internal(format!("candidate {candidate} was proposed, but does not exist")).into()
        })
    }

    async fn give_up(&self, lease: Lease) -> Result<(), Failure> {
        self.decisions
            .retry(|| async {
                let mut tx = self.database.begin_whole().await?;
                tx.improvements().give_up(lease).await?;
                Ok(tx.commit().await?)
            })
            .await
    }
}

/// The version that is current, and its number.
fn current(unit: &OpenContests, key: &ResourceKey) -> Option<(Prompt, u32)> {
    let state = unit.state(key.contest_id())?;
    match &state.resource.as_ref()?.value.learned {
        Learned::Prompt(prompt) => Some((prompt.clone(), state.versions.current)),
        _ => None,
    }
}

/// The reasons for which the same ratings will never make a better prompt.
pub(super) const UNIMPROVED: [&str; 2] = ["NOTHING_SAID", "PROMPT_FULL"];

fn unimproved(why: Unimproved, key: &ResourceKey) -> Error {
    let [nothing_said, prompt_full] = UNIMPROVED;
    precondition(
        match why {
            Unimproved::NothingSaid => nothing_said,
            Unimproved::NoRoom => prompt_full,
        },
        format!("{} can't be improved: {why}", key.key),
        subject(key),
    )
}

fn precondition(reason: &'static str, message: String, subject: String) -> Error {
    Error::FailedPrecondition {
        reason,
        message: message.clone(),
        violations: vec![PreconditionViolation {
            kind: reason.into(),
            subject,
            description: message,
        }],
    }
}

fn overtaken(message: &str) -> Error {
    Error::Aborted {
        reason: "BASE_CHANGED",
        message: message.to_owned(),
    }
}

/// The label that a request means.
pub(crate) fn label_or_default(label: &str) -> &str {
    if label.is_empty() { PRODUCTION } else { label }
}
