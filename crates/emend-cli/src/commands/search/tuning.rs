//! `emend search tuning`: how queries of each type are searched.

use clap::Subcommand;
use emend_core::{Invalid, Kind, Learned, search::Tuning};
use emend_proto::{
    common::v1::{Resource, ResourceKey},
    learning::v1::{DeleteResourceRequest, GetResourceRequest, ListResourcesRequest},
};
use serde_json::json;

use super::evaluate;
use crate::{
    commands::{Decision, resources},
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table},
    view,
};

/// The etag of a key that has no resource.
const NO_RESOURCE: &str = "0";
/// How often a change is written anew because somebody else's came first.
const ATTEMPTS: u32 = 10;

/// List, show, preview, set or delete.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend search tuning list
  emend search tuning show HYBRID
  emend search tuning preview HYBRID top_k=20 min_score=0.3
  emend search tuning set HYBRID top_k=20 min_score=0.3 --reason \"too few results\"
  emend search tuning set FILTERABLE namespaces=effects,faq weight.keyword=0.7 weight.embedding=0.3
  emend search tuning set SEMANTIC retry=+combined,top_k=20 retry=synonyms \"suggestion=Fewer words?\"
  emend search tuning delete HYBRID --reason \"the defaults do\"

Settings that are not named stay as they are; NAME= without a value returns one to its default:
  top_k=10               how many results, 1 to 100
  min_score=0.4          the score from which on results are given, 0.0 to 1.0
  confidence.NAME=SCORE  from which score on a result is of that confidence
  weight.NAME=WEIGHT     what a list of results weighs when lists are merged, 0.0 to 100.0
  namespaces=NAME,NAME   where to search, in the backend's own names
  retry=STEP             what is tried when nothing is found, one step after another, or none: of
                         +NAME (search there, too), -SCORE (lower min_score), top_k=NUMBER (at least
                         so many) and synonyms (embed the text with its synonyms), with commas
                         [default: retry=+combined,-0.1,top_k=20 retry=synonyms]
  suggestion=TEXT        what the user is told when nothing was found after all

Query types are those of the backend, compared byte for byte. The newest tuning is in force; nodes
search the next query with it.")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the query types that have a tuning of their own
    List {
        /// List at most this many; 0 for all
        #[arg(long, default_value_t = 50, value_name = "COUNT")]
        limit: usize,
    },
    /// Show how queries of a type are searched
    Show {
        /// The query type, for example HYBRID
        query_type: String,
    },
    /// Show what a tuning would change, before it is set
    Preview(evaluate::tuning::Preview),
    /// Change settings of a query type and keep the rest
    Set {
        /// The query type, for example HYBRID
        query_type: String,
        /// What to change
        #[arg(required = true, value_name = "NAME=VALUE")]
        settings: Vec<String>,
        /// Only if it still has this etag
        #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
        etag: String,
        #[command(flatten)]
        decision: Decision,
    },
    /// Search queries of a type with the defaults again
    Delete {
        /// The query type, for example HYBRID
        query_type: String,
        /// Only if it still has this etag
        #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
        etag: String,
        #[command(flatten)]
        decision: Decision,
    },
}

/// Lists, shows, sets or deletes.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::List { limit } => list(limit, context, output).await,
        Action::Show { query_type } => show(query_type, context, output).await,
        Action::Preview(preview) => evaluate::tuning::run(preview, context, output).await,
        Action::Set {
            query_type,
            settings,
            etag,
            decision,
        } => {
            let change = Change {
                query_type,
                settings,
                etag,
                decision,
            };
            set(change, context, output).await
        }
        Action::Delete {
            query_type,
            etag,
            decision,
        } => {
            let request = DeleteResourceRequest {
                key: Some(key(context, query_type)),
                etag,
                reason: decision.reason,
                on_behalf_of: decision.by,
            };
            resources::delete(request, context, output).await
        }
    }
}

/// What to set.
struct Change {
    query_type: String,
    settings: Vec<String>,
    etag: String,
    decision: Decision,
}

/// Sets what is named and keeps the rest of what is in force. Written only if that is still in force, or read again.
async fn set(change: Change, context: &Context, output: &mut Output<'_>) -> Result {
    let mut client = context.resources().await?;
    for attempt in 1.. {
        let resource = in_force(context, &change.query_type).await?;
        let tuning = changed(&of_resource(resource.as_ref())?, &change.settings)?;
        let learned = Learned::SearchTuning(Some(tuning.into()));
        let mut request = resources::put_request(context.namespace(), change.query_type.clone(), &learned);
        request.etag = match &resource {
            _ if !change.etag.is_empty() => change.etag.clone(),
            Some(resource) => resource.etag.clone(),
            None => NO_RESOURCE.to_owned(),
        };
        request.reason.clone_from(&change.decision.reason);
        request.on_behalf_of.clone_from(&change.decision.by);
        match client.put_resource(context.request(request)).await {
            Err(status)
                if status.code() == tonic::Code::Aborted && change.etag.is_empty() && attempt < ATTEMPTS => {}
            answer => return resources::was_put(answer?.into_inner(), output),
        }
    }
    Ok(())
}

/// The tuning that a resource holds; where there is none, the defaults.
pub(super) fn of_resource(resource: Option<&Resource>) -> Result<Tuning> {
    let Some(resource) = resource else {
        return Ok(Tuning::default());
    };
    let tuning = match view::learned(resource.value.as_ref()) {
        Some(Learned::SearchTuning(set)) => set.map(|set| Tuning::clone(set.tuning())),
        _ => None,
    };
    tuning.ok_or_else(|| Failure::failed("learning-svc answered a tuning that can't be read"))
}

/// This tuning with the settings that are named.
pub(super) fn changed(before: &Tuning, settings: &[String]) -> Result<Tuning> {
    before
        .with(&settings.join(" "))
        .map_err(|Invalid(why)| Failure::usage(format!("NAME=VALUE: {why}")))
}

fn key(context: &Context, query_type: String) -> ResourceKey {
    ResourceKey {
        namespace: context.namespace(),
        kind: Kind::SearchTuning.number(),
        key: query_type,
        ..ResourceKey::default()
    }
}

async fn list(limit: usize, context: &Context, output: &mut Output<'_>) -> Result {
    let request = ListResourcesRequest {
        namespace: context.namespace(),
        kinds: vec![Kind::SearchTuning.number()],
        ..ListResourcesRequest::default()
    };
    let (found, more) = context.list(&request, limit).await?;
    let none = context.none_of("tunings: all queries are searched with the defaults");
    output.list(&found, more, view::message, table, &none)
}

/// The tuning of a query type, if it has one of its own.
pub(super) async fn in_force(context: &Context, query_type: &str) -> Result<Option<Resource>> {
    let request = GetResourceRequest {
        key: Some(key(context, query_type.to_owned())),
        ..GetResourceRequest::default()
    };
    let mut client = context.resources().await?;
    match client.get_resource(context.request(request)).await {
        Ok(found) => Ok(found.into_inner().resource),
        Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
        Err(status) => Err(status.into()),
    }
}

/// What is in force, or the defaults.
async fn show(query_type: String, context: &Context, output: &mut Output<'_>) -> Result {
    let Some(resource) = in_force(context, &query_type).await? else {
        let defaults = Tuning::default();
        let message = emend_wire::search::tuning_message(&defaults);
        let json =
            json!({"queryType": query_type, "isDefault": true, "searchTuning": view::message(&message)});
        return output.result(&json, || {
            text(&query_type, &defaults, "the defaults: nobody set others")
        });
    };
    let width = output.width();
    output.result(&view::message(&resource), || {
        match view::learned(resource.value.as_ref()) {
            Some(Learned::SearchTuning(set)) => set.map(|set| {
                let since = format!("since revision {}", resource.revision);
                text(&query_type, set.tuning(), &since)
            }),
            _ => None,
        }
        .unwrap_or_else(|| table(std::slice::from_ref(&resource)).render(width))
    })
}

/// One setting on each line.
fn text(query_type: &str, tuning: &Tuning, since: &str) -> String {
    let line = tuning.to_string();
    let (settings, suggestion) = match line.split_once(" suggestion=") {
        Some((settings, suggestion)) => (settings, Some(suggestion)),
        None => (&*line, None),
    };
    let mut lines = vec![format!("{query_type} ({since})")];
    lines.extend(settings.split(' ').map(|setting| format!("  {setting}")));
    lines.extend(suggestion.map(|text| format!("  suggestion={text}")));
    lines.join("\n")
}

fn table(resources: &[Resource]) -> Table {
    Table::new([
        ("QUERY TYPE", Column::Text),
        ("TUNING", Column::Text),
        ("REVISION", Column::Number),
        ("COMMITTED", Column::Time),
    ])
    .with_rows(resources, |resource| {
        [
            resource.key.clone().unwrap_or_default().key,
            view::value_text(resource.value.as_ref()),
            resource.revision.to_string(),
            view::short_time(resource.committed_at.as_ref()),
        ]
    })
}
