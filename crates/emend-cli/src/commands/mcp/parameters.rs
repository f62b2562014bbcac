//! Fields of requests, named by the parameters of the tools that they are made of.

/// Of tools whose parameters have the names of the request's fields.
pub(super) fn plain(field: &str) -> String {
    field.to_owned()
}

/// Of `intent_feedback`.
pub(super) fn feedback(field: &str) -> String {
    let named = match field {
        "reason" => "user_explanation",
        "reporter.id" => "context.reporter",
        "reporter.session_id" => "context.session_id",
        _ => match of_correction(field) {
            Some("phrase" | "original_input") => "original_input",
            Some("verb" | "correct_choice") => "correct_choice",
            Some("forbidden_choice" | "system_choice") => "system_choice",
            _ => field,
        },
    };
    named.to_owned()
}

/// Of `feedback`.
pub(super) fn evidence(field: &str) -> String {
    match field {
        "reason" => "args.reason".to_owned(),
        "reporter.id" => "args.reporter".to_owned(),
        _ => match of_correction(field) {
            Some("task_id") => "task_id".to_owned(),
            Some("pattern") => "args.domain_pattern".to_owned(),
            Some(argument) => format!("args.{argument}"),
            None => field.to_owned(),
        },
    }
}

/// Of `intent_resolve`.
pub(super) fn resolve(field: &str) -> String {
    match field.strip_prefix("backend_candidates") {
        Some(place) => format!("own_choices{place}"),
        None if field == "user_id" => "reporter".to_owned(),
        None => field.to_owned(),
    }
}

/// Of `intent_list`.
pub(super) fn list(field: &str) -> String {
    if field == "key" { "phrase" } else { field }.to_owned()
}

/// Of `intent_approve` and `intent_reject`.
pub(super) fn review(field: &str) -> String {
    if field == "on_behalf_of" { "by" } else { field }.to_owned()
}

/// Of `search_feedback` and `rate_output`.
pub(super) fn rating(field: &str) -> String {
    match field {
        "reporter.id" => "reporter",
        "reporter.session_id" => "session_id",
        _ => match of_correction(field) {
            Some("value") if field.starts_with("correction.search_rating.") => "rating",
            Some(argument) => argument,
            None => field,
        },
    }
    .to_owned()
}

/// The field within a correction of whatever form: `correction.verb.original_input` is `original_input`.
fn of_correction(field: &str) -> Option<&str> {
    let (_form, rest) = field.strip_prefix("correction.")?.split_once('.')?;
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_by_the_parameters() {
        for (named, field, expected) in [
            (
                feedback as fn(&str) -> String,
                "correction.verb.original_input",
                "original_input",
            ),
            (feedback, "correction.phrase_mapping.phrase", "original_input"),
            (feedback, "correction.phrase_mapping.verb", "correct_choice"),
            (
                feedback,
                "correction.prohibition.forbidden_choice",
                "system_choice",
            ),
            (feedback, "context.topic", "context.topic"),
            (feedback, "reporter.id", "context.reporter"),
            (feedback, "reason", "user_explanation"),
            (evidence, "correction.claim_reject.claim_id", "args.claim_id"),
            (evidence, "correction.domain_block.task_id", "task_id"),
            (evidence, "reason", "args.reason"),
            (evidence, "correction.domain_block.pattern", "args.domain_pattern"),
            (rating, "correction.search_rating.value", "rating"),
            (rating, "correction.rating.value", "value"),
            (rating, "reporter.id", "reporter"),
            (resolve, "backend_candidates[2].score", "own_choices[2].score"),
            (resolve, "phrase", "phrase"),
            (list, "key", "phrase"),
            (review, "on_behalf_of", "by"),
            (plain, "feedback_id", "feedback_id"),
        ] {
            assert_eq!(named(field), expected);
        }
    }
}
