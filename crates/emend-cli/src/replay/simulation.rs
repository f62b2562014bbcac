//! Runs the days: queries arrive, the node answers, and people correct wrong answers.

use std::time::Duration;

use emend_base::Lifecycle;
use emend_client::{FeedbackClient, NodeHandle, Submission};
use emend_core::{Kind, Namespace, Revision};
use emend_lab::replay::{
    Settings,
    dataset::{Dataset, Label, Utterance},
    matcher::BaseMatcher,
    near::{NearAnswer, NearNode},
    report::{Day, People, Report, TestSet},
    reporters::{Behaviour, Population, Statement},
    traffic::Traffic,
};
use emend_proto::{
    common::v1::ResourceKind,
    learning::v1::{Policy, UpdatePolicyRequest},
};
use indicatif::{ProgressBar, ProgressStyle};
use prost_types::FieldMask;
use tokio::time::{Instant, timeout};

use super::audit::Auditor;
use crate::{
    context::Context,
    evaluation::wait_until_evaluated,
    failure::{Failure, Result},
    output::Output,
};

/// Corrections submitted in one batch.
const BATCH: usize = 100;
/// How long a batch may take to be evaluated, and the node to catch up.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Runs the days and returns the report. Rows of the table are printed as days end, unless JSON was asked for.
pub(super) async fn run(
    dataset: &Dataset,
    settings: Settings,
    context: &Context,
    lifecycle: &Lifecycle,
    output: &mut Output<'_>,
) -> Result<Report> {
    let started = Instant::now();
    let namespace = Namespace::parse(&settings.namespace)
        .map_err(|invalid| Failure::usage(format!("--namespace {}: {invalid}", settings.namespace)))?;
    let auditor = Auditor::new(context.clone(), &settings.namespace);
    auditor.expect_empty().await?;
    set_threshold(context, &settings).await?;

    // Separate generators: draws of one kind do not depend on how many of another kind there are.
    let seed = settings.seed;
    let reporters = settings.reporters as usize;
    let mut traffic = Traffic::new(dataset.train.len(), reporters, settings.zipf_exponent, seed)
        .map_err(Failure::Failed)?;
    let mut population = Population::new(
        reporters,
        dataset.labels.len(),
        settings.noise,
        settings.colluders,
        settings.habits,
        seed.wrapping_add(1),
    );
    let people = People {
        honest: population.count(Behaviour::Honest),
        erring: population.count(Behaviour::Erring),
        colluding: population.count(Behaviour::Colluding),
        target: dataset.labels[population.target()].clone(),
    };
    let mut simulation =
        Simulation::start(dataset, &settings, auditor, namespace, context, lifecycle).await?;

    if !output.is_json() {
        output.line(&Report::heading(dataset, &settings, &people))?;
    }
    let progress = progress_bar(&settings);
    let mut days = Vec::new();
    for number in 1..=settings.days {
        let mut day = Day {
            number,
            ..Day::default()
        };
        for _ in 0..settings.queries_per_day {
            let query = traffic.draw();
            let utterance = &dataset.train[query.utterance];
            let answer = simulation.answer(utterance)?;
            day.queries += 1;
            let is_right = |label: Option<Label>| u64::from(label == Some(utterance.label));
            let given = answer.label(settings.near.answered);
            day.hits += is_right(given);
            day.hits_with_near += is_right(answer.label(true));
            day.base_hits += is_right(answer.base);
            if let Some(learned) = answer.learned {
                day.learned += 1;
                day.learned_hits += is_right(learned.label);
            } else if let Some(near) = answer.near {
                day.near += 1;
                day.near_hits += is_right(near.label);
            }
            if let Some(statement) = population.reaction(query.reporter, given, utterance.label) {
                simulation.submit_later(utterance, given, statement, query.reporter);
                match statement {
                    Statement::Correction(_) => day.corrections += 1,
                    Statement::Confirmation(_) => day.confirmations += 1,
                }
                if simulation.waiting.len() == BATCH {
                    simulation.submit(&mut day).await?;
                }
            }
            progress.inc(1);
        }
        simulation.submit(&mut day).await?;
        simulation.near.refit();
        day.phrases = simulation.auditor.phrases();
        day.covered = simulation.covered(&traffic)?;
        day.test = simulation.test_set()?;
        if !output.is_json() {
            progress.suspend(|| output.line(&day.row()))?;
        }
        days.push(day);
    }
    progress.finish_and_clear();
    let test = days.last().map_or_else(TestSet::default, |day| day.test);
    let audit = simulation
        .auditor
        .finish(simulation.submitted, &simulation.node, dataset)
        .await?;
    Ok(Report {
        settings,
        people,
        labels: dataset.labels.len(),
        utterances: dataset.train.len(),
        left_out: dataset.left_out,
        days,
        test,
        audit,
        seconds: started.elapsed().as_secs_f64(),
    })
}

async fn set_threshold(context: &Context, settings: &Settings) -> Result {
    let policy = Policy {
        namespace: settings.namespace.clone(),
        kind: ResourceKind::InvocationPhrase as i32,
        threshold: settings.threshold,
        ..Policy::default()
    };
    let request = UpdatePolicyRequest {
        policy: Some(policy),
        update_mask: Some(FieldMask {
            paths: vec!["threshold".into()],
        }),
        reason: "replay".into(),
        on_behalf_of: String::new(),
    };
    context
        .policies()
        .await?
        .update_policy(context.request(request))
        .await?;
    Ok(())
}

fn progress_bar(settings: &Settings) -> ProgressBar {
    let bar = ProgressBar::new(u64::from(settings.days) * u64::from(settings.queries_per_day));
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} queries, {eta} left")
    {
        bar.set_style(style);
    }
    bar
}

/// What was learned for an utterance.
#[derive(Debug, Clone, Copy)]
struct Learned {
    /// Missing if it is not in the data set.
    label: Option<Label>,
}

/// What can be answered to an utterance.
#[derive(Debug, Clone, Copy)]
struct Answer {
    /// What was learned for it, if anything.
    learned: Option<Learned>,
    /// What is answered near, at the least confidence.
    near: Option<NearAnswer>,
    /// What would be answered had nothing been learned.
    base: Option<Label>,
}

impl Answer {
    /// What the node answers, near answers among it or not.
    fn label(&self, with_near: bool) -> Option<Label> {
        let near = self.near.filter(|_| with_near).map(|near| near.label);
        let learned = self.learned.map(|learned| learned.label);
        learned.or(near).unwrap_or(self.base)
    }
}

/// The node, and the client that corrects it.
struct Simulation<'d> {
    dataset: &'d Dataset,
    namespace: Namespace,
    base: BaseMatcher,
    node: NodeHandle,
    near: NearNode,
    min_confidence: f32,
    auditor: Auditor,
    feedback: FeedbackClient,
    waiting: Vec<Submission>,
    submitted: u64,
}

impl<'d> Simulation<'d> {
    async fn start(
        dataset: &'d Dataset,
        settings: &Settings,
        auditor: Auditor,
        namespace: Namespace,
        context: &Context,
        lifecycle: &Lifecycle,
    ) -> Result<Self> {
        let feedback = context.feedback_client()?.deadline(TIMEOUT);
        let node = context
            .subscriber(format!("{}-node", settings.namespace))?
            .namespace(settings.namespace.clone())
            .version(concat!("emend-cli/", env!("CARGO_PKG_VERSION")))
            .spawn(lifecycle)
            .await
            .map_err(|error| Failure::usage(error.to_string()))?;
        timeout(TIMEOUT, node.view().wait_until_filled())
            .await
            .map_err(|_| Failure::failed("the node received nothing from learning-svc in time"))?;
        Ok(Self {
            dataset,
            namespace,
            base: BaseMatcher::new(&dataset.labels),
            node,
            near: NearNode::default(),
            min_confidence: settings.near.min_confidence,
            auditor,
            feedback,
            waiting: Vec::new(),
            submitted: 0,
        })
    }

    fn answer(&self, utterance: &Utterance) -> Result<Answer> {
        let resolved = self
            .node
            .view()
            .resolve(&self.namespace, Kind::InvocationPhrase, &utterance.text, None, [])
            .map_err(|invalid| {
                Failure::failed(format!("{:?} can't be looked up: {invalid}", utterance.text))
            })?;
        let learned = resolved.found.map(|found| Learned {
            label: self.dataset.labels.binary_search(&found.value).ok(),
        });
        let near = self.near.answer(self.dataset, &utterance.key);
        Ok(Answer {
            learned,
            near: near.filter(|near| learned.is_none() && near.confidence >= self.min_confidence),
            base: self.base.best(&utterance.text),
        })
    }

    fn submit_later(
        &mut self,
        utterance: &Utterance,
        answer: Option<Label>,
        statement: Statement,
        reporter: usize,
    ) {
        let (namespace, phrase) = (self.namespace.as_str(), utterance.text.as_str());
        let label = |label: Label| self.dataset.labels[label].as_str();
        let submission = match (statement, answer) {
            (Statement::Confirmation(right), _) => {
                Submission::phrase_mapping(namespace, phrase, label(right))
            }
            (Statement::Correction(right), None) => Submission::verb(namespace, phrase, label(right)),
            (Statement::Correction(right), Some(wrong)) => {
                Submission::verb(namespace, phrase, label(right)).system_choice(label(wrong))
            }
        };
        self.waiting.push(
            submission
                .reporter(format!("reporter-{reporter}"))
                .client("emend-replay"),
        );
    }

    /// The share of the traffic that the node answers from what has been learned so far: it is asked every utterance
    /// once, and each answer is weighted by the utterance's frequency.
    fn covered(&self, traffic: &Traffic) -> Result<f64> {
        let learned: Vec<bool> = self
            .dataset
            .train
            .iter()
            .map(|utterance| Ok(self.answer(utterance)?.learned.is_some()))
            .collect::<Result<_>>()?;
        Ok(traffic.share(|utterance| learned[utterance]))
    }

    /// Submits the pending corrections, waits until all are evaluated and the node has applied the results, and counts
    /// what was learned.
    async fn submit(&mut self, day: &mut Day) -> Result {
        self.submit_waiting().await?;
        let learned = self.auditor.since_last(self.dataset).await?;
        day.promotions += learned.promotions;
        day.wrong_promotions += learned.wrong_promotions;
        for changed in learned.changes {
            self.near.change(
                &changed.phrase,
                changed.before.as_deref(),
                changed.after.as_deref(),
            );
        }
        Ok(())
    }

    async fn submit_waiting(&mut self) -> Result {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let submissions = std::mem::take(&mut self.waiting);
        let results = self
            .feedback
            .submit_all(submissions, true)
            .await
            .map_err(|error| Failure::Refused(Box::new(error.0)))?;
        let deadline = Instant::now() + TIMEOUT;
        let mut newest = 0;
        for result in results {
            let recorded = result.map_err(|error| Failure::Refused(Box::new(error.0)))?;
            let recorded = wait_until_evaluated(&self.feedback, &self.namespace, recorded, deadline).await?;
            newest = newest.max(recorded.outcome().map_or(0, |outcome| outcome.revision));
            self.submitted += 1;
        }
        timeout(TIMEOUT, self.node.view().wait_for_revision(Revision(newest)))
            .await
            .map_err(|_| {
                Failure::failed(format!(
                    "the node did not apply revision {newest} within {TIMEOUT:?}"
                ))
            })
    }

    /// How the node does on utterances that nobody has asked.
    fn test_set(&self) -> Result<TestSet> {
        let mut test = TestSet::default();
        for utterance in &self.dataset.test {
            let answer = self.answer(utterance)?;
            let is_right = |label: Option<Label>| u64::from(label == Some(utterance.label));
            test.queries += 1;
            test.hits += is_right(answer.label(false));
            test.base_hits += is_right(answer.base);
            test.learned += u64::from(answer.learned.is_some());
            if let Some(near) = answer.near {
                test.near += 1;
                test.near_hits += is_right(near.label);
            }
            let learned = answer.learned.map(|learned| learned.label);
            let any = self
                .near
                .answer(self.dataset, &utterance.key)
                .map(|near| near.label);
            test.hits_at_any_confidence += is_right(learned.or(any).unwrap_or(answer.base));
        }
        Ok(test)
    }
}
