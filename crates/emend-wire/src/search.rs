//! How queries are searched, between its message and what it means.

use emend_core::{
    SearchTuning, Violations,
    search::{RetryStep, RetryStepFields, Tuning, TuningFields},
};
use emend_proto::common::v1 as pb;

/// A tuning; see [`Tuning::new`]. `None`: what was set is cleared.
pub fn tuning(message: &pb::SearchTuningValue) -> Result<Option<SearchTuning>, Violations> {
    if message.cleared {
        let mut violations = Violations::new();
        if *message != cleared() {
            violations.add("cleared", "must be the only field where it is set");
        }
        return violations.finish(Some(None));
    }
    let confidences = message
        .confidences
        .iter()
        .map(|named| (named.name.clone(), named.min_score));
    let weights = message
        .weights
        .iter()
        .map(|named| (named.name.clone(), named.weight));
    let fields = TuningFields {
        top_k: message.top_k.map(i64::from),
        min_score: message.min_score,
        confidences: confidences.collect(),
        weights: weights.collect(),
        namespaces: message.namespaces.clone(),
        retry: message
            .retry
            .as_ref()
            .map(|retry| retry.steps.iter().map(step).collect()),
        suggestion: message.suggestion.clone(),
    };
    Tuning::new(fields).map(|tuning| Some(tuning.into()))
}

fn step(message: &pb::SearchRetryStep) -> RetryStepFields {
    RetryStepFields {
        namespaces: message.namespaces.clone(),
        lower_min_score_by: message.lower_min_score_by,
        top_k: message.top_k.into(),
        expand: message.expand,
    }
}

/// The message that what was set is cleared.
pub(crate) fn cleared() -> pb::SearchTuningValue {
    pb::SearchTuningValue {
        cleared: true,
        ..pb::SearchTuningValue::default()
    }
}

/// The message of a tuning.
pub fn tuning_message(tuning: &Tuning) -> pb::SearchTuningValue {
    let confidences = tuning
        .confidences()
        .map(|(name, min_score)| pb::ConfidenceThreshold {
            name: name.to_owned(),
            min_score,
        });
    let weights = tuning.weights().map(|(name, weight)| pb::MergeWeight {
        name: name.to_owned(),
        weight,
    });
    pb::SearchTuningValue {
        top_k: Some(number(tuning.top_k())),
        min_score: Some(tuning.min_score()),
        confidences: confidences.collect(),
        weights: weights.collect(),
        namespaces: tuning.namespaces().to_vec(),
        retry: Some(pb::SearchRetry {
            steps: tuning.retry().iter().map(step_message).collect(),
        }),
        suggestion: tuning.suggestion().to_owned(),
        cleared: false,
    }
}

fn step_message(step: &RetryStep) -> pb::SearchRetryStep {
    pb::SearchRetryStep {
        namespaces: step.namespaces.clone(),
        lower_min_score_by: step.lower_min_score_by.get(),
        top_k: number(step.top_k),
        expand: step.expand,
    }
}

fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_its_default_and_an_empty_plan_is_none() {
        let defaults = tuning(&pb::SearchTuningValue::default()).unwrap().unwrap();
        assert_eq!(defaults, Tuning::default().into());
        let no_plan = pb::SearchTuningValue {
            retry: Some(pb::SearchRetry::default()),
            ..pb::SearchTuningValue::default()
        };
        let no_plan = tuning(&no_plan).unwrap().unwrap();
        assert!(no_plan.tuning().retry().is_empty());
        for set in [defaults, no_plan] {
            assert_eq!(tuning(&tuning_message(set.tuning())), Ok(Some(set)));
        }
        assert_eq!(tuning(&cleared()), Ok(None));
    }

    #[test]
    fn every_violation_is_named() {
        let message = pb::SearchTuningValue {
            top_k: Some(-1),
            min_score: Some(f64::INFINITY),
            retry: Some(pb::SearchRetry {
                steps: vec![pb::SearchRetryStep::default()],
            }),
            ..pb::SearchTuningValue::default()
        };
        let fields = |message| {
            let refused = tuning(&message).unwrap_err().into_vec();
            refused
                .into_iter()
                .map(|violation| violation.field)
                .collect::<Vec<_>>()
        };
        assert_eq!(fields(message.clone()), ["top_k", "min_score", "retry.steps[0]"]);
        let cleared = pb::SearchTuningValue {
            cleared: true,
            ..message
        };
        assert_eq!(fields(cleared), ["cleared"]);
    }
}
