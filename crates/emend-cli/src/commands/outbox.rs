//! `emend outbox`: events that could not be delivered to learning-svc.

use clap::Subcommand;
use emend_base::status::code_name;
use emend_proto::feedback::v1::{DeadLetter, ListDeadLettersRequest, RedriveDeadLettersRequest};
use serde_json::json;

use crate::{
    context::Context,
    failure::Result,
    output::{Column, Output, Table},
    view,
};

/// List or redrive.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend outbox list
  emend outbox redrive
  emend outbox redrive 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10

A dead letter is an event that learning-svc refused for good. Once the cause is fixed, redrive it.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List dead letters, oldest first
    List {
        /// List the dead letters of all namespaces
        #[arg(long)]
        all_namespaces: bool,
        /// List at most this many; 0 for all
        #[arg(long, default_value_t = 50, value_name = "COUNT")]
        limit: usize,
    },
    /// Deliver dead letters again: the given ones, or all in the namespace
    Redrive {
        /// The events to redrive [default: all dead letters in the namespace]
        #[arg(value_name = "EVENT_ID")]
        event_ids: Vec<String>,
    },
}

/// Lists or redrives.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::List {
            all_namespaces,
            limit,
        } => {
            let namespace = if all_namespaces {
                String::new()
            } else {
                context.namespace()
            };
            let request = ListDeadLettersRequest {
                namespace,
                ..ListDeadLettersRequest::default()
            };
            let (letters, more) = context.list(&request, limit).await?;
            let if_empty = if all_namespaces {
                "No dead letters in any namespace.".to_owned()
            } else {
                context.none_of("dead letters")
            };
            output.list(&letters, more, view::message, table, &if_empty)
        }
        Action::Redrive { event_ids } => {
            let request = RedriveDeadLettersRequest {
                namespace: context.namespace(),
                event_ids: super::ids::dead_letters(context, event_ids).await?,
            };
            let mut client = context.feedback().await?;
            let count = client
                .redrive_dead_letters(context.request(request))
                .await?
                .into_inner()
                .redriven_count;
            output.result(&json!({"redrivenCount": count}), || match count {
                1 => "1 event will be delivered again".into(),
                count => format!("{count} events will be delivered again"),
            })
        }
    }
}

fn table(letters: &[DeadLetter]) -> Table {
    Table::new([
        ("EVENT", Column::Id),
        ("NAMESPACE", Column::Text),
        ("TRIES", Column::Number),
        ("CODE", Column::Fixed),
        ("DEAD SINCE", Column::Time),
        ("ERROR", Column::Text),
    ])
    .with_rows(letters, |letter| {
        [
            letter.event_id.clone(),
            letter.namespace.clone(),
            letter.attempts.to_string(),
            code_name(letter.code.into()).to_owned(),
            view::short_time(letter.dead_at.as_ref()),
            letter.error.clone(),
        ]
    })
}
