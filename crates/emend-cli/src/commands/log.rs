//! `emend log`: shows the audit trail.

use emend_core::{Key, Kind as CoreKind};
use emend_proto::{
    common::v1::ResourceKey,
    learning::v1::{ListRevisionsRequest, Revision, RevisionChange},
};

use crate::{
    context::{Context, pages},
    failure::Result,
    output::{Cell, Column, Output, Table},
    view,
    words::{self, Kind},
};

/// Which revisions to list.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend log --limit 20
  emend log --key \"set up a CSA\"
  emend log --revision 17
  emend log --operation 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10 --json

Each revision is one decision: what it changed, why, and who. With --key or --kind the table shows
only those of its changes that were asked for, and how many others there are. With --json a revision
is always whole, with the candidate and the feedback whose arrival decided it.")]
pub struct Args {
    /// Only revisions that changed this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Only revisions that changed this phrase or alias
    #[arg(long, value_name = "PHRASE", default_value = "", hide_default_value = true)]
    key: String,
    /// Only this revision
    #[arg(long, value_name = "REVISION", default_value_t = 0, hide_default_value = true)]
    revision: i64,
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
            revision: args.revision,
        }
    })
    .await?;
    let is_filtered =
        !args.key.is_empty() || args.kind.is_some() || !args.operation.is_empty() || args.revision != 0;
    output.list(
        &revisions,
        more,
        view::message,
        |revisions| table(revisions, asked_for(&args)),
        &context.none_found("revisions", is_filtered),
    )
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

/// A row for each change that is asked for, and one that says how many others a revision made.
fn table(revisions: &[Revision], is_asked_for: impl Fn(&ResourceKey) -> bool) -> Table {
    let mut table = Table::new([
        ("REVISION", Column::Number),
        ("AT", Column::Time),
        ("CAUSE", Column::Fixed),
        ("BY", Column::Text),
        ("WHAT", Column::Text),
        ("REASON", Column::Text),
    ]);
    for revision in revisions {
        let actor = revision.actor.clone().unwrap_or_default();
        let by = match (&*actor.on_behalf_of, &*actor.caller) {
            ("", caller) => caller.to_owned(),
            // Who calls is not known.
            (person, "anonymous") => person.to_owned(),
            (person, caller) => format!("{person} ({caller})"),
        };
        let of_key = |change: &&RevisionChange| change.key.as_ref().is_some_and(&is_asked_for);
        let mut shown: Vec<Cell> = revision.changes.iter().filter(of_key).map(subject).collect();
        match revision.changes.len() - shown.len() {
            0 => {}
            1 => shown.push("(and 1 other change)".to_owned().into()),
            others => shown.push(format!("(and {others} other changes)").into()),
        }
        for (index, what) in shown.into_iter().enumerate() {
            // A revision's own columns are filled only in the row of its first change.
            let first_row = |text: String| Cell::whole(if index == 0 { text } else { String::new() });
            table.row([
                first_row(revision.revision.to_string()),
                first_row(view::short_time(revision.committed_at.as_ref())),
                first_row(words::cause_name(revision.cause)),
                first_row(by.clone()),
                what,
                first_row(revision.reason.clone()),
            ]);
        }
    }
    table
}

/// Tells the changes that the options ask for from others of the same revisions.
fn asked_for(args: &Args) -> impl Fn(&ResourceKey) -> bool + use<> {
    let kind = args.kind.map(Kind::number);
    // The server has found something by the key, so that it is valid in some kind's form.
    let keys = (!args.key.is_empty()).then(|| Key::of_any(&CoreKind::ALL, &args.key).unwrap_or_default());
    move |key| {
        kind.is_none_or(|kind| kind == key.kind)
            && keys
                .as_ref()
                .is_none_or(|keys| keys.iter().any(|asked| asked.as_str() == key.key))
    }
}

fn subject(change: &RevisionChange) -> Cell {
    let key = change.key.clone().unwrap_or_default();
    let [before, after] = [&change.before, &change.after].map(|value| view::learned(value.as_ref()));
    let rest = match (before, after) {
        (None, None) => String::new(),
        (None, Some(after)) => view::arrow_text(&after),
        (Some(before), Some(after)) => {
            format!(
                "{}, was {}",
                view::arrow_text(&after),
                view::learned_text(&before)
            )
        }
        (Some(before), None) if key.qualifier.is_empty() => {
            format!(" deleted, was {}", view::learned_text(&before))
        }
        (Some(before), None) => format!("{} deleted", view::arrow_text(&before)),
    };
    Cell::whole(key.key + &rest + &view::for_user(&key.user_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_large_revision_only_the_changes_of_the_key_are_shown() {
        let change = |key: &str, user_id: &str| RevisionChange {
            key: Some(ResourceKey {
                kind: 1,
                key: key.into(),
                user_id: user_id.into(),
                ..ResourceKey::default()
            }),
            ..RevisionChange::default()
        };
        let args = Args {
            kind: None,
            key: "  相手の リーダー".into(),
            operation: String::new(),
            revision: 0,
            limit: 0,
        };
        let shown = |changes: Vec<RevisionChange>| {
            let revision = Revision {
                revision: 7,
                changes,
                ..Revision::default()
            };
            table(&[revision], asked_for(&args)).render(100)
        };
        let all = vec![
            change("a", ""),
            change("相手の リーダー", ""),
            change("相手の リーダー", "mia"),
            change("b", ""),
        ];
        let text = shown(all);
        let rows: Vec<_> = text.lines().skip(1).map(str::trim_end).collect();
        assert!(
            rows[0].trim_start().starts_with('7') && rows[0].ends_with("相手の リーダー"),
            "{text}"
        );
        assert!(rows[1].ends_with("相手の リーダー (for mia)"), "{text}");
        assert!(
            rows[2].ends_with("(and 2 other changes)") && rows.len() == 3,
            "{text}"
        );
        assert!(!shown(vec![change("相手の リーダー", "")]).contains("other change"));
    }

    #[test]
    fn the_log_fits_a_terminal_of_80_columns() {
        let change = RevisionChange {
            key: Some(ResourceKey {
                kind: 1,
                key: "set up a credit support annex for a new counterparty".into(),
                ..ResourceKey::default()
            }),
            ..RevisionChange::default()
        };
        let revision = Revision {
            revision: 1_234,
            changes: vec![change],
            ..Revision::default()
        };
        let text = table(&[revision], |_| true).render(80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("counterparty"), "{text}");
    }
}
