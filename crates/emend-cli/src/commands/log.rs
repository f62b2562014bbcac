//! `emend log`: shows the audit trail.

use emend_proto::learning::v1::{ListRevisionsRequest, Revision, RevisionChange};

use crate::{
    context::{Context, pages},
    failure::Result,
    output::{Column, Output, Table},
    view,
    words::{self, Kind},
};

/// Which revisions to list.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend log --limit 20
  emend log --key \"set up a CSA\"
  emend log --operation 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10 --json

Each revision is one decision: what it changed, why, and who. With --json also the candidate and
the feedback whose arrival decided it.")]
pub struct Args {
    /// Only revisions that changed this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Only revisions that changed this phrase or alias
    #[arg(long, value_name = "PHRASE", default_value = "", hide_default_value = true)]
    key: String,
    /// Only revisions of this import
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    operation: String,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
}

/// Lists the revisions, newest first.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let (revisions, more) = list(context, args.limit, &|page_size, page_token| {
        ListRevisionsRequest {
            namespace: context.namespace(),
            kind: args.kind.map_or(0, Kind::number),
            key: args.key.clone(),
            operation_id: args.operation.clone(),
            page_size,
            page_token,
        }
    })
    .await?;
    output.results(&revisions, view::revision, table, &context.none_of("revisions"))?;
    super::candidates::note_more(more);
    Ok(())
}

/// Revisions, newest first, at most `limit` (0: all), and whether there are more.
pub async fn list(
    context: &Context,
    limit: usize,
    request: &dyn Fn(i32, String) -> ListRevisionsRequest,
) -> Result<(Vec<Revision>, bool)> {
    let client = context.resources().await?;
    let (revisions, more) = pages(limit, 500, |page_size, page_token| {
        let mut client = client.clone();
        async move {
            let first = context.request(request(page_size, page_token));
            let page = client.list_revisions(first).await?.into_inner();
            let (mut parts, mut token) = (page.revisions, page.next_page_token);
            // Revisions are always shown complete, so that a person who reverts one has seen all of it.
            while parts.last().is_some_and(|last| last.changes_continue) && !token.is_empty() {
                let rest = context.request(request(1, token));
                let page = client.list_revisions(rest).await?.into_inner();
                parts.extend(page.revisions);
                token = page.next_page_token;
            }
            Ok((joined(parts), token))
        }
    })
    .await?;
    Ok((revisions, more))
}

/// Joins revisions that were sent in parts.
fn joined(parts: Vec<Revision>) -> Vec<Revision> {
    let mut revisions: Vec<Revision> = Vec::with_capacity(parts.len());
    for part in parts {
        match revisions.last_mut() {
            Some(last) if last.changes_continue && last.revision == part.revision => {
                last.changes.extend(part.changes);
                last.changes_continue = part.changes_continue;
            }
            _ => revisions.push(part),
        }
    }
    revisions
}

fn table(revisions: &[Revision]) -> Table {
    let mut table = Table::new([
        ("REVISION", Column::Number),
        ("AT", Column::Fixed),
        ("CAUSE", Column::Fixed),
        ("BY", Column::Text),
        ("WHAT", Column::Text),
        ("REASON", Column::Text),
    ]);
    for revision in revisions {
        let actor = revision.actor.clone().unwrap_or_default();
        let by = if actor.on_behalf_of.is_empty() {
            actor.caller
        } else {
            actor.on_behalf_of
        };
        for (index, change) in revision.changes.iter().enumerate() {
            // A revision's own columns are filled only in the row of its first change.
            let first_row = |text: String| if index == 0 { text } else { String::new() };
            table.row([
                first_row(revision.revision.to_string()),
                first_row(view::short_time(revision.committed_at.as_ref())),
                first_row(words::cause_name(revision.cause)),
                first_row(by.clone()),
                what(change),
                first_row(revision.reason.clone()),
            ]);
        }
    }
    table
}

fn what(change: &RevisionChange) -> String {
    let key = change.key.clone().unwrap_or_default();
    let scope = if key.user_id.is_empty() {
        String::new()
    } else {
        format!(" (for {})", key.user_id)
    };
    let [before, after] = [&change.before, &change.after].map(|value| view::learned(value.as_ref()));
    let pair = |learned: &_| view::pair(&key.key, learned);
    let text = match (before, after) {
        (None, None) => key.key.clone(),
        (None, Some(after)) => pair(&after),
        (Some(before), Some(after)) => format!("{}, was {}", pair(&after), view::learned_text(&before)),
        (Some(before), None) if key.qualifier.is_empty() => {
            format!("{} deleted, was {}", key.key, view::learned_text(&before))
        }
        (Some(before), None) => format!("{} deleted", pair(&before)),
    };
    text + &scope
}
