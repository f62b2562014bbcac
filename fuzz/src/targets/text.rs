//! Text that people write.

use emend_core::{
    Example, FeedbackId, FewShotSet, NormalizedKey, RatedId,
    normalize::{MAX_KEY_CHARS, normalize},
    outputs::render,
    personal_data,
    ratings::Language,
};
use icu_normalizer::ComposingNormalizer;
use uuid::Uuid;

use super::lossy;

/// U+FDFA has the longest compatibility decomposition in Unicode: 3 bytes become 33.
const MOST_GROWTH: usize = 11;

/// Normalisation is idempotent, yields NFC, and grows text no more than Unicode allows.
pub(super) fn normalisation(bytes: &[u8]) -> usize {
    let text = lossy(bytes);
    let once = normalize(&text);
    assert_eq!(normalize(&once), once, "it is the one form");
    assert!(ComposingNormalizer::new_nfc().is_normalized(&once));
    assert!(once.len() <= MOST_GROWTH * text.len());
    assert!(!once.starts_with(' ') && !once.ends_with(' ') && !once.contains("  "));
    if let Ok(key) = NormalizedKey::parse(&text) {
        assert_eq!(
            NormalizedKey::parse(key.as_str()).as_ref(),
            Ok(&key),
            "a key is a key"
        );
        assert!((1..=MAX_KEY_CHARS).contains(&key.as_str().chars().count()));
    }
    text.len()
}

/// Masking is idempotent.
pub(super) fn personal_data(bytes: &[u8]) -> usize {
    let text = lossy(bytes);
    let masked = personal_data::mask(&text).into_owned();
    assert_eq!(personal_data::mask(&masked), masked);
    assert_eq!(personal_data::found_in(&text), masked != text);
    text.len()
}

/// Whatever is in the texts of examples, outside of their fences stands what stands there with ordinary texts.
pub(super) fn examples(bytes: &[u8]) -> usize {
    let text = lossy(bytes);
    let mut parts = text.split('\0');
    let parts: [&str; 5] = std::array::from_fn(|_| parts.next().unwrap_or("x"));
    let hostile = rendered(parts);
    let present = |part: &str| if part.is_empty() { "" } else { "x" };
    assert_eq!(outside(&hostile), outside(&rendered(parts.map(present))));
    hostile.len()
}

fn rendered(texts: [&str; 5]) -> String {
    let [input, output, corrected, issue, other] = texts.map(str::to_owned);
    let example = Example {
        feedback: FeedbackId::none(),
        rated: RatedId(Uuid::nil()),
        input,
        output,
        corrected,
        issues: vec![issue, other],
    };
    let set = FewShotSet {
        language: Language::En,
        good: vec![example.clone()],
        bad: vec![example],
    };
    render("Summarise.", &set, Language::En)
}

/// The lines outside of fences. A fence is a line of backticks alone, closed by one that is as long, or longer. For a reader any
/// of the characters that Unicode calls a line end ends a line.
fn outside(rendered: &str) -> Vec<&str> {
    let (mut outside, mut fence) = (Vec::new(), 0);
    for line in rendered.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']) {
        let ticks = line.trim();
        let ticks = if ticks.chars().all(|c| c == '`') {
            ticks.len()
        } else {
            0
        };
        match fence {
            0 if ticks >= 3 => fence = ticks,
            0 => outside.push(line),
            open if ticks >= open => fence = 0,
            _ => {}
        }
    }
    assert_eq!(fence, 0, "every fence is closed");
    outside
}
