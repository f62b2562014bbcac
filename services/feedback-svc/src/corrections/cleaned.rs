//! What is taken out of a submission before it is stored: personal data, and HTML.

use emend_core::personal_data;
use emend_wire::parse::{MAX_CONTEXT_VALUE_BYTES, MAX_REASON_CHARS};
use feedback_store::records::feedback::{Removed, Submission};

use crate::corrections::plain_text;

/// A submission with personal data in free text and rated texts masked, and what was taken out of the texts of a rating of a
/// search answer: of these also HTML. Keys and values of corrections are never masked.
pub(crate) fn cleaned(mut submission: Submission) -> (Submission, Removed) {
    let mut removed = Removed::default();
    if submission.correction.search_rating().is_some() {
        let reason = plain_text::clean(&mut submission.reason, plain_text::fits_reason);
        let values = submission.context.values_mut();
        let values = values
            .map(|value| plain_text::clean(value, |text| text.floor_char_boundary(MAX_CONTEXT_VALUE_BYTES)));
        for taken in values.chain([reason]) {
            removed.html |= taken.html;
            removed.personal_data |= taken.personal_data;
        }
    } else {
        mask_prose(&mut submission.reason);
        submission.context.values_mut().for_each(mask_context_value);
        submission.correction = submission.correction.masked();
    }
    (submission, removed)
}

/// Masks personal data in a reason. A mask may be longer than what it hides, so the result is cut to the limit.
pub(crate) fn mask_prose(text: &mut String) {
    mask(text, |masked| {
        masked.char_indices().nth(MAX_REASON_CHARS).map(|(end, _)| end)
    });
}

/// The same for a value of the context.
fn mask_context_value(text: &mut String) {
    mask(text, |masked| {
        (masked.len() > MAX_CONTEXT_VALUE_BYTES).then(|| masked.floor_char_boundary(MAX_CONTEXT_VALUE_BYTES))
    });
}

fn mask(text: &mut String, too_long: impl Fn(&str) -> Option<usize>) {
    let masked = personal_data::mask(text);
    if *masked != **text {
        let mut masked = masked.into_owned();
        if let Some(end) = too_long(&masked) {
            masked.truncate(end);
        }
        *text = masked;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use emend_core::{Correction, Namespace, Reporter, Scope, correction::Form};

    use super::*;

    fn submission() -> Submission {
        Submission {
            request_id: None,
            namespace: Namespace::parse("fund-admin").unwrap(),
            reporter: Reporter::parse("jane", "s", "web", "").unwrap(),
            query_id: String::new(),
            reason: "ask jane.doe@example.org".into(),
            context: BTreeMap::from([("topic".into(), "call +44 20 7946 0958".into())]),
            scope: Scope::Global,
            correction: Correction::parse(Form::PhraseMapping, "mail jane.doe@example.org", "", "send_mail")
                .unwrap(),
        }
    }

    #[test]
    fn text_that_cannot_be_masked_in_parts_is_masked_as_a_whole() {
        let mut text = "10.0.0.1:".repeat(40);
        mask_prose(&mut text);
        assert_eq!(text, "[masked]");
    }

    #[test]
    fn free_text_is_masked_and_corrections_never_are() {
        let (masked, _) = cleaned(submission());
        assert_eq!(masked.reason, "ask [email]");
        assert_eq!(masked.context["topic"], "call [phone]");
        assert_eq!(masked.correction, submission().correction);
    }
}
