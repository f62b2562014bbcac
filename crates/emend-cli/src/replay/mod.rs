//! `emend replay`: learning from simulated users on a real data set.
//!
//! Simulated users ask a search node and correct wrong answers through the real services; what is learned reaches the
//! node over the real stream, and the next day it knows better. [`dataset`] reads the utterances, [`matcher`] plays the
//! search system before anything was learned, [`traffic`] draws the queries, [`reporters`] are the people,
//! [`simulation`] runs the days, [`audit`] checks from the services' own records what was learned and that nothing was
//! lost, and [`report`] and [`chart`] present the results.

mod audit;
mod files;
mod simulation;

use std::path::{Path, PathBuf};

use emend_base::Lifecycle;
use emend_lab::replay::{Settings, chart, near::Use, report::Report, reporters::Habits};

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    pair::{GRACE, Pair},
};

/// Which data to replay, how much traffic, and who reports.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The data set is a directory with train.csv and test.csv (columns text,category), as BANKING77
(https://github.com/PolyAI-LDN/task-specific-datasets) has them.

Each day, users drawn from --reporters ask queries drawn from train.csv by Zipf's law. The node
looks up what was learned; if nothing was, a deliberately weak matcher answers: the label that
shares the largest part of its words with the query. A user who gets a wrong answer submits a
verb correction with the label that this user believes to be right:
  honest reporters     the true label
  erring reporters     (--noise) a wrong label, drawn at random each time
  colluding reporters  (--colluders) always the same wrong label, agreed beforehand
A right answer draws no correction, unless --attack-right-answers: then erring and colluding
reporters dispute right answers too. As long as nobody confirms right answers, any phrase that
no honest user ever corrected can be won by three colluders: they are unopposed, and no higher
threshold helps while there are more colluders than it requires. The defence is that users also
say when an answer is right (--confirmations): a vote for the label that was answered. Users
who believe the answer is right confirm it in that share of cases; erring reporters confirm
wrong answers as often, and colluders always confirm theirs.

  --attack-right-answers, 7 days, seeds 1 to 7      wrong promotions, of all
  --confirmations 0                                 2.7 to 3.3 %
  --confirmations 0 --threshold 4                   2.2 to 3.3 %
  --confirmations 0.05                              0.5 to 0.9 %
  --confirmations 0.1                               0.2 to 0.6 %
  --confirmations 0.15                              0.0 to 0.2 %
  --confirmations 0.2 (the default under attack)    0.0 to 0.2 %
  --confirmations 0.1 --threshold 4                 0.0 to 0.5 %
A run of a few days has too few promotions to tell: one wrong in 150 is already 0.7 %.

The node catches up after each batch of corrections, so equal seeds give equal figures. Figures
are counted from the node's answers, promotions from the audit trail. A promotion is wrong if
the promoted label is not the true one. \"Answered learned\" is the share of that day's queries,
so it varies by about a percentage point by chance alone. \"Traffic covered\" is the share of
everything that may be asked, weighted by Zipf's law: at the end of the day the node is asked
each utterance once. Near answers are given to what was not learned, by what was learned for
similar phrases; the second table says how many there are and how many are right, and what they
do on test.csv, which nobody asked. A node fits them within a minute of a change; here they are
fitted once a day. People don't see them unless --answer-near. At the end every correction must be stored, delivered, evaluated and
counted once, and the node must hold what the database holds; otherwise the exit code is 1.

Examples:
  emend replay --dataset data/banking77
  emend replay --dataset data/banking77 --days 5 --noise 0.2 --colluders 0.1 --svg replay.svg
  emend replay --dataset data/banking77 --json > replay.json
  emend replay --dataset data/banking77 --feedback-addr HOST:7401 --learning-addr HOST:7402

Unless an address is given (--feedback-addr and --learning-addr, or EMEND_FEEDBACK_ADDR and
EMEND_LEARNING_ADDR; their defaults don't count here), a pair of its own is started, on a directory
that is removed at the end. Against a running pair the namespace is a new one for each run, unless
--namespace names an empty one.")]
pub struct Args {
    /// The directory with train.csv and test.csv
    #[arg(long, value_name = "DIR")]
    dataset: PathBuf,
    /// How many days to simulate
    #[arg(long, default_value_t = 7, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    days: u32,
    /// How many queries to ask each day
    #[arg(long, default_value_t = 5_000, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    queries_per_day: u32,
    /// How many people ask and report
    #[arg(long, default_value_t = 200, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    reporters: u32,
    /// The share of reporters who err at random, 0 to 1
    #[arg(long, default_value_t = 0.10, value_name = "SHARE", value_parser = share)]
    noise: f64,
    /// The share of reporters who attack together, 0 to 1
    #[arg(long, default_value_t = 0.05, value_name = "SHARE", value_parser = share)]
    colluders: f64,
    /// Erring and colluding reporters dispute right answers too
    #[arg(long)]
    attack_right_answers: bool,
    /// The share of answers thought right that people confirm, 0 to 1 [default: 0; 0.2 with --attack-right-answers]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    confirmations: Option<f64>,
    /// How much more frequent the most frequent queries are: the exponent of Zipf's law, 0 to 10
    #[arg(long, default_value_t = 1.0, value_name = "NUMBER", value_parser = exponent)]
    zipf_exponent: f64,
    /// Net confirmations required for a promotion, 1 to 1000
    #[arg(long, default_value_t = 3, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..=1_000))]
    threshold: i32,
    /// The confidence from which near answers count, 0 to 1
    #[arg(long, default_value_t = 0.8, value_name = "SHARE", value_parser = confidence)]
    near_min_confidence: f32,
    /// People get the near answers too and correct what is left, rather than near answers being counted beside
    #[arg(long)]
    answer_near: bool,
    /// Equal seeds draw equal queries, reporters and errors
    #[arg(long, default_value_t = 7, value_name = "NUMBER")]
    seed: u64,
    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json_file: Option<PathBuf>,
    /// Also write a chart to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The default of `--confirmations` when right answers are under attack.
const CONFIRMATIONS_UNDER_ATTACK: f64 = 0.2;

impl Args {
    fn confirmations(&self) -> f64 {
        self.confirmations.unwrap_or(if self.attack_right_answers {
            CONFIRMATIONS_UNDER_ATTACK
        } else {
            0.0
        })
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a share from 0 to 1".into()),
    }
}

fn confidence(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(confidence) if (0.0..=1.0).contains(&confidence) => Ok(confidence),
        _ => Err("expected a confidence from 0 to 1".into()),
    }
}

fn exponent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(exponent) if exponent.is_finite() && (0.0..=10.0).contains(&exponent) => Ok(exponent),
        _ => Err("expected a number from 0 to 10".into()),
    }
}

/// Runs the simulation and reports what was learned.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    if args.noise + args.colluders > 1.0 {
        return Err(Failure::usage(
            "--noise and --colluders together must be at most 1",
        ));
    }
    let directory = args.dataset.clone();
    let dataset = tokio::task::spawn_blocking(move || files::load(&directory))
        .await
        .map_err(|error| Failure::failed(error.to_string()))??;
    let lifecycle = Lifecycle::new();
    let running = context.global.feedback_addr.is_some() || context.global.learning_addr.is_some();
    let (pair, context) = if running {
        (None, context.clone())
    } else {
        let pair = Pair::ephemeral(&lifecycle, context).await?;
        let context = pair.context(context);
        (Some(pair), context)
    };
    let settings = Settings {
        namespace: context.global.namespace.clone().unwrap_or_else(|| {
            let unique = context.entropy.uuid_v4().simple().to_string();
            if running {
                format!("replay-{}", &unique[..8])
            } else {
                "replay".into()
            }
        }),
        days: args.days,
        queries_per_day: args.queries_per_day,
        reporters: args.reporters,
        noise: args.noise,
        colluders: args.colluders,
        habits: Habits {
            attack_right_answers: args.attack_right_answers,
            confirmations: args.confirmations(),
        },
        zipf_exponent: args.zipf_exponent,
        threshold: args.threshold,
        near: Use {
            min_confidence: args.near_min_confidence,
            answered: args.answer_near,
        },
        seed: args.seed,
    };
    let played = simulation::run(&dataset, settings, &context, &lifecycle, output).await;
    let stopped = lifecycle.failure().map(str::to_owned);
    lifecycle.shutdown(GRACE).await;
    drop(pair);
    if let Some(reason) = stopped {
        return Err(Failure::failed(reason));
    }
    print(&played?, &args, output)
}

fn print(report: &Report, args: &Args, output: &mut Output<'_>) -> Result {
    let json = report.to_json();
    output.result(&json, || report.summary())?;
    if let Some(file) = &args.json_file {
        write(file, &format!("{json:#}\n"))?;
    }
    if let Some(file) = &args.svg {
        write(file, &chart::draw(report))?;
    }
    match &*report.audit.problems {
        [] => Ok(()),
        problems => Err(Failure::failed(format!(
            "the services lost something:\n  {}",
            problems.join("\n  ")
        ))),
    }
}

fn write(file: &Path, text: &str) -> Result {
    std::fs::write(file, text).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
}
