//! What a proposed prompt would change on inputs that were rated.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use emend_base::Error;
use emend_core::{CandidateId, Learned, Namespace, Prompt, Rated, RatingClass, candidate::Verdict};
use futures::stream::{self, StreamExt as _};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use crate::{
    generator::Generator,
    outputs::{
        Outputs,
        improve::window_of,
        rendered::{asked, asked_whole},
        versions::Improvement,
    },
};

/// Prompts that one process runs at once.
const RUNS: usize = 4;
/// How long the runs of one preview may take together.
const PATIENCE: Duration = Duration::from_mins(1);

/// Bounds how many prompts one process runs at once. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct RunSlots(Arc<Semaphore>);

impl Default for RunSlots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(RUNS)))
    }
}

/// What would change.
#[derive(Debug)]
pub(crate) struct Preview {
    /// What is kept of the improvement.
    pub(crate) improvement: Option<Improvement>,
    /// For each input.
    pub(crate) inputs: Vec<Previewed>,
    /// Whether a model ran the prompts.
    pub(crate) was_run: bool,
}

/// One input that was rated.
#[derive(Debug)]
pub(crate) struct Previewed {
    /// The rating.
    pub(crate) rated: Rated,
    /// The current prompt as it is asked with this input, and the proposed one.
    pub(crate) prompts: [String; 2],
    /// What a model makes of them, or why nothing; none where there is no model.
    pub(crate) runs: Option<[Result<String, String>; 2]>,
}

impl Outputs {
    /// Shows a version that awaits review on the newest rated inputs of its target, bad ones first.
    pub(crate) async fn preview(
        &self,
        namespace: &Namespace,
        id: CandidateId,
        inputs: u32,
        slots: &RunSlots,
    ) -> Result<Preview, Error> {
        let record = self.decisions.candidate(namespace, id).await?;
        let (Some(kept), Learned::Prompt(proposed)) =
            (record.candidate.proposal, &record.candidate.value.learned)
        else {
            return Err(Error::invalid("candidate_id", "is not a version of a prompt"));
        };
        if kept.verdict != Verdict::Open {
            return Err(Error::FailedPrecondition {
                reason: "NOT_OPEN",
                message: format!("candidate {id} does not await review"),
                violations: Vec::new(),
            });
        }
        let outputs = self.stored();
        let contest = record.key.contest_id();
        let previous = match outputs.version_value(contest, kept.base).await? {
            Some(value) => match value.learned {
                Learned::Prompt(prompt) => Some(prompt),
                _ => None,
            },
            None => None,
        };
        let wanted = RatingClass::ALL.map(|class| (class, inputs));
        let mut rated = outputs
            .newest_ratings(window_of(&record.key).contest_id(), &wanted)
            .await?;
        rated.sort_by_key(|rated| (rated.class != RatingClass::Bad, Reverse(rated.place())));
        rated.truncate(inputs as usize);
        let until = Instant::now() + PATIENCE;
        let generator = &*self.generator;
        let previous = previous.as_ref();
        let inputs: Vec<Previewed> = stream::iter(rated)
            .map(|rated| previewed(generator, slots, until, rated, previous, proposed))
            .buffered(RUNS)
            .collect()
            .await;
        Ok(Preview {
            improvement: self.improvement(&record).await?,
            was_run: inputs.iter().any(|input| input.runs.is_some()),
            inputs,
        })
    }
}

async fn previewed(
    generator: &dyn Generator,
    slots: &RunSlots,
    until: Instant,
    rated: Rated,
    previous: Option<&Prompt>,
    proposed: &Prompt,
) -> Previewed {
    let input = &rated.texts.input;
    let whole = |prompt: Option<&Prompt>| prompt.map(|prompt| asked_whole(prompt, input));
    let prompts = [whole(previous).unwrap_or_default(), asked_whole(proposed, input)];
    let run = async |prompt: &Prompt| {
        let (prompt, input) = asked(prompt, input);
        let asked = async {
            let _slot = slots.0.acquire().await.ok()?;
            generator.run(&prompt, input).await
        };
        match timeout_at(until, asked).await {
            Ok(answer) => answer.map(|answer| {
                answer.map_err(|error| {
                    error.logged(generator, "preview");
                    error.to_string()
                })
            }),
            Err(_) => Some(Err(format!(
                "the preview took more than {} seconds",
                PATIENCE.as_secs()
            ))),
        }
    };
    let runs = match run(proposed).await {
        None => None,
        Some(new) => {
            let old = match previous {
                Some(previous) => run(previous).await.unwrap_or_else(|| Ok(String::new())),
                None => Ok(String::new()),
            };
            Some([old, new])
        }
    };
    Previewed { rated, prompts, runs }
}
