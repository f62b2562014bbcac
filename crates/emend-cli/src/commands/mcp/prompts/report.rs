//! What the learning report of a day is made of.

use emend_proto::learning::v1::{GetQueueStatsRequest, ListRevisionsRequest, QueueDay, QueueWaiting};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::{Value, json};

use super::super::{Server, answers, invalid, results};
use crate::{failure::Result, view, words};

/// How long figures of days are kept, today included.
const DAYS: i32 = 90;
/// How many changes of a day are told, and how many revisions are read for them.
const CHANGES: usize = 200;
const REVISIONS: usize = 5_000;
const PAGE: i32 = 500;

impl Server {
    /// The figures of a day, what changed on it, and what waits now.
    pub(super) async fn report(&self, day: Option<&str>) -> Result<Value> {
        let today = day_of(self.context.clock.now());
        let day = match day {
            None => today,
            Some(day) => day
                .parse()
                .map_err(|_| invalid("day", "must be a day as YYYY-MM-DD"))?,
        };
        let ago = today.since(day).map_or(-1, |span| span.get_days());
        if !(0..DAYS).contains(&ago) {
            return Err(invalid(
                "day",
                format!("must be from today to {} days ago", DAYS - 1),
            ));
        }
        let request = GetQueueStatsRequest {
            namespace: self.context.namespace(),
            days: ago + 1,
        };
        let mut client = self.context.candidates().await?;
        let stats = client
            .get_queue_stats(self.context.request(request))
            .await?
            .into_inner();
        let name = day.to_string();
        let figures = stats.days.iter().filter(|figures| figures.day == name);
        let (changes, has_more) = self.changes_on(day).await?;
        let data = json!({
            "message": "What happened on the day, in UTC, and what waits for a person now.",
            "day": name,
            "figures": figures.map(figures_of).collect::<Vec<_>>(),
            "waiting": stats.waiting.iter().map(waiting).collect::<Vec<_>>(),
            "changes": changes,
            "changes_not_shown": has_more,
        });
        Ok(answers::REPORT.marked(data))
    }

    /// What changed on a day, the newest first, and whether there is more.
    async fn changes_on(&self, day: Date) -> Result<(Vec<Value>, bool)> {
        let mut client = self.context.resources().await?;
        let (mut changes, mut read, mut page_token) = (Vec::new(), 0, String::new());
        loop {
            let request = ListRevisionsRequest {
                namespace: self.context.namespace(),
                page_size: PAGE,
                page_token,
                ..ListRevisionsRequest::default()
            };
            let page = client
                .list_revisions(self.context.request(request))
                .await?
                .into_inner();
            for revision in page.revisions {
                let at = revision.committed_at.as_ref().and_then(view::instant).map(day_of);
                if at.is_none_or(|at| at < day) {
                    return Ok((changes, false));
                }
                read += 1;
                if at != Some(day) {
                    continue;
                }
                for change in &revision.changes {
                    let key = change.key.clone().unwrap_or_default();
                    // What is one user's own is nobody's report.
                    if !key.user_id.is_empty() {
                        continue;
                    }
                    if changes.len() == CHANGES {
                        return Ok((changes, true));
                    }
                    let mut shown = results::changed(&revision, change, &key);
                    shown["key"] = key.key.into();
                    changes.push(shown);
                }
            }
            page_token = page.next_page_token;
            if page_token.is_empty() || read >= REVISIONS {
                return Ok((changes, !page_token.is_empty()));
            }
        }
    }
}

fn day_of(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

fn figures_of(day: &QueueDay) -> Value {
    json!({
        "type": words::kind_name(day.kind),
        "received": day.received_count,
        "applied": day.applied_count,
        "rejected": day.rejected_count,
        "withdrawn": day.withdrawn_count,
    })
}

fn waiting(waiting: &QueueWaiting) -> Value {
    json!({
        "type": words::kind_name(waiting.kind),
        "count": waiting.count,
        "oldest_at": view::time(waiting.oldest_created_at.as_ref()),
    })
}
