//! Corrections and learned values for people.

use emend_core::{Learned, ProfileEntry};
use emend_proto::common::v1::{Correction, ResourceValue};

use crate::output::{Cell, counted};

/// A correction in short: `set up a CSA → create_isda`, of a rating what was rated and how; several things it asserts are separated by semicolons.
pub fn correction_text(correction: Option<&Correction>) -> String {
    correction_cell(correction).text()
}

/// The same for a table. Of several things that it asserts all give way.
pub fn correction_cell(correction: Option<&Correction>) -> Cell {
    let Ok(correction) = emend_wire::parse::correction(correction) else {
        return "?".to_owned().into();
    };
    if let Some(rating) = correction.search_rating() {
        return format!("search rated {}", rating.name()).into();
    }
    if let Some(rating) = correction.rating() {
        let (target, value, id) = (&rating.target, &rating.value, &rating.target_id);
        return format!("{target}: {value} of {id}, counts as {}", rating.class.name()).into();
    }
    let assertions = correction.assertions();
    if let [assertion] = &*assertions {
        return Cell::pair(assertion.input.clone(), arrow_text(&assertion.learned));
    }
    let texts: Vec<_> = assertions
        .iter()
        .map(|assertion| pair(&assertion.input, &assertion.learned))
        .collect();
    texts.join("; ").into()
}

/// What a value says was learned; `None` if this version does not know the value.
pub fn learned(value: Option<&ResourceValue>) -> Option<Learned> {
    emend_wire::kinds::learned(value?.value.as_ref()?).ok()
}

/// What a value maps its key to; empty if this version does not know the value.
pub fn maps_to(value: Option<&ResourceValue>) -> String {
    learned(value).map_or_else(String::new, |learned| learned.maps_to().to_owned())
}

/// What was learned, for people: `create_isda`, `board (one_way)`, or `5 good, 3 bad examples`.
pub fn learned_text(learned: &Learned) -> String {
    if let Learned::FewShotSet(set) = learned {
        return format!("{} good, {} bad examples", set.good.len(), set.bad.len());
    }
    match learned {
        Learned::Prompt(prompt) => return format!("version {}: {}", prompt.version, learned.maps_to()),
        Learned::ProfileEntry(ProfileEntry::Years(years)) => return counted(*years, "year", "years"),
        Learned::ProfileEntry(ProfileEntry::Text(entry)) => return entry.clone(),
        Learned::SearchTuning(_) | Learned::NearLookup(_) => return learned.maps_to().to_owned(),
        _ => {}
    }
    let fields = learned.fields();
    // What the choice says already is not said again: `unblock:low` says both of its fields.
    let is_said = |text: &str| {
        text.is_empty() || learned.maps_to() == text || learned.maps_to().split(':').any(|part| part == text)
    };
    let others: Vec<_> = fields
        .iter()
        .map(|field| &*field.text)
        .filter(|text| !is_said(text))
        .collect();
    match &others[..] {
        [] => learned.maps_to().to_owned(),
        others => format!("{} ({})", learned.maps_to(), others.join(", ")),
    }
}

/// What a value says was learned, for people; empty if this version does not know the value.
pub fn value_text(value: Option<&ResourceValue>) -> String {
    learned(value).map_or_else(String::new, |learned| learned_text(&learned))
}

/// A key and what was learned for it: `set up a CSA → create_isda`.
pub fn pair(input: &str, learned: &Learned) -> String {
    format!("{input}{}", arrow_text(learned))
}

/// What follows the key in a [`pair`]: ` → create_isda`.
pub fn arrow_text(learned: &Learned) -> String {
    format!(" {} {}", learned.arrow(), learned_text(learned))
}

/// A value and the key that it was learned for, as people write it.
pub fn value_pair(value: Option<&ResourceValue>) -> String {
    let display = value.map_or("", |value| value.display.as_str());
    learned(value).map_or_else(|| display.to_owned(), |learned| pair(display, &learned))
}

/// The same in the two parts of a table's cell.
pub fn value_cell(value: Option<&ResourceValue>, after: &str) -> Cell {
    let display = value.map_or("", |value| value.display.as_str()).to_owned();
    let learned = learned(value).map_or_else(String::new, |learned| arrow_text(&learned));
    Cell::pair(display, learned + after)
}

/// Whose something is, after it, if it is one user's own: ` (for mia)`.
pub fn for_user(user_id: &str) -> String {
    match user_id {
        "" => String::new(),
        user_id => format!(" (for {user_id})"),
    }
}
