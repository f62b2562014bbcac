//! The body of a rating: JSON with `query_id`, `rating` and `user_reason`. Whatever else is in it is passed over.

use std::collections::BTreeMap;

use emend_core::{
    Correction, Invalid, Namespace, Reporter, Scope, Violations, search::SearchRating,
    violation::bounded_text,
};
use feedback_store::records::feedback::Submission;
use serde_json::Value;

use crate::corrections::plain_text;

/// The client software of ratings that come this way.
const CLIENT: &str = "emend-http";

/// A rating by whom `client_key` stands for.
pub(super) fn submission(
    body: &[u8],
    namespace: &Namespace,
    client_key: &str,
) -> Result<Submission, Violations> {
    let mut violations = Violations::new();
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
        violations.add("body", "must be a JSON object with query_id and rating");
        return Err(violations);
    };
    let field = |name: &str| fields.get(name).unwrap_or(&Value::Null);
    let query_id = text(field("query_id")).and_then(|id| bounded_text(id, 1, 128));
    let query_id = violations.check("query_id", query_id);
    let rating = field("rating").as_i64().and_then(SearchRating::from_number);
    let rating = rating.ok_or_else(|| Invalid::new("is required: -1, 0 or 1"));
    let rating = violations.check("rating", rating);
    let reason = text(field("user_reason")).and_then(plain_text::reason);
    let reason = violations.check("user_reason", reason);
    let reporter = violations.part("", Reporter::parse("", "", CLIENT, client_key));
    let parsed = (|| {
        Some(Submission {
            request_id: None,
            namespace: namespace.clone(),
            reporter: reporter?,
            query_id: query_id?,
            reason: reason?,
            context: BTreeMap::new(),
            scope: Scope::Global,
            correction: Correction::SearchRating(rating?),
        })
    })();
    violations.finish(parsed)
}

/// A text; without one, an empty one.
fn text(value: &Value) -> Result<&str, Invalid> {
    match value {
        Value::Null => Ok(""),
        Value::String(text) => Ok(text),
        _ => Err(Invalid::new("must be a text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &str) -> Result<Submission, Vec<String>> {
        let parsed = submission(body.as_bytes(), &Namespace::parse("cards").unwrap(), "key");
        parsed.map_err(|violations| violations.into_vec().into_iter().map(|it| it.field).collect())
    }

    #[test]
    fn nothing_but_query_rating_and_reason_is_believed() {
        let rating = parsed(
            r#"{"query_id": "q1", "rating": -1, "user_reason": "no hits", "namespace": "other", "reporter": {"id": "jane"},
                "context": {"a": "b"}, "client_key": "mine", "query_type": "SEMANTIC"}"#,
        );
        let rating = rating.unwrap();
        assert_eq!(
            (rating.namespace.as_str(), &*rating.query_id, &*rating.reason),
            ("cards", "q1", "no hits")
        );
        assert_eq!(rating.reporter, Reporter::parse("", "", CLIENT, "key").unwrap());
        assert!(rating.context.is_empty());
    }

    #[test]
    fn every_field_that_is_wrong_is_named() {
        let long = format!(
            r#"{{"query_id": "q", "rating": 1, "user_reason": "{}"}}"#,
            "x".repeat(301)
        );
        for (body, fields) in [
            ("", &["body"][..]),
            ("[]", &["body"]),
            ("{}", &["query_id", "rating"]),
            (
                r#"{"query_id": 7, "rating": 2, "user_reason": []}"#,
                &["query_id", "rating", "user_reason"],
            ),
            (r#"{"query_id": "q", "rating": "1"}"#, &["rating"]),
            (r#"{"query_id": "q", "rating": 0.5}"#, &["rating"]),
            (&long, &["user_reason"]),
        ] {
            assert_eq!(parsed(body).unwrap_err(), fields, "{body}");
        }
    }
}
