//! The search nodes: how far each is, what it rejects, how long what was learned takes to reach them, and what feedback-svc could
//! not deliver.

use askama::Template;
use emend_proto::{
    feedback::v1::{ListDeadLettersRequest, RedriveDeadLettersRequest},
    learning::v1::{DelayHistogram, ListNodesRequest, Node, NodeState},
};
use http::StatusCode;
use tonic::Status;

use crate::{
    failure::{Failure, Refused},
    form::Fields,
    page::{Answer, Page, Part, TOLD, Visitor, html},
    pages::{Choice, learned, links, today::quantile},
    text::{self, Moment, moment},
    told::Told,
};

const PAGE: i32 = 100;
/// How many nodes are read at once for the figures of the whole fleet, and how often.
const ALL: i32 = 1_000;
const MOST_PAGES: usize = 20;
/// How many dead letters are shown.
const LETTERS: i32 = 50;
/// The label that says what sort of node one is.
const SORT: &str = "kind";
/// How many rejected resources of a node are shown.
const REJECTED: usize = 10;
/// What a node may be looked for by.
const STATES: [(&str, NodeState); 4] = [
    ("", NodeState::Unspecified),
    ("behind", NodeState::Behind),
    ("away", NodeState::Disconnected),
    ("rejecting", NodeState::Rejecting),
];

/// The page.
#[derive(Debug, Template)]
#[template(path = "fleet.html")]
struct Fleet {
    page: Page,
    shows: Vec<Choice>,
    zone: String,
    label: String,
    is_filtered: bool,
    head: i64,
    nodes: Vec<Row>,
    bars: Vec<Bar>,
    step: usize,
    p50: Option<String>,
    p99: Option<String>,
    letters: Option<Letters>,
    may_redrive: bool,
    first: Option<String>,
    next: Option<String>,
}

/// A node.
#[derive(Debug)]
struct Row {
    id: String,
    /// What sort of node it is, where that is no search node: an edge, or the engine of a sink.
    sort: String,
    version: String,
    zone: String,
    labels: Vec<String>,
    is_connected: bool,
    applied: i64,
    lag: i64,
    rejected_count: i64,
    rejected: Vec<Rejected>,
    problem: String,
    connected: Moment,
    seen: Moment,
}

/// A resource that a node could not use.
#[derive(Debug)]
struct Rejected {
    href: Option<String>,
    kind: String,
    key: String,
    revision: i64,
    error: String,
}

/// What could not be delivered: one page of it.
#[derive(Debug)]
struct Letters {
    rows: Vec<Letter>,
    first: Option<String>,
    next: Option<String>,
}

/// How wide a bar of the histogram is with the room beside it.
const STEP: usize = 56;

/// A bar of the histogram: where it begins and has its middle, how high it is, and what it counts.
#[derive(Debug, PartialEq)]
struct Bar {
    x: usize,
    middle: usize,
    y: f64,
    height: f64,
    label: String,
    /// The same, as an axis has it.
    tick: String,
    count: i64,
}

/// An event that could not be delivered.
#[derive(Debug)]
struct Letter {
    event: String,
    feedback: String,
    error: String,
    attempts: i32,
    at: Moment,
}

/// The whole fleet, whatever of it a page shows.
pub(crate) async fn all(visitor: &Visitor) -> Result<Vec<Node>, Status> {
    let (mut nodes, mut token) = (Vec::new(), String::new());
    for _ in 0..MOST_PAGES {
        let request = visitor.services.call(ListNodesRequest {
            page_size: ALL,
            page_token: token,
            ..ListNodesRequest::default()
        });
        let answer = visitor.services.nodes().list_nodes(request).await?.into_inner();
        nodes.extend(answer.nodes);
        token = answer.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    Ok(nodes)
}

/// Shows the nodes.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let wanted = STATES.iter().find(|(name, _)| *name == fields.get("show"));
    let request = ListNodesRequest {
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
        state: wanted.map_or(NodeState::Unspecified, |(_, state)| *state) as i32,
        zone: fields.get("zone").to_owned(),
        labels: fields
            .get("label")
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        ..ListNodesRequest::default()
    };
    let mut client = visitor.services.nodes();
    let answer = client
        .list_nodes(visitor.services.call(request))
        .await?
        .into_inner();
    let all = all(visitor).await?;
    let delays: Vec<&DelayHistogram> = all.iter().filter_map(|node| node.delays.as_ref()).collect();
    let labels = [
        visitor.t("all nodes", "すべて"),
        visitor.t("behind", "遅れているもの"),
        visitor.t("not connected", "未接続"),
        visitor.t("rejecting something", "拒否のあるもの"),
    ];
    let shows = STATES.iter().zip(labels);
    let kept = fields.without(&TOLD);
    let (first, next) = links(
        &visitor.to(Part::Fleet, &Fields::default()),
        &kept,
        &answer.next_page_token,
    );
    let fleet = Fleet {
        shows: shows
            .map(|((value, _), label)| Choice {
                value: (*value).to_owned(),
                label: label.to_owned(),
                is_chosen: *value == fields.get("show"),
            })
            .collect(),
        zone: fields.get("zone").to_owned(),
        label: fields.get("label").to_owned(),
        is_filtered: ["show", "zone", "label"]
            .iter()
            .any(|name| !fields.get(name).is_empty()),
        head: answer.head_revision,
        bars: bars(&delays),
        step: STEP,
        p50: quantile(&delays, 0.5),
        p99: quantile(&delays, 0.99),
        nodes: answer.nodes.iter().map(|node| row(visitor, node)).collect(),
        letters: letters(visitor, &kept).await?,
        may_redrive: visitor.may("feedback.v1.FeedbackService/RedriveDeadLetters"),
        first,
        next,
        page: visitor.page(Part::Fleet, visitor.t("Fleet", "ノード"), fields),
    };
    Ok(html(StatusCode::OK, &fleet))
}

fn row(visitor: &Visitor, node: &Node) -> Row {
    let info = node.info.clone().unwrap_or_default();
    let rejected = node.rejected.iter().take(REJECTED).map(|rejected| {
        let key = rejected.key.clone().unwrap_or_default();
        Rejected {
            href: (key.namespace == visitor.namespace).then(|| learned::address(visitor, &key)),
            kind: visitor.language.kind(key.kind),
            key: text::shortened(&key.key, 160),
            revision: rejected.revision,
            error: rejected.error.clone(),
        }
    });
    // A sink is called by its engine: `solr:cards`.
    let sort = info.labels.get(SORT).map(String::as_str);
    let sort = sort.or_else(|| info.id.split_once(':').map(|(engine, _)| engine));
    let sort = sort.unwrap_or_default().to_owned();
    let mut labels: Vec<_> = info
        .labels
        .iter()
        .filter(|(key, _)| *key != SORT)
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.sort_unstable();
    Row {
        sort,
        id: info.id,
        version: info.version,
        zone: info.zone,
        labels,
        is_connected: node.connected,
        applied: node.applied.as_ref().map_or(0, |cursor| cursor.revision),
        lag: node.lag_revisions,
        rejected_count: node.rejected_count,
        rejected: rejected.collect(),
        problem: visitor.language.problem(&node.problem),
        connected: moment(node.connected_at.as_ref()),
        seen: moment(node.seen_at.as_ref()),
    }
}

/// A time in milliseconds, as short as it can be said.
fn span(milliseconds: i64) -> String {
    if milliseconds >= 1_000 && milliseconds % 1_000 == 0 {
        format!("{} s", milliseconds / 1_000)
    } else {
        format!("{milliseconds} ms")
    }
}

/// All delays by the bounds of their buckets, as bars of up to 60 on a line at 76; without the empty ones at both ends.
fn bars(delays: &[&DelayHistogram]) -> Vec<Bar> {
    let mut buckets: Vec<(i64, i64)> = Vec::new();
    for histogram in delays {
        let bounds = histogram.bounds_ms.iter().copied().chain([i64::MAX]);
        for (bound, count) in bounds.zip(&histogram.counts) {
            match buckets.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, all)) => *all += count,
                None => buckets.push((bound, *count)),
            }
        }
    }
    buckets.sort_unstable();
    let most = buckets.iter().map(|(_, count)| *count).max().unwrap_or(0);
    if most == 0 {
        return Vec::new();
    }
    let filled = |(_, count): &(i64, i64)| *count > 0;
    let first = buckets.iter().position(filled).unwrap_or(0);
    let end = buckets.iter().rposition(filled).unwrap_or(0);
    let last = buckets
        .iter()
        .map(|(bound, _)| *bound)
        .filter(|bound| *bound < i64::MAX)
        .max();
    buckets[first..=end]
        .iter()
        .enumerate()
        .map(|(at, (bound, count))| {
            #[expect(clippy::cast_precision_loss, reason = "a chart some pixels high")]
            let height = (*count as f64 / most as f64 * 600.0).round() / 10.0;
            Bar {
                x: at * STEP + 6,
                middle: at * STEP + STEP / 2,
                y: 76.0 - height,
                height,
                tick: match (*bound, last) {
                    (i64::MAX, last) => format!("> {}", span(last.unwrap_or(0))),
                    (bound, _) => span(bound),
                },
                label: match (*bound, last) {
                    (i64::MAX, last) => format!("> {} ms", last.unwrap_or(0)),
                    (bound, _) => format!("≤ {bound} ms"),
                },
                count: *count,
            }
        })
        .collect()
}

/// What could not be delivered; none if the reader may not see it.
async fn letters(visitor: &Visitor, kept: &Fields) -> Result<Option<Letters>, Status> {
    if !visitor.may("feedback.v1.FeedbackService/ListDeadLetters") {
        return Ok(None);
    }
    let request = ListDeadLettersRequest {
        namespace: visitor.namespace.clone(),
        page_size: LETTERS,
        page_token: kept.get("letters").to_owned(),
    };
    let mut client = visitor.services.feedback();
    let answer = client
        .list_dead_letters(visitor.services.call(request))
        .await?
        .into_inner();
    let rows = answer.dead_letters.into_iter().map(|letter| Letter {
        event: letter.event_id,
        feedback: letter.feedback_id,
        error: text::shortened(&letter.error, 300),
        attempts: letter.attempts,
        at: moment(letter.dead_at.as_ref()),
    });
    let page = |token: &str| visitor.to(Part::Fleet, &kept.with("letters", token)) + "#letters";
    Ok(Some(Letters {
        rows: rows.collect(),
        first: kept.has("letters").then(|| page("")),
        next: (!answer.next_page_token.is_empty()).then(|| page(&answer.next_page_token)),
    }))
}

/// Delivers what is ticked once more.
pub(crate) async fn redrive(visitor: &Visitor, fields: &Fields) -> Answer {
    if fields.filled("event").is_empty() {
        let title = visitor.t("Nothing is ticked.", "項目が選択されていません。");
        return Err(Refused::Failed(Failure::new(StatusCode::BAD_REQUEST, title)));
    }
    let request = RedriveDeadLettersRequest {
        namespace: visitor.namespace.clone(),
        event_ids: fields.filled("event"),
    };
    let mut client = visitor.services.feedback();
    client
        .redrive_dead_letters(visitor.services.call(request))
        .await?;
    visitor.go(&visitor.to(Part::Fleet, &visitor.telling(Told::new("redriven"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_add_up_what_all_nodes_measured() {
        let one = DelayHistogram {
            bounds_ms: vec![1, 10],
            counts: vec![2, 4, 0],
            sum_ms: 0,
        };
        let other = DelayHistogram {
            bounds_ms: vec![10],
            counts: vec![4, 1],
            sum_ms: 0,
        };
        let bars = bars(&[&one, &other]);
        let shown: Vec<_> = bars.iter().map(|bar| (&*bar.label, bar.count)).collect();
        assert_eq!(shown, [("≤ 1 ms", 2), ("≤ 10 ms", 8), ("> 10 ms", 1)]);
        let ticks: Vec<_> = bars.iter().map(|bar| &*bar.tick).collect();
        assert_eq!(ticks, ["1 ms", "10 ms", "> 10 ms"]);
        assert!((bars[1].height - 60.0).abs() < 1e-9 && (bars[1].y - 16.0).abs() < 1e-9);
        let slow = DelayHistogram {
            bounds_ms: vec![1, 10, 2_000, 5_000],
            counts: vec![0, 0, 3, 0, 0],
            sum_ms: 0,
        };
        let only: Vec<_> = super::bars(&[&slow]).into_iter().map(|bar| bar.tick).collect();
        assert_eq!(only, ["2 s"], "what is empty at both ends is left out");
        assert_eq!(super::bars(&[]), []);
    }
}
