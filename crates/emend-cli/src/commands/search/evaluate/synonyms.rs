//! `emend search synonyms`: what a synonym would change, before it is taught.

use std::{collections::HashMap, fmt::Write as _};

use clap::Subcommand;
use emend_client::{ExpandMode, ExpandedText, LearnedView, view::TaughtSynonym};
use emend_core::{Kind, Namespace};
use emend_lab::evaluate::{Queries, report, runs::Run};
use emend_proto::{
    learning::v1::ListResourcesRequest,
    search::v1::{Expansion, TermGroup},
};
use serde_json::{Value, json};

use super::{
    judged,
    node::{self, Node, With},
    preview::{self, Source},
    to_json, to_text,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table, counted},
    words::Relation,
};

/// Look before teaching.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend search synonyms preview フォロワー フォロー フォロワ
  emend search synonyms preview leader face --relation one_way --limit 5000
  emend search synonyms preview リーダー 顔 フェイス --judgements judged.jsonl --node 127.0.0.1:7421
  emend search synonyms expand \"leader effects\"

Preview shows the queries that would be expanded otherwise if other terms stood for a term: of those that
backends recorded, the newest first, or of judged ones. A search node (emend.search.v1) is asked
what they find now and then, and with judgements how good that is. Nothing is changed; `emend
submit term` and `emend resources set synonym` teach it.")]
pub(in crate::commands) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show what a synonym would change
    Preview(Preview),
    /// Show a query with what else is searched for where its terms stand
    Expand {
        /// What somebody searches for
        query: String,
    },
}

#[derive(Debug, clap::Args)]
struct Preview {
    /// The term that the others stand for
    term: String,
    /// Other terms, which stand for it
    #[arg(required = true, value_name = "EQUIVALENT")]
    equivalents: Vec<String>,
    /// How they are related to the term
    #[arg(long, value_enum, default_value_t = Relation::Equivalent)]
    relation: Relation,
    #[command(flatten)]
    source: Source,
}

/// A query that would be expanded otherwise.
struct Changed {
    id: String,
    text: String,
    before: ExpandedText,
    after: ExpandedText,
}

/// What queries find now and then.
struct Results {
    before: Run,
    after: Run,
}

/// Runs the command.
pub(in crate::commands) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let args = match args.action {
        Action::Preview(args) => args,
        Action::Expand { query } => return expand(&query, context, output).await,
    };
    let namespace = context.namespace();
    let parsed = Namespace::parse(&namespace).map_err(|invalid| Failure::usage(invalid.to_string()))?;
    let source = &args.source;
    let queries = match &source.judgements {
        Some(path) => judged(path, source.format)?,
        None => preview::unjudged(&preview::recorded(context, "", source.limit).await?),
    };
    let mut synonyms = taught(context).await?;
    let before = view(context, &namespace, &synonyms);
    synonyms.extend(previewed(&args)?);
    let after = view(context, &namespace, &synonyms);
    let expanded = |view: &LearnedView, text: &str| view.expand(&parsed, text, ExpandMode::Keyword, None);
    let mut changed = Vec::new();
    for (id, query) in &queries {
        let text = query.text(id).to_owned();
        let (before, after) = (expanded(&before, &text), expanded(&after, &text));
        if before != after {
            let id = id.clone();
            changed.push(Changed {
                id,
                text,
                before,
                after,
            });
        }
    }
    let results = match &source.node {
        Some(address) => {
            let source = (&**address, source.judgements.is_some());
            Some(found(context, source, &queries, &changed).await?)
        }
        None => None,
    };
    if queries.is_empty() && !output.is_json() {
        return output.line(&context.none_of("recorded queries"));
    }
    print(&args, &queries, &changed, results.as_ref(), output)
}

/// What everybody has been taught.
async fn taught(context: &Context) -> Result<Vec<TaughtSynonym>> {
    let request = ListResourcesRequest {
        namespace: context.namespace(),
        kinds: vec![Kind::Synonym.number()],
        ..ListResourcesRequest::default()
    };
    let (resources, _) = context.list(&request, 0).await?;
    let unreadable = |why| {
        Failure::failed(format!(
            "learning-svc answered a synonym that can't be read: {why}"
        ))
    };
    let resources = resources.into_iter();
    resources
        .map(|resource| TaughtSynonym::listed(resource).map_err(unreadable))
        .collect()
}

/// What is to be tried out.
fn previewed(args: &Preview) -> Result<Vec<TaughtSynonym>> {
    let equivalents = args.equivalents.iter();
    equivalents
        .map(|equivalent| {
            TaughtSynonym::new(equivalent, args.relation.into(), &args.term)
                .map_err(|invalid| Failure::usage(format!("{equivalent:?}, {:?}: {invalid}", args.term)))
        })
        .collect()
}

/// A view that knows these synonyms and nothing else.
fn view(context: &Context, namespace: &str, synonyms: &[TaughtSynonym]) -> LearnedView {
    LearnedView::of_synonyms(namespace, synonyms, &context.entropy, context.clock.clone())
}

/// Shows a query with what else is searched for where its terms stand.
async fn expand(text: &str, context: &Context, output: &mut Output<'_>) -> Result {
    let namespace = context.namespace();
    let parsed = Namespace::parse(&namespace).map_err(|invalid| Failure::usage(invalid.to_string()))?;
    let view = view(context, &namespace, &taught(context).await?);
    let expanded = |mode| view.expand(&parsed, text, mode, None).render();
    let (keyword, embedding) = (expanded(ExpandMode::Keyword), expanded(ExpandMode::Embedding));
    let json = json!({"query": text, "byKeyword": keyword, "byEmbedding": embedding});
    output.result(&json, || {
        format!("by words:   {keyword}\nby meaning: {embedding}")
    })
}

/// Asks a node those queries that change, and all if they are judged.
async fn found(
    context: &Context,
    (address, is_judged): (&str, bool),
    queries: &Queries,
    changed: &[Changed],
) -> Result<Results> {
    let node = Node::connect(context, address).await?.of_namespace();
    let place: HashMap<&str, &Changed> = changed.iter().map(|query| (&*query.id, query)).collect();
    let is_changed = |id: &str| place.contains_key(id);
    let with = |expanded: fn(&Changed) -> &ExpandedText| {
        let place = &place;
        move |id: &str| match place.get(id) {
            Some(changed) => With::Expansion(expansion(expanded(changed))),
            None => With::Learned,
        }
    };
    let all = queries.iter().filter(|(id, _)| is_judged || is_changed(id));
    let before = node.ask(all, with(|query| &query.before)).await?;
    let some = queries.iter().filter(|(id, _)| is_changed(id));
    let mut after = before.clone();
    after.extend(node.ask(some, with(|query| &query.after)).await?);
    Ok(Results {
        before: node::run(&before),
        after: node::run(&after),
    })
}

fn expansion(text: &ExpandedText) -> Expansion {
    let place = |byte: usize| i32::try_from(byte).unwrap_or(i32::MAX);
    let groups = text.groups.iter().map(|group| TermGroup {
        start: place(group.span.start),
        end: place(group.span.end),
        alternatives: group.alternatives.clone(),
    });
    Expansion {
        groups: groups.collect(),
    }
}

fn print(
    args: &Preview,
    queries: &Queries,
    changed: &[Changed],
    results: Option<&Results>,
    output: &mut Output<'_>,
) -> Result {
    let source = &args.source;
    let measured = results.filter(|_| source.judgements.is_some());
    let measured = measured
        .map(|results| report::measure(queries, &results.before, Some(&results.after), source.k.into()));
    let json = json!({
        "queries": queries.len(),
        "changed": changed.iter().map(|query| changed_json(query, results)).collect::<Value>(),
        "measures": measured.as_ref().map(to_json),
    });
    let width = output.width();
    output.result(&json, || {
        let mut text = match (changed, results) {
            ([], _) => String::new(),
            (_, None) => expansions(changed).render(width) + "\n",
            (_, Some(results)) => hits(changed, results, source.k.into()).render(width) + "\n",
        };
        let all = counted(queries.len(), "query", "queries");
        let _ = write!(text, "{} of {all} would be searched otherwise", changed.len());
        if let Some(measured) = &measured {
            let _ = write!(text, "\n\n{}", to_text(measured, width));
        }
        text
    })
}

fn changed_json(changed: &Changed, results: Option<&Results>) -> Value {
    json!({
        "queryId": changed.id,
        "query": changed.text,
        "before": changed.before.render(),
        "after": changed.after.render(),
        "foundBefore": results.map(|results| results.before.get(&changed.id)),
        "foundAfter": results.map(|results| results.after.get(&changed.id)),
    })
}

fn expansions(changed: &[Changed]) -> Table {
    Table::new([("NOW", Column::Text), ("THEN", Column::Text)])
        .with_rows(changed, |query| [query.before.render(), query.after.render()])
}

/// What is found, and what of it is new.
fn hits(changed: &[Changed], results: &Results, k: usize) -> Table {
    Table::new([
        ("QUERY", Column::Text),
        ("NOW", Column::Number),
        ("THEN", Column::Number),
        ("NEW", Column::Text),
    ])
    .with_rows(changed, |query| {
        let first = |run: &Run| -> Vec<String> {
            let found = run.get(&query.id).map_or(&[][..], Vec::as_slice);
            found.iter().take(k).cloned().collect()
        };
        let (before, after) = (first(&results.before), first(&results.after));
        let new: Vec<&str> = after
            .iter()
            .filter(|id| !before.contains(id))
            .map(|id| &**id)
            .collect();
        [
            query.text.clone(),
            before.len().to_string(),
            after.len().to_string(),
            new.join(", "),
        ]
    })
}
