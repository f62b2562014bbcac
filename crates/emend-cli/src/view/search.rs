//! How queries are searched.

use emend_proto::{
    common::v1::SearchTuningValue,
    feedback::v1::{
        GetFeedbackStatsResponse, NegativeTerm, Query, QueryInteraction, QueryResult, RatingShare,
    },
};
use serde_json::{Value, json};

use super::{present, time};

/// A recorded query.
pub fn query(query: &Query) -> Value {
    present(json!({
        "queryId": query.query_id,
        "queryText": query.query_text,
        "answerText": query.answer_text,
        "queryType": query.query_type,
        "classification": query.classification,
        "topResults": query.top_results.iter().map(result).collect::<Value>(),
        "namespaces": query.namespaces,
        "minScore": query.min_score,
        "embeddingVersion": query.embedding_version,
        "indexVersion": query.index_version,
        "clientVersion": query.client_version,
        "build": query.build,
        "variant": query.variant,
        "sessionId": query.session_id,
        "hitCount": query.hit_count,
        "searchedAt": time(query.searched_at.as_ref()),
        "recordedAt": time(query.recorded_at.as_ref()),
        "interactions": query.interactions.iter().map(interaction).collect::<Value>(),
    }))
}

/// What ratings say of search.
pub fn feedback_stats(stats: &GetFeedbackStatsResponse) -> Value {
    let all = |shares: &[RatingShare]| shares.iter().map(share).collect::<Value>();
    let compared = stats.compared.as_ref().map(|compared| {
        json!({
            "one": compared.one.as_ref().map(share),
            "other": compared.other.as_ref().map(share),
            "pValue": compared.p_value,
            "zeroHitPValue": compared.zero_hit_p_value,
        })
    });
    present(json!({
        "total": stats.total.as_ref().map(share),
        "weeks": all(&stats.weeks),
        "queryTypes": all(&stats.query_types),
        "embeddingVersions": all(&stats.embedding_versions),
        "indexVersions": all(&stats.index_versions),
        "variants": all(&stats.variants),
        "compared": compared,
        "leftOut": stats.left_out.as_ref().map(|left_out| json!({
            "weekCount": left_out.week_count,
            "queryTypeCount": left_out.query_type_count,
            "embeddingVersionCount": left_out.embedding_version_count,
            "indexVersionCount": left_out.index_version_count,
            "variantCount": left_out.variant_count,
        })),
    }))
}

fn share(share: &RatingShare) -> Value {
    json!({
        "name": share.name,
        "ratingCount": share.rating_count,
        "negativeCount": share.negative_count,
        "positiveCount": share.positive_count,
        "queryCount": share.query_count,
        "negativeShare": share.negative_share,
        "negativeShareLow": share.negative_share_low,
        "negativeShareHigh": share.negative_share_high,
        "zeroHitCount": share.zero_hit_count,
        "unknownHitCount": share.unknown_hit_count,
        "zeroHitShare": share.zero_hit_share,
        "zeroHitShareLow": share.zero_hit_share_low,
        "zeroHitShareHigh": share.zero_hit_share_high,
    })
}

/// A word that stands out in negative queries.
pub fn negative_term(term: &NegativeTerm) -> Value {
    json!({
        "term": term.term,
        "score": term.score,
        "negativeCount": term.negative_count,
        "queryCount": term.query_count,
    })
}

fn result(result: &QueryResult) -> Value {
    json!({"title": result.title, "score": result.score, "objectId": result.object_id})
}

fn interaction(interaction: &QueryInteraction) -> Value {
    json!({
        "objectId": interaction.object_id,
        "action": interaction.action,
        "position": interaction.position,
        "actedAt": time(interaction.acted_at.as_ref()),
    })
}

/// A tuning.
pub fn tuning(tuning: &SearchTuningValue) -> Value {
    if tuning.cleared {
        return json!({"cleared": true});
    }
    let confidences = tuning
        .confidences
        .iter()
        .map(|of| json!({"name": of.name, "minScore": of.min_score}));
    let weights = tuning
        .weights
        .iter()
        .map(|of| json!({"name": of.name, "weight": of.weight}));
    let steps = |steps: &[emend_proto::common::v1::SearchRetryStep]| -> Value {
        let steps = steps.iter().map(|step| {
            json!({
                "namespaces": step.namespaces,
                "lowerMinScoreBy": step.lower_min_score_by,
                "topK": step.top_k,
                "expand": step.expand,
            })
        });
        steps.collect()
    };
    json!({
        "topK": tuning.top_k,
        "minScore": tuning.min_score,
        "confidences": confidences.collect::<Value>(),
        "weights": weights.collect::<Value>(),
        "namespaces": tuning.namespaces,
        "retry": tuning.retry.as_ref().map(|retry| json!({"steps": steps(&retry.steps)})),
        "suggestion": tuning.suggestion,
    })
}
