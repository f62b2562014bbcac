//! Text that people write.

use emend_core::{
    NormalizedKey,
    normalize::{MAX_KEY_CHARS, normalize},
    personal_data,
};
use icu_normalizer::ComposingNormalizer;

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
