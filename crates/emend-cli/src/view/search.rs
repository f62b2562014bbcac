//! How queries are searched.

use emend_proto::common::v1::SearchTuningValue;
use serde_json::{Value, json};

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
