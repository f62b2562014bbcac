//! `emend evidence events`: what was done to the evidence graph, and by whom.

use emend_core::Kind;
use emend_proto::learning::v1::{
    EvidenceElement, EvidenceEvent, ListEvidenceEventsRequest, evidence_element::Element,
};
use prost_types::Timestamp;

use crate::{
    context::Context,
    failure::Result,
    output::{Cell, Column, Output, Table},
    view, words,
};

/// Which events.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence events --claim claim:12
  emend evidence events --domain spam.example
  emend evidence events --task t1 --from 2026-01-31

With authentication it needs the role reviewer.")]
#[command(group = clap::ArgGroup::new("about").args(["claim", "edge", "domain", "page", "fragment"]))]
pub(super) struct Args {
    /// Only what was done to this claim
    #[arg(long, value_name = "ID")]
    claim: Option<String>,
    /// Only what was done to this edge
    #[arg(long, value_name = "ID")]
    edge: Option<String>,
    /// Only what was done to this pattern of domains
    #[arg(long, value_name = "PATTERN")]
    domain: Option<String>,
    /// Only what was replaced or deleted of this page
    #[arg(long, value_name = "ID")]
    page: Option<String>,
    /// Only what was replaced or deleted of this fragment
    #[arg(long, value_name = "ID")]
    fragment: Option<String>,
    /// Only what was done in this task
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    task: String,
    /// Only what this authenticated caller did
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    caller: String,
    #[command(flatten)]
    period: Period,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
}

/// From when to when.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Period {
    /// Only at or after this time or date
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    pub(super) from: Option<Timestamp>,
    /// Only before this time or date
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    pub(super) to: Option<Timestamp>,
}

/// Lists events.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let about = [
        (Kind::ClaimState, args.claim),
        (Kind::EdgeLabel, args.edge),
        (Kind::DomainRule, args.domain),
    ];
    let about = about
        .into_iter()
        .find_map(|(kind, target)| Some((kind.number(), target?)));
    let (kind, target) = about.unwrap_or_default();
    let page = args.page.map(Element::PageId);
    let element = page.or(args.fragment.map(Element::FragmentId));
    let element = element.map(|element| EvidenceElement {
        element: Some(element),
    });
    let request = ListEvidenceEventsRequest {
        namespace: context.namespace(),
        target,
        kind,
        element,
        task_id: args.task,
        caller: args.caller,
        from: args.period.from,
        to: args.period.to,
        ..ListEvidenceEventsRequest::default()
    };
    let is_filtered = request
        != ListEvidenceEventsRequest {
            namespace: context.namespace(),
            ..ListEvidenceEventsRequest::default()
        };
    let (events, more) = context.list(&request, args.limit).await?;
    output.list(
        &events,
        more,
        view::evidence::evidence_event,
        table,
        &context.none_found("events", is_filtered),
    )
}

fn table(events: &[EvidenceEvent]) -> Table {
    Table::new([
        ("AT", Column::Time),
        ("ACTION", Column::Fixed),
        ("KIND", Column::Fixed),
        ("TARGET", Column::Text),
        ("CHANGE", Column::Text),
        ("BY", Column::Text),
        ("REPORTER", Column::Text),
        ("REASON", Column::Text),
    ])
    .with_rows(events, |event| {
        let key = event.key.clone().unwrap_or_default();
        let actor = event.actor.clone().unwrap_or_default();
        let kind = words::kind_name(key.kind);
        let (kind, target) = view::evidence::element(event).map_or(
            (kind.split('_').next().unwrap_or_default(), key.key.as_str()),
            |element| element,
        );
        let by = if actor.on_behalf_of.is_empty() {
            actor.caller
        } else {
            actor.on_behalf_of
        };
        [
            view::short_time(event.at.as_ref()).into(),
            view::evidence::action(event.action).unwrap_or_default().into(),
            kind.to_owned().into(),
            Cell::whole(target.to_owned()),
            Cell::whole(change(event)),
            by.into(),
            event.reporter.clone().into(),
            event.reason.clone().into(),
        ]
    })
}

/// What an event changed, or that it changed nothing.
fn change(event: &EvidenceEvent) -> String {
    let or_none = |word: &str| if word.is_empty() { "–" } else { word }.to_owned();
    let (before, after) = (or_none(&event.before), or_none(&event.after));
    match &*event.proposed {
        _ if before != after => format!("{before} → {after}"),
        "" => format!("{after}, as before"),
        proposed if proposed == after => format!("{after}, as before"),
        proposed => format!("{after}, not {proposed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_what_it_changed_or_why_nothing() {
        let event = |before: &str, after: &str, proposed: &str| {
            change(&EvidenceEvent {
                before: before.into(),
                after: after.into(),
                proposed: proposed.into(),
                ..EvidenceEvent::default()
            })
        };
        assert_eq!(event("", "refutes", "refutes"), "– → refutes");
        assert_eq!(event("refutes", "", ""), "refutes → –");
        assert_eq!(event("refutes", "refutes", "refutes"), "refutes, as before");
        assert_eq!(event("refutes", "refutes", "neutral"), "refutes, not neutral");
        assert_eq!(event("", "", "neutral"), "–, not neutral");
    }
}
