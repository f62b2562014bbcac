//! `emend search tuning preview`: what a tuning would change, before it is set.

mod outlook;
mod show;

use std::{collections::HashMap, path::PathBuf};

use emend_core::search::Tuning;
use emend_lab::evaluate::{
    Queries, report,
    runs::{self, Run, ScoredRun},
};
use emend_proto::{feedback::v1::Query as RecordedQuery, search::v1::SearchResponse};

use self::outlook::{Change, Outlook, Places, Recording, Search};
use super::{
    judged,
    node::{Answers, Node, With},
    preview::{self, Source},
    read, unreadable,
};
use crate::{
    commands::search::tuning::{changed, in_force, of_resource},
    context::Context,
    failure::{Failure, Result},
    output::Output,
};

/// What is to be tried out, and on which queries.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend search tuning preview HYBRID min_score=0.5
  emend search tuning preview HYBRID top_k=20 min_score=0.3 retry=synonyms --node 127.0.0.1:7421
  emend search tuning preview HYBRID min_score=0.5 --judgements judged.jsonl --node 127.0.0.1:7421
  emend search tuning preview HYBRID min_score=0.5 --judgements judged.jsonl --run wide.jsonl

Compares a tuning with the one in force: its searches, step by step, and what queries of the type
find. Nothing is changed; `emend search tuning set` with the same settings sets it.

Of recorded queries the five best scores are known, so that much can be told without searching:
nothing (it would find nothing), fewer, retry (only a later step would find it), perhaps more, and
unknown (perhaps fewer: the recording does not tell). A search node that serves emend.search.v1 is
asked instead: --node.

Judged queries without a type count as queries of this one. They are asked of a node, or cut from a
run with scores that has all that could be found (a TREC run file, or JSON lines with \"scores\", as
`emend search evaluate --save` writes them), wherever that was found.")]
pub(in crate::commands) struct Preview {
    /// The query type, for example HYBRID
    query_type: String,
    /// What would differ from the defaults, as `emend search tuning set` takes it
    #[arg(required = true, value_name = "NAME=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    source: Source,
    /// Ranked results of the judged queries with scores, instead of a node
    #[arg(long, value_name = "RUN", requires = "judgements", conflicts_with = "node")]
    run: Option<PathBuf>,
}

/// Two tunings and their searches.
struct Plans {
    before: Tuning,
    after: Tuning,
    searches_before: Vec<Search>,
    searches_after: Vec<Search>,
}

/// What one query finds.
#[derive(Debug, Clone, Default, PartialEq)]
struct Found {
    ids: Vec<String>,
    /// Which step found it, from 1; the last one if none did.
    step: usize,
}

/// What queries find now and then.
struct Results {
    before: HashMap<String, Found>,
    after: HashMap<String, Found>,
}

/// A recorded query that would find something else, as far as its recording tells.
struct Foreseen {
    id: String,
    text: String,
    before: Outlook,
    after: Outlook,
    change: Change,
}

/// Runs the command.
pub(in crate::commands) async fn run(args: Preview, context: &Context, output: &mut Output<'_>) -> Result {
    let before = current(context, &args.query_type).await?;
    let after = changed(&before, &args.settings)?;
    if let Some(path) = &args.source.judgements {
        let queries = of_type(judged(path, args.source.format)?, &args.query_type);
        if queries.is_empty() {
            let why = format!(
                "{} judges no query of the type {}",
                path.display(),
                args.query_type
            );
            return Err(Failure::usage(why));
        }
        let plans = Plans::new(before, after, &Places::from([String::new()]));
        let results = results(&args, context, &queries, &plans).await?;
        let (before, after) = (run_of(&results.before), run_of(&results.after));
        let measured = report::measure(&queries, &before, Some(&after), args.source.k.into());
        let shown = show::Shown {
            query_type: &args.query_type,
            plans: &plans,
            queries: &queries,
        };
        return shown.results(&results, Some(&measured), output);
    }
    let recorded = preview::recorded(context, &args.query_type, args.source.limit).await?;
    let usual = outlook::usual(&before, &recorded);
    let plans = Plans::new(before, after, &usual);
    let queries = preview::unjudged(&recorded);
    let shown = show::Shown {
        query_type: &args.query_type,
        plans: &plans,
        queries: &queries,
    };
    if queries.is_empty() && !output.is_json() {
        let none = context.none_of(&format!("recorded queries of the type {}", args.query_type));
        return shown.nothing(&none, output);
    }
    if args.source.node.is_some() {
        let results = results(&args, context, &queries, &plans).await?;
        return shown.results(&results, None, output);
    }
    let foreseen = plans.have_equal_weights().then(|| foreseen(&recorded, &plans));
    shown.foreseen(foreseen.as_deref(), output)
}

impl Plans {
    fn new(before: Tuning, after: Tuning, usual: &Places) -> Self {
        Self {
            searches_before: outlook::searches(&before, usual),
            searches_after: outlook::searches(&after, usual),
            before,
            after,
        }
    }

    /// Whether results have the scores that they had: with other weights they have others.
    fn have_equal_weights(&self) -> bool {
        self.before.weights().eq(self.after.weights())
    }
}

/// The tuning in force, or the defaults.
async fn current(context: &Context, query_type: &str) -> Result<Tuning> {
    of_resource(in_force(context, query_type).await?.as_ref())
}

/// Judged queries of a type, and those without one.
fn of_type(queries: Queries, query_type: &str) -> Queries {
    let mut of_type = queries;
    of_type.retain(|_, query| query.query_type.is_empty() || query.query_type == query_type);
    for query in of_type.values_mut() {
        query_type.clone_into(&mut query.query_type);
    }
    of_type
}

/// What the queries find with the tuning in force and with the other one.
async fn results(args: &Preview, context: &Context, queries: &Queries, plans: &Plans) -> Result<Results> {
    if let Some(path) = &args.run {
        if !plans.have_equal_weights() {
            let why = "--run: with other weights results have other scores; ask a search node (--node)";
            return Err(Failure::usage(why));
        }
        let run = runs::parse_scored(&read(path)?).map_err(|bad| unreadable(path, &bad))?;
        let cut = |plan: &[Search]| {
            queries
                .keys()
                .map(|id| (id.clone(), cut(&run, id, plan)))
                .collect()
        };
        return Ok(Results {
            before: cut(&plans.searches_before),
            after: cut(&plans.searches_after),
        });
    }
    let Some(address) = &args.source.node else {
        return Err(Failure::usage(
            "judged queries need --node, a search node to ask, or --run, results with scores",
        ));
    };
    let node = Node::connect(context, address).await?.of_namespace();
    let tuning = emend_wire::search::tuning_message(&plans.after);
    let before = node.ask(queries, |_| With::Learned).await?;
    let after = node.ask(queries, |_| With::Tuning(tuning.clone())).await?;
    Ok(Results {
        before: answered(&before),
        after: answered(&after),
    })
}

fn answered(answers: &Answers) -> HashMap<String, Found> {
    let found = |answer: &SearchResponse| Found {
        ids: answer.results.iter().map(|result| result.id.clone()).collect(),
        step: usize::try_from(answer.attempts).unwrap_or_default(),
    };
    answers
        .iter()
        .map(|(id, answer)| (id.clone(), found(answer)))
        .collect()
}

/// What a plan takes of all that could be found.
fn cut(run: &ScoredRun, id: &str, plan: &[Search]) -> Found {
    let hits = run.get(id).map_or(&[][..], Vec::as_slice);
    let mut found = Found::default();
    for (step, search) in (1..).zip(plan) {
        let passing = hits.iter().filter(|hit| hit.score >= search.min_score);
        let ids: Vec<String> = passing.take(search.top_k).map(|hit| hit.id.clone()).collect();
        found = Found { ids, step };
        if !found.ids.is_empty() {
            break;
        }
    }
    found
}

fn run_of(found: &HashMap<String, Found>) -> Run {
    let ids = |(id, found): (&String, &Found)| (id.clone(), found.ids.clone());
    found.iter().map(ids).collect()
}

/// The recorded queries that would find something else, the worst first.
fn foreseen(recorded: &[RecordedQuery], plans: &Plans) -> Vec<Foreseen> {
    let mut foreseen: Vec<Foreseen> = recorded
        .iter()
        .filter_map(|query| {
            let recording = Recording::new(query, &plans.searches_before);
            let before = recording.under(&plans.searches_before);
            let after = recording.under(&plans.searches_after);
            let change = Change::of(before, after)?;
            Some(Foreseen {
                id: query.query_id.clone(),
                text: query.query_text.clone(),
                before,
                after,
                change,
            })
        })
        .collect();
    foreseen.sort_by_key(|foreseen| foreseen.change);
    foreseen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_takes_what_has_the_score_step_by_step() {
        let run = runs::parse_scored(
            "{\"query_id\": \"q\", \"results\": [\"a\", \"b\", \"c\"], \"scores\": [0.6, 0.45, 0.35]}",
        )
        .unwrap();
        let found = |line: &str| {
            let plan = outlook::searches(&Tuning::parse(line).unwrap(), &Places::new());
            let Found { ids, step } = cut(&run, "q", &plan);
            (ids.concat(), step)
        };
        for (line, ids, step) in [
            ("min_score=0.4", "ab", 1),
            ("top_k=1", "a", 1),
            ("min_score=0.7 retry=-0.2", "a", 2),
            ("min_score=0.7", "a", 2),
            ("min_score=0.9 retry=-0.1 retry=-0.1", "", 3),
        ] {
            assert_eq!(found(line), (ids.to_owned(), step), "{line}");
        }
        let plan = outlook::searches(&Tuning::default(), &Places::new());
        assert_eq!(cut(&run, "another", &plan).step, plan.len());
    }

    #[test]
    fn queries_of_other_types_are_left_out() {
        let judged = "{\"query_id\": \"q1\", \"query_type\": \"HYBRID\", \"judgements\": []}
            {\"query_id\": \"q2\", \"query_type\": \"SEMANTIC\", \"judgements\": []}
            {\"query_id\": \"q3\", \"judgements\": []}";
        let judged = super::super::judgements::judgements(judged, super::super::Format::Jsonl).unwrap();
        let of_type = of_type(judged, "HYBRID");
        let types: Vec<_> = of_type
            .iter()
            .map(|(id, query)| (&**id, &*query.query_type))
            .collect();
        assert_eq!(types, [("q1", "HYBRID"), ("q3", "HYBRID")]);
    }
}
