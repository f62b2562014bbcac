//! What fuzz targets reach.

use std::sync::LazyLock;

use emend_client::proto::search::v1::SearchRequest;

use crate::{
    asked::{Question, for_embedding},
    grpc,
    query::parts,
    words::Words,
};

static WORDS: LazyLock<Words> = LazyLock::new(Words::default);

/// Reads a request: either it names what is wrong, by fields of the contract, or there is something to search for, within its
/// bounds and whatever it is expanded with.
pub fn request(request: SearchRequest) {
    let fields = [
        "query",
        "query_type",
        "user_id",
        "session_id",
        "expansion",
        "tuning",
    ];
    let asked = grpc::asked(request);
    match Question::parse(&asked) {
        Err(violations) => {
            let violations = violations.into_vec();
            assert!(!violations.is_empty());
            for violation in violations {
                let field = violation.field.split('.').next().unwrap_or_default();
                assert!(fields.contains(&field), "{violation:?}");
            }
        }
        Ok(question) => {
            assert!((1..=1_000).contains(&question.text.chars().count()));
            assert!(question.query_type.chars().count() <= 64);
            assert!(question.session_id.chars().count() <= 128);
            let Some(expanded) = &question.expansion else {
                return;
            };
            assert!(
                expanded
                    .groups
                    .is_sorted_by(|one, next| one.span.end <= next.span.start)
            );
            let parts = parts(&WORDS, expanded).expect("ICU cuts every text");
            assert!(parts.len() <= question.text.len() + expanded.groups.len());
            assert!(!expanded.render().trim().is_empty(), "{expanded:?}");
            assert!(for_embedding(expanded).starts_with(question.text));
        }
    }
}
