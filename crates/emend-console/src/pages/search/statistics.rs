//! Shares of negative ratings and of searches that found nothing, by week, type, version and variant.

use askama::Template;
use emend_proto::feedback::v1::{
    ClickThrough, GetFeedbackStatsRequest, RatingShare, StatsCompared, StatsComparison, StatsDimension,
    TopQuery,
};
use http::StatusCode;

use super::{percent, period::Period, ratings, tabs};
use crate::{
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::{chart::Interval, tabs::Tab},
    text::{Language, count},
};

/// How many queries are listed.
const TOP: i32 = 20;
/// How many of those that most people rated down.
const WORST: i32 = 10;

/// The page.
#[derive(Debug, Template)]
#[template(path = "search.html")]
struct Statistics {
    page: Page,
    tabs: Vec<Tab>,
    period: Period,
    query_type: String,
    total: Share,
    groups: Vec<Group>,
    /// What most people rated down.
    worst: Vec<ratings::Worst>,
    may_set: bool,
    clicks: Vec<Clicks>,
    top: Vec<Clicks>,
    variants: Vec<String>,
    one: String,
    other: String,
    compared: Option<String>,
}

/// Shares of one dimension.
#[derive(Debug)]
struct Group {
    title: &'static str,
    shares: Vec<Share>,
}

/// Shares of ratings and queries, with their uncertainty.
#[derive(Debug)]
struct Share {
    name: String,
    ratings: String,
    negative: String,
    interval: Option<Interval>,
    range: String,
    queries: String,
    zero_hits: String,
    zero_interval: Option<Interval>,
}

/// Searches, and how many led to a click.
#[derive(Debug)]
struct Clicks {
    name: String,
    searches: String,
    clicked: String,
    interval: Option<Interval>,
    zero_hits: String,
    /// The same by variant, where there are several.
    variants: Vec<Self>,
}

/// Shows the statistics.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let (one, other) = (fields.get("one"), fields.get("other"));
    let compare = (one != other).then(|| StatsComparison {
        by: StatsDimension::Variant as i32,
        one: one.to_owned(),
        other: other.to_owned(),
    });
    let period = Period::of(fields)?;
    let request = GetFeedbackStatsRequest {
        namespace: visitor.namespace.clone(),
        rated_from: period.from,
        rated_before: period.before,
        query_type: fields.get("type").to_owned(),
        compare,
        top_query_count: TOP,
        worst_query_count: WORST,
    };
    let mut client = visitor.services.queries();
    let stats = client
        .get_feedback_stats(visitor.services.call(request))
        .await?
        .into_inner();
    let unknown = visitor.t("not known", "不明");
    let group = |title, shares: &[RatingShare]| Group {
        title,
        shares: shares.iter().map(|share| shown(share, unknown)).collect(),
    };
    let recent = stats.recent.unwrap_or_default();
    let everybody = recent.all.unwrap_or_default();
    let all = clicks(visitor.t("all", "全体").to_owned(), &everybody);
    let by_variant = recent
        .variants
        .iter()
        .map(|variant| clicks(or(&variant.variant, unknown), variant));
    let page = Statistics {
        tabs: tabs(visitor, ""),
        query_type: fields.get("type").to_owned(),
        total: shown(&stats.total.unwrap_or_default(), unknown),
        groups: [
            group(visitor.t("By week", "週別"), &stats.weeks),
            group(visitor.t("By type of query", "クエリ種別"), &stats.query_types),
            group(
                visitor.t("By embedding version", "埋め込みバージョン"),
                &stats.embedding_versions,
            ),
            group(
                visitor.t("By index version", "インデックスバージョン"),
                &stats.index_versions,
            ),
            group(visitor.t("By variant", "バリアント別"), &stats.variants),
        ]
        .into_iter()
        .filter(|group| !group.shares.is_empty())
        .collect(),
        worst: ratings::worst(visitor, fields, stats.worst.unwrap_or_default()),
        may_set: visitor.may("learning.v1.ResourceService/PutResource"),
        clicks: std::iter::once(all).chain(by_variant).collect(),
        top: recent
            .top_queries
            .iter()
            .map(|query| top(query, unknown))
            .collect(),
        variants: stats
            .variants
            .iter()
            .map(|variant| variant.name.clone())
            .filter(|name| !name.is_empty())
            .collect(),
        compared: stats
            .compared
            .as_ref()
            .map(|compared| verdict(visitor.language, compared)),
        one: one.to_owned(),
        other: other.to_owned(),
        page: visitor.page(Part::Search, visitor.t("Search", "検索"), fields),
        period,
    };
    Ok(html(StatusCode::OK, &page))
}

fn or(name: &str, unknown: &str) -> String {
    if name.is_empty() { unknown } else { name }.to_owned()
}

fn shown(share: &RatingShare, unknown: &str) -> Share {
    let interval = share
        .negative_share
        .zip(share.negative_share_low.zip(share.negative_share_high));
    let zero_interval = share
        .zero_hit_share
        .zip(share.zero_hit_share_low.zip(share.zero_hit_share_high));
    Share {
        name: or(&share.name, unknown),
        ratings: count(share.rating_count),
        negative: percent(share.negative_share),
        range: interval.map_or_else(String::new, |(_, (low, high))| {
            format!("{} – {}", percent(Some(low)), percent(Some(high)))
        }),
        interval: interval.map(|(mean, (low, high))| Interval::between(low, mean, high)),
        queries: count(share.query_count),
        zero_hits: percent(share.zero_hit_share),
        zero_interval: zero_interval.map(|(mean, (low, high))| Interval::between(low, mean, high)),
    }
}

fn top(query: &TopQuery, unknown: &str) -> Clicks {
    let all = query.all.clone().unwrap_or_default();
    let mut top = clicks(query.query_text.clone(), &all);
    if query.variants.len() > 1 {
        let variants = query.variants.iter();
        top.variants = variants
            .map(|variant| clicks(or(&variant.variant, unknown), variant))
            .collect();
    }
    top
}

fn clicks(name: String, of: &ClickThrough) -> Clicks {
    Clicks {
        name,
        searches: count(of.search_count),
        clicked: percent(of.click_through),
        interval: of
            .click_through
            .zip(of.click_through_low.zip(of.click_through_high))
            .map(|(mean, (low, high))| Interval::between(low, mean, high)),
        zero_hits: percent(of.zero_hit_share),
        variants: Vec::new(),
    }
}

/// Whether two variants differ by more than chance, in a sentence.
fn verdict(language: Language, compared: &StatsCompared) -> String {
    let share = |of: &Option<RatingShare>| percent(of.as_ref().and_then(|of| of.negative_share));
    let (one, other) = (share(&compared.one), share(&compared.other));
    let Some(p) = compared.p_value else {
        return language
            .t(
                "One of them has no ratings yet.",
                "どちらかに評価がまだありません。",
            )
            .to_owned();
    };
    let differs = p < 0.05;
    match (language, differs) {
        (Language::English, true) => {
            format!("Negative {one} against {other}: more than chance (p = {p:.3}).")
        }
        (Language::English, false) => format!("Negative {one} against {other}: may be chance (p = {p:.3})."),
        (Language::Japanese, true) => format!("低評価 {one} 対 {other}: 有意な差があります (p = {p:.3})。"),
        (Language::Japanese, false) => {
            format!("低評価 {one} 対 {other}: 偶然の可能性があります (p = {p:.3})。")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_its_interval() {
        let share = RatingShare {
            rating_count: 1_200,
            negative_share: Some(0.25),
            negative_share_low: Some(0.2),
            negative_share_high: Some(0.31),
            ..RatingShare::default()
        };
        let shown = shown(&share, "not known");
        assert_eq!(shown.interval, Some(Interval::between(0.2, 0.25, 0.31)));
        assert_eq!(
            (&*shown.name, &*shown.ratings, &*shown.negative),
            ("not known", "1,200", "25.0 %")
        );
        assert_eq!(shown.range, "20.0 % – 31.0 %");
        assert_eq!(super::shown(&RatingShare::default(), "").negative, "–");
    }

    #[test]
    fn a_difference_is_said_only_where_it_is_more_than_chance() {
        let mut compared = StatsCompared::default();
        assert!(verdict(Language::English, &compared).contains("no ratings"));
        compared.p_value = Some(0.2);
        assert!(verdict(Language::English, &compared).contains("may be chance"));
        compared.p_value = Some(0.01);
        assert!(verdict(Language::English, &compared).contains("more than chance"));
    }
}
