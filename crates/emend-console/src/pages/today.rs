//! What was learned since yesterday, what waits, and what needs somebody's attention first.

use askama::Template;
use emend_core::Kind;
use emend_proto::{
    feedback::v1::ListDeadLettersRequest,
    learning::v1::{DelayHistogram, GetQueueStatsRequest, GetQueueStatsResponse, ListRevisionsRequest, Node},
};
use http::StatusCode;
use jiff::{ToSpan as _, civil::Date, tz::TimeZone};
use prost_types::Timestamp;
use tonic::Status;

use crate::{
    failure::{Failure, Refused},
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::{
        fleet,
        log::{Line, line},
    },
    text::{Moment, count, moment, sparkline},
};

/// How many days the small charts show.
const DAYS: i32 = 14;

/// The page.
#[derive(Debug, Template)]
#[template(path = "today.html")]
struct Today {
    page: Page,
    attention: Vec<Attention>,
    figures: Vec<Figure>,
    kinds: Vec<KindLine>,
    lines: Vec<Line>,
    failures: Vec<Failure>,
    effect: Option<Effect>,
    /// Nothing was learned in the namespace or came lately: perhaps its name was mistyped.
    is_unknown: bool,
}

/// Something that somebody should look at.
#[derive(Debug)]
struct Attention {
    text: String,
    href: String,
    is_bad: bool,
}

/// A number and how it came about.
#[derive(Debug)]
struct Figure {
    label: &'static str,
    value: String,
    since: String,
    points: String,
}

/// What happened to one kind.
#[derive(Debug)]
struct KindLine {
    label: String,
    /// What is learned of it.
    href: String,
    /// What of it waits.
    review: String,
    received: i64,
    applied: i64,
    rejected: i64,
    withdrawn: i64,
    waiting: i64,
    oldest: Moment,
    points: String,
}

/// How long it takes until nodes have what was committed, as they measured it.
#[derive(Debug)]
struct Effect {
    nodes: usize,
    behind: usize,
    p50: String,
    p99: String,
}

/// Shows the page. A service that is away leaves its part empty and says so.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let services = &visitor.services;
    let namespace = || visitor.namespace.clone();
    let (mut candidates, mut resources) = (services.candidates(), services.resources());
    let mut feedback = services.feedback();
    let stats = candidates.get_queue_stats(services.call(GetQueueStatsRequest {
        namespace: namespace(),
        days: DAYS,
    }));
    let revisions = resources.list_revisions(services.call(ListRevisionsRequest {
        namespace: namespace(),
        page_size: 30,
        ..ListRevisionsRequest::default()
    }));
    let fleet = async {
        if !visitor.may("learning.v1.SubscriptionService/ListNodes") {
            return Ok(Vec::new());
        }
        fleet::all(visitor).await
    };
    let letters = async {
        if !visitor.may("feedback.v1.FeedbackService/ListDeadLetters") {
            return Ok(0);
        }
        let request = services.call(ListDeadLettersRequest {
            namespace: namespace(),
            ..ListDeadLettersRequest::default()
        });
        Ok::<_, Status>(
            feedback
                .list_dead_letters(request)
                .await?
                .into_inner()
                .dead_letters
                .len(),
        )
    };
    let (stats, revisions, fleet, letters) = tokio::join!(stats, revisions, fleet, letters);
    let mut failures = Vec::new();
    let stats = part(visitor, stats.map(tonic::Response::into_inner), &mut failures)?;
    let revisions = part(visitor, revisions.map(tonic::Response::into_inner), &mut failures)?;
    let fleet = part(visitor, fleet, &mut failures)?;
    let letters = part(visitor, letters, &mut failures)?;
    let is_unknown = failures.is_empty()
        && stats.days.is_empty()
        && stats.waiting.is_empty()
        && revisions.revisions.is_empty()
        && letters == 0
        && stats.frozen_kinds.is_empty();
    failures.dedup_by(|one, another| one.title == another.title);
    let page = visitor.page(Part::Today, visitor.t("Today", "今日"), fields);
    let today = visitor.console.clock.now().to_zoned(TimeZone::UTC).date();
    let http = failures.first().map_or(StatusCode::OK, |failure| failure.status);
    let newest = revisions
        .revisions
        .first()
        .and_then(|revision| revision.committed_at);
    let behind = fleet.iter().filter(|node| is_behind(node, newest)).count();
    let today = Today {
        attention: attention(visitor, &stats, (&fleet, behind), letters),
        is_unknown,
        figures: figures(visitor, &stats, today),
        kinds: kind_lines(visitor, &stats, today),
        lines: revisions
            .revisions
            .iter()
            .flat_map(|revision| line(visitor, revision))
            // Of examples only the newest are kept, and stand in a line of their own.
            .filter(|line| !line.is_dropped)
            .map(|line| Line {
                href: visitor.and_back(&line.href),
                ..line
            })
            .take(12)
            .collect(),
        effect: effect(&fleet, behind),
        failures,
        page,
    };
    Ok(html(http, &today))
}

/// A part of the page; empty if its service failed, unless the person must sign in.
fn part<T: Default>(
    visitor: &Visitor,
    answer: Result<T, Status>,
    failures: &mut Vec<Failure>,
) -> Result<T, Refused> {
    match answer {
        Ok(part) => Ok(part),
        Err(status) if status.code() == tonic::Code::Unauthenticated => Err(status.into()),
        Err(status) => {
            failures.push(visitor.failure(&status));
            Ok(T::default())
        }
    }
}

/// The days that are shown, oldest first, as the service names them.
fn days(today: Date) -> Vec<String> {
    (0..DAYS)
        .rev()
        .filter_map(|back| today.checked_sub(back.days()).ok())
        .map(|day| day.to_string())
        .collect()
}

fn figures(visitor: &Visitor, stats: &GetQueueStatsResponse, today: Date) -> Vec<Figure> {
    let days = days(today);
    let figure = |label, of_day: fn(&emend_proto::learning::v1::QueueDay) -> i64| {
        let values: Vec<i64> = days
            .iter()
            .map(|day| {
                stats
                    .days
                    .iter()
                    .filter(|known| known.day == *day)
                    .map(of_day)
                    .sum()
            })
            .collect();
        let [.., yesterday, today] = values[..] else {
            return None;
        };
        let since = match visitor.language {
            crate::text::Language::English => format!("yesterday {}", count(yesterday)),
            crate::text::Language::Japanese => format!("昨日 {}", count(yesterday)),
        };
        Some(Figure {
            label,
            value: count(today),
            since,
            points: sparkline(&values, 120, 34),
        })
    };
    [
        figure(visitor.t("Corrections today", "今日の修正"), |day| {
            day.received_count
        }),
        figure(visitor.t("Learned today", "今日の学習"), |day| {
            day.applied_count
        }),
        figure(visitor.t("Rejected today", "今日の却下"), |day| {
            day.rejected_count
        }),
        figure(visitor.t("Withdrawn today", "今日の取り下げ"), |day| {
            day.withdrawn_count
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn kind_lines(visitor: &Visitor, stats: &GetQueueStatsResponse, today: Date) -> Vec<KindLine> {
    let days = days(today);
    let lines = Kind::ALL.into_iter().filter_map(|kind| {
        let number = kind.number();
        let of_kind: Vec<_> = stats.days.iter().filter(|day| day.kind == number).collect();
        let waiting = stats.waiting.iter().find(|waiting| waiting.kind == number);
        if of_kind.is_empty() && waiting.is_none() {
            return None;
        }
        let values: Vec<i64> = days
            .iter()
            .map(|day| {
                of_kind
                    .iter()
                    .filter(|known| known.day == *day)
                    .map(|day| day.received_count)
                    .sum()
            })
            .collect();
        let two_days = &days[days.len().saturating_sub(2)..];
        let recent = || of_kind.iter().filter(|day| two_days.contains(&day.day));
        Some(KindLine {
            label: visitor.language.kind(number),
            href: visitor.to(Part::Learned, &Fields::default().with("kind", kind.name())),
            review: visitor.and_back(&visitor.to(Part::Review, &Fields::default().with("kind", kind.name()))),
            received: recent().map(|day| day.received_count).sum(),
            applied: recent().map(|day| day.applied_count).sum(),
            rejected: recent().map(|day| day.rejected_count).sum(),
            withdrawn: recent().map(|day| day.withdrawn_count).sum(),
            waiting: waiting.map_or(0, |waiting| waiting.count),
            oldest: moment(waiting.and_then(|waiting| waiting.oldest_created_at.as_ref())),
            points: sparkline(&values, 120, 24),
        })
    });
    lines.collect()
}

/// A number of things and what they do.
fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn attention(
    visitor: &Visitor,
    stats: &GetQueueStatsResponse,
    (nodes, behind): (&[Node], usize),
    letters: usize,
) -> Vec<Attention> {
    let english = visitor.language == crate::text::Language::English;
    let mut found = Vec::new();
    let mut add = |text: String, part: Part, is_bad: bool| {
        found.push(Attention {
            text,
            href: visitor.and_back(&visitor.to(part, &Fields::default())),
            is_bad,
        });
    };
    let waiting: i64 = stats.waiting.iter().map(|waiting| waiting.count).sum();
    let (away, rejecting) = (
        nodes.iter().filter(|node| !node.connected).count(),
        nodes.iter().filter(|node| node.rejected_count > 0).count(),
    );
    if letters > 0 {
        let text = if english {
            counted(
                letters,
                "correction could not be delivered",
                "corrections could not be delivered",
            )
        } else {
            format!("{letters} 件の修正を配送できませんでした")
        };
        add(text, Part::Fleet, true);
    }
    if !stats.frozen_kinds.is_empty() {
        let frozen = stats.frozen_kinds.iter();
        let names: Vec<String> = frozen.map(|kind| visitor.language.kind(*kind)).collect();
        let text = if english {
            format!(
                "Frozen: {}. Corrections are kept, and nothing is learned from them.",
                names.join(", ")
            )
        } else {
            format!(
                "凍結中: {}。修正は保存されますが、学習されません。",
                names.join("、")
            )
        };
        add(text, Part::Policies, true);
    }
    if rejecting > 0 {
        let text = if english {
            counted(
                rejecting,
                "node rejects something that was learned",
                "nodes reject something that was learned",
            )
        } else {
            format!("{rejecting} 台のノードが学習結果の一部を拒否しています")
        };
        add(text, Part::Fleet, true);
    }
    if away > 0 {
        let text = if english {
            counted(away, "node is not connected", "nodes are not connected")
        } else {
            format!("{away} 台のノードが未接続です")
        };
        add(text, Part::Fleet, true);
    }
    if behind > 0 {
        let text = if english {
            counted(behind, "node is behind", "nodes are behind")
        } else {
            format!("{behind} 台のノードが遅れています")
        };
        add(text, Part::Fleet, false);
    }
    if waiting > 0 {
        let is_one = waiting == 1;
        let waiting = count(waiting);
        let text = if english {
            format!("{waiting} {} for a person", if is_one { "waits" } else { "wait" })
        } else {
            format!("{waiting} 件がレビュー待ちです")
        };
        add(text, Part::Review, false);
    }
    found
}

/// From which bound on a part of all delays lies: the upper end of the bucket; none if nothing was measured.
pub(crate) fn quantile(histograms: &[&DelayHistogram], part: f64) -> Option<String> {
    let mut buckets: Vec<(i64, i64)> = Vec::new();
    for histogram in histograms {
        let bounds = histogram.bounds_ms.iter().copied().chain([i64::MAX]);
        buckets.extend(bounds.zip(histogram.counts.iter().copied()));
    }
    buckets.sort_unstable();
    let total: i64 = buckets.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of delays, far below 2^52")]
    let wanted = total as f64 * part;
    let mut seen = 0;
    let (bound, _) = buckets.iter().find(|(_, count)| {
        seen += count;
        #[expect(clippy::cast_precision_loss, reason = "counts of delays, far below 2^52")]
        let seen = seen as f64;
        seen >= wanted
    })?;
    Some(if *bound == i64::MAX {
        let most = buckets
            .iter()
            .map(|(bound, _)| *bound)
            .filter(|bound| *bound < i64::MAX)
            .max();
        format!("> {} ms", most.unwrap_or(0))
    } else {
        format!("≤ {bound} ms")
    })
}

/// Whether a node said that it lacks the newest revision. Nodes report some seconds apart: what one said before that revision was
/// there says nothing of it.
fn is_behind(node: &Node, newest: Option<Timestamp>) -> bool {
    let time = |at: Option<Timestamp>| at.map_or((0, 0), |at| (at.seconds, at.nanos));
    node.lag_revisions > 0 && time(node.seen_at) > time(newest)
}

fn effect(nodes: &[Node], behind: usize) -> Option<Effect> {
    let delays: Vec<_> = nodes.iter().filter_map(|node| node.delays.as_ref()).collect();
    Some(Effect {
        nodes: nodes.len(),
        behind,
        p50: quantile(&delays, 0.5)?,
        p99: quantile(&delays, 0.99)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_reported_before_the_newest_revision_is_not_behind() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        let node = |lag_revisions, seen| Node {
            lag_revisions,
            seen_at: at(seen),
            ..Node::default()
        };
        assert!(is_behind(&node(1, 11), at(10)));
        assert!(!is_behind(&node(1, 9), at(10)));
        assert!(!is_behind(&node(0, 11), at(10)));
    }

    #[test]
    fn a_quantile_is_the_upper_end_of_its_bucket() {
        let one = DelayHistogram {
            bounds_ms: vec![1, 10],
            counts: vec![98, 1, 1],
            sum_ms: 0,
        };
        assert_eq!(quantile(&[&one], 0.5).as_deref(), Some("≤ 1 ms"));
        assert_eq!(quantile(&[&one], 0.99).as_deref(), Some("≤ 10 ms"));
        assert_eq!(quantile(&[&one], 1.0).as_deref(), Some("> 10 ms"));
        assert_eq!(quantile(&[&DelayHistogram::default()], 0.5), None);
        assert_eq!(quantile(&[&one, &one], 0.5).as_deref(), Some("≤ 1 ms"));
    }
}
