//! What a node answers for a phrase. `Resolve` on the server and the node's learned view share these two functions.

use crate::{correction::Scope, ids::Revision};

/// If a backend's best candidate scores below this, it should ask its user.
pub const CONFIDENT_SCORE: f64 = 0.9;

/// A learned answer; its score is always 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match<'a> {
    /// The verb or entity id.
    pub value: &'a str,
    /// The revision that applied it.
    pub revision: Revision,
    /// Whether it is the user's own or everybody's.
    pub scope: Scope,
}

/// The result of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resolved<'a> {
    /// The learned answer, never a prohibited one.
    pub found: Option<Match<'a>>,
    /// An answer was learned but is prohibited.
    pub found_prohibited: bool,
}

/// Prefers the user's own answer to everybody's. Never returns one that `is_prohibited`.
pub fn resolve<'a>(
    own: Option<Match<'a>>,
    everybodys: Option<Match<'a>>,
    is_prohibited: impl Fn(&str) -> bool,
) -> Resolved<'a> {
    let mut resolved = Resolved::default();
    for found in [own, everybodys].into_iter().flatten() {
        if is_prohibited(found.value) {
            resolved.found_prohibited = true;
        } else {
            resolved.found = Some(found);
            break;
        }
    }
    resolved
}

/// Whether the backend should ask its user: nothing was learned, and of its candidates that are not prohibited there is
/// more than one and the best scores below [`CONFIDENT_SCORE`].
pub fn feedback_hint<'c>(
    resolved: &Resolved<'_>,
    backend: impl IntoIterator<Item = (&'c str, f64)>,
    is_prohibited: impl Fn(&str) -> bool,
) -> bool {
    if resolved.found.is_some() {
        return false;
    }
    let (mut left, mut best) = (0, f64::NEG_INFINITY);
    for (value, score) in backend {
        if !is_prohibited(value) {
            left += 1;
            best = best.max(score);
        }
    }
    left > 1 && best < CONFIDENT_SCORE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(value: &str, scope: Scope) -> Match<'_> {
        Match {
            value,
            revision: Revision(1),
            scope,
        }
    }

    #[test]
    fn a_users_own_value_comes_first() {
        let (own, all) = (learned("own", Scope::User), learned("all", Scope::Global));
        assert_eq!(resolve(Some(own), Some(all), |_| false).found, Some(own));
        assert_eq!(resolve(None, Some(all), |_| false).found, Some(all));
        assert_eq!(resolve(None, None, |_| false), Resolved::default());
    }

    #[test]
    fn a_prohibited_answer_is_never_given_and_reported_as_prohibited() {
        let (own, all) = (learned("own", Scope::User), learned("all", Scope::Global));
        let resolved = resolve(Some(own), Some(all), |value| value == "own");
        assert_eq!(
            resolved,
            Resolved {
                found: Some(all),
                found_prohibited: true
            }
        );
        let resolved = resolve(None, Some(all), |_| true);
        assert_eq!(
            resolved,
            Resolved {
                found: None,
                found_prohibited: true
            }
        );
    }

    #[test]
    fn a_hint_needs_two_candidates_and_doubt() {
        let nothing = Resolved::default();
        assert!(feedback_hint(&nothing, [("a", 0.89), ("b", 0.5)], |_| false));
        assert!(!feedback_hint(&nothing, [("a", 0.9), ("b", 0.5)], |_| false));
        assert!(!feedback_hint(&nothing, [("a", 0.5)], |_| false));
        assert!(!feedback_hint(&nothing, [("a", 0.5), ("b", 0.5)], |value| value == "b"));
        assert!(feedback_hint(
            &nothing,
            [("a", 0.95), ("b", 0.5), ("c", 0.4)],
            |value| value == "a"
        ));
        let found = Resolved {
            found: Some(learned("x", Scope::Global)),
            found_prohibited: false,
        };
        assert!(!feedback_hint(&found, [("a", 0.1), ("b", 0.1)], |_| false));
    }
}
