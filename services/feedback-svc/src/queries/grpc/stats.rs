//! What ratings say of search, on the wire.

use emend_core::{Invalid, Namespace, Violations, violation::bounded_text};
use emend_proto::feedback::v1 as pb;
use emend_wire::{parse, render::saturated};
use feedback_store::records::stats::{Compared, Dimension, Share, StatsFilter, Traffic, WorstQuery};

use crate::queries::{
    recent::{ByVariant, Recent, TopQuery},
    stats::{NegativeTerms, Stats},
};

const MAX_NAME: usize = 64;
const DEFAULT_TOP_QUERIES: u32 = 10;
const MAX_TOP_QUERIES: u32 = 500;
const DEFAULT_TERMS: u32 = 50;
const MAX_TERMS: u32 = 500;

/// What statistics are asked for.
pub(crate) struct Asked {
    /// Which ratings count.
    pub(crate) filter: StatsFilter,
    /// What is compared.
    pub(crate) compared: Option<Compared>,
    /// How many of the queries that were searched most are wanted.
    pub(crate) top_queries: usize,
    /// How many of those that most people rated down.
    pub(crate) worst_queries: u32,
}

/// Which ratings count, what is compared, and how many queries are wanted.
pub(crate) fn asked(request: &pb::GetFeedbackStatsRequest) -> Result<Asked, Violations> {
    let mut violations = Violations::new();
    let filter = violations.part(
        "",
        filter(
            &request.namespace,
            (request.rated_from.as_ref(), request.rated_before.as_ref()),
            &request.query_type,
        ),
    );
    let compared = match &request.compare {
        None => Some(None),
        Some(compare) => violations.part("compare", self::compared(compare)).map(Some),
    };
    let top_queries = violations.check(
        "top_query_count",
        parse::page_size(request.top_query_count, DEFAULT_TOP_QUERIES, MAX_TOP_QUERIES),
    );
    let worst_queries = violations.check(
        "worst_query_count",
        parse::page_size(request.worst_query_count, DEFAULT_TOP_QUERIES, MAX_TOP_QUERIES),
    );
    let parsed = (|| {
        Some(Asked {
            filter: filter?,
            compared: compared?,
            top_queries: top_queries? as usize,
            worst_queries: worst_queries?,
        })
    })();
    violations.finish(parsed)
}

/// Which ratings count, and how many words are wanted.
pub(crate) fn asked_terms(
    request: &pb::ListNegativeTermsRequest,
) -> Result<(StatsFilter, usize), Violations> {
    let mut violations = Violations::new();
    let filter = violations.part(
        "",
        filter(
            &request.namespace,
            (request.rated_from.as_ref(), request.rated_before.as_ref()),
            &request.query_type,
        ),
    );
    let limit = violations.check(
        "page_size",
        parse::page_size(request.page_size, DEFAULT_TERMS, MAX_TERMS),
    );
    violations.finish(filter.zip(limit.map(|limit| limit as usize)))
}

fn filter(
    namespace: &str,
    (from, before): (Option<&prost_types::Timestamp>, Option<&prost_types::Timestamp>),
    query_type: &str,
) -> Result<StatsFilter, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(namespace));
    let period = violations.part("", parse::period("rated", from, before));
    let query_type = violations.check("query_type", bounded_text(query_type, 0, MAX_NAME));
    let parsed = (|| {
        let (from, before) = period?;
        Some(StatsFilter {
            namespace: namespace?,
            from,
            before,
            query_type: query_type.filter(|name| !name.is_empty()),
        })
    })();
    violations.finish(parsed)
}

fn compared(message: &pb::StatsComparison) -> Result<Compared, Violations> {
    let mut violations = Violations::new();
    let by = match pb::StatsDimension::try_from(message.by) {
        Ok(pb::StatsDimension::QueryType) => Ok(Dimension::QueryType),
        Ok(pb::StatsDimension::EmbeddingVersion) => Ok(Dimension::EmbeddingVersion),
        Ok(pb::StatsDimension::IndexVersion) => Ok(Dimension::IndexVersion),
        Ok(pb::StatsDimension::Variant) => Ok(Dimension::Variant),
        Ok(pb::StatsDimension::Unspecified) => Err(Invalid::new(
            "is required: the type of the query, a version or the variant",
        )),
        Err(_) => Err(Invalid::new(format!("is not a known dimension: {}", message.by))),
    };
    let by = violations.check("by", by);
    let one = violations.check("one", bounded_text(&message.one, 0, MAX_NAME));
    let other = violations.check("other", bounded_text(&message.other, 0, MAX_NAME));
    if one.is_some() && one == other {
        violations.add("other", "must be another than one");
    }
    let parsed = (|| {
        Some(Compared {
            by: by?,
            one: one?,
            other: other?,
        })
    })();
    violations.finish(parsed)
}

fn share(share: &Share) -> pb::RatingShare {
    let (interval, zero_hits) = (share.interval(), share.zero_hit_interval());
    pb::RatingShare {
        name: share.name.clone(),
        rating_count: saturated(share.ratings),
        negative_count: saturated(share.negative),
        positive_count: saturated(share.positive),
        query_count: saturated(share.queries),
        negative_share: interval.map(|(share, _)| share),
        negative_share_low: interval.map(|(_, interval)| interval.low),
        negative_share_high: interval.map(|(_, interval)| interval.high),
        zero_hit_count: saturated(share.zero_hits),
        unknown_hit_count: saturated(share.unknown_hits),
        zero_hit_share: zero_hits.map(|(share, _)| share),
        zero_hit_share_low: zero_hits.map(|(_, interval)| interval.low),
        zero_hit_share_high: zero_hits.map(|(_, interval)| interval.high),
    }
}

fn click_through(variant: String, traffic: &Traffic) -> pb::ClickThrough {
    let interval = traffic.click_through();
    pb::ClickThrough {
        variant,
        search_count: saturated(traffic.searches),
        clicked_count: saturated(traffic.clicked),
        click_through: interval.map(|(share, _)| share),
        click_through_low: interval.map(|(_, interval)| interval.low),
        click_through_high: interval.map(|(_, interval)| interval.high),
        zero_hit_count: saturated(traffic.zero_hits),
        unknown_hit_count: saturated(traffic.unknown_hits),
        zero_hit_share: traffic.zero_hit_share(),
    }
}

/// What was searched most.
fn recent_searches(recent: Recent) -> pb::RecentSearches {
    let all = |traffic: &Traffic| Some(click_through(String::new(), traffic));
    let by_variant = |variants: ByVariant| {
        let variants = variants.into_iter();
        variants
            .map(|(name, traffic)| click_through(name, &traffic))
            .collect()
    };
    let top = |query: TopQuery| pb::TopQuery {
        query_text: query.text,
        all: all(&query.all),
        variants: by_variant(query.variants),
    };
    pb::RecentSearches {
        all: all(&recent.all),
        variants: by_variant(recent.variants),
        top_queries: recent.top.into_iter().map(top).collect(),
        left_out_query_count: saturated(recent.left_out_queries),
        left_out_variant_count: saturated(recent.left_out_variants),
    }
}

/// What most people rated down, with how many such queries there are.
fn worst_queries((worst, all): (Vec<WorstQuery>, u64)) -> pb::WorstQueries {
    let listed = worst.len() as u64;
    let query = |query: WorstQuery| pb::WorstQuery {
        person_count: saturated(query.people),
        query_id: query.query_id,
        query_text: query.text,
        query_type: query.query_type,
        feedback_id: query.feedback.to_string(),
    };
    pb::WorstQueries {
        queries: worst.into_iter().map(query).collect(),
        left_out_query_count: saturated(all.saturating_sub(listed)),
    }
}

/// What ratings and queries say.
pub(super) fn response(
    stats: &Stats,
    recent: Recent,
    worst: (Vec<WorstQuery>, u64),
) -> pb::GetFeedbackStatsResponse {
    let by = |dimension: Dimension| {
        let shares = stats.by.get(&dimension).into_iter().flatten();
        shares.map(share).collect()
    };
    let left_out = |dimension: Dimension| {
        let count = stats.left_out.get(&dimension);
        saturated(count.copied().unwrap_or_default())
    };
    pb::GetFeedbackStatsResponse {
        total: Some(share(&stats.total)),
        weeks: by(Dimension::Week),
        query_types: by(Dimension::QueryType),
        embedding_versions: by(Dimension::EmbeddingVersion),
        index_versions: by(Dimension::IndexVersion),
        variants: by(Dimension::Variant),
        compared: stats.comparison.as_ref().map(|comparison| pb::StatsCompared {
            one: Some(share(&comparison.one)),
            other: Some(share(&comparison.other)),
            p_value: comparison.p_value,
            zero_hit_p_value: comparison.zero_hit_p_value,
        }),
        left_out: Some(pb::StatsLeftOut {
            week_count: left_out(Dimension::Week),
            query_type_count: left_out(Dimension::QueryType),
            embedding_version_count: left_out(Dimension::EmbeddingVersion),
            index_version_count: left_out(Dimension::IndexVersion),
            variant_count: left_out(Dimension::Variant),
        }),
        recent: Some(recent_searches(recent)),
        worst: Some(worst_queries(worst)),
    }
}

/// The words that stand out.
pub(super) fn terms_response(found: NegativeTerms) -> pb::ListNegativeTermsResponse {
    let term = |found: emend_core::search::NegativeTerm| pb::NegativeTerm {
        term: found.counts.written,
        score: found.score,
        negative_count: saturated(found.counts.negative),
        query_count: saturated(found.counts.all),
    };
    pb::ListNegativeTermsResponse {
        terms: found.terms.into_iter().map(term).collect(),
        negative_query_count: saturated(found.negative_queries),
        query_count: saturated(found.queries),
        pruned_word_count: saturated(found.pruned),
        undercount: saturated(found.undercount),
    }
}
