//! The stored form of learned values: the encoded `ResourceValue`. Checksums cover exactly these bytes.

use bytes::Bytes;
use emend_core::{Invalid, ResourceValue};
use emend_proto::common::v1 as pb;
use prost::Message as _;

use crate::{kinds, render};

/// Encodes a value. Deterministic: fields in numeric order, no maps.
pub fn encode(value: &ResourceValue) -> Bytes {
    render::stored_value(value).encode_to_vec().into()
}

/// Decodes a value. A value that this version cannot use is invalid.
pub fn decode(bytes: &[u8]) -> Result<ResourceValue, Invalid> {
    let message =
        pb::ResourceValue::decode(bytes).map_err(|error| Invalid::new(format!("is not a value: {error}")))?;
    let Some(value) = message.value else {
        return Err(Invalid::new("has no value that this version knows"));
    };
    let learned = kinds::learned(&value).map_err(|violations| Invalid::new(violations.to_string()))?;
    let normalization_version = u32::try_from(message.normalization_version).map_err(|_| {
        Invalid::new(format!(
            "has a bad normalisation version {}",
            message.normalization_version
        ))
    })?;
    Ok(ResourceValue {
        display: message.display,
        normalization_version,
        learned,
    })
}

#[cfg(test)]
mod tests {
    use emend_core::{
        AcceptOrder, Example, FeedbackId, FewShotSet, Kind, Language, Learned, OutputTally, Rated, RatedId,
        RatedTexts, RatingClass, WindowPolicy, ratings::set_of, voter::VoterKey,
    };
    use proptest::prelude::*;

    use super::*;

    fn an_id() -> FeedbackId {
        FeedbackId::parse("0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10").unwrap()
    }

    fn a_set(text: &str) -> Learned {
        let example = |corrected: &str, issues| Example {
            feedback: an_id(),
            rated: RatedId(an_id().0),
            input: text.to_owned(),
            output: text.repeat(2),
            corrected: corrected.to_owned(),
            issues,
        };
        Learned::FewShotSet(FewShotSet {
            language: Language::Ja,
            good: vec![example("", Vec::new())],
            bad: vec![example(text, vec![text.to_owned()]), example("", Vec::new())],
        })
    }

    fn output(number: i64) -> RatedId {
        RatedId(
            FeedbackId::parse(&format!("0192d3c5-7a0e-7b51-9c55-{number:012x}"))
                .unwrap()
                .0,
        )
    }

    #[test]
    fn a_set_is_no_larger_than_the_bytes_it_is_cut_to() {
        for bytes in [0, 60, 100, 500, 1_000, 5_000] {
            let rated: Vec<Rated> = (1..30)
                .map(|number| Rated {
                    feedback: an_id(),
                    accept_order: AcceptOrder(number),
                    voter: VoterKey(an_id().0),
                    rated: output(number),
                    class: RatingClass::Bad,
                    prompt_version: String::new(),
                    received_at: jiff::Timestamp::UNIX_EPOCH,
                    excluded: false,
                    live: true,
                    texts: RatedTexts {
                        input: "é".repeat(usize::try_from(number).unwrap() * 3),
                        issues: vec![String::from("x")],
                        ..RatedTexts::default()
                    },
                })
                .collect();
            let policy = WindowPolicy {
                bad: 20,
                ..WindowPolicy::default()
            };
            let outputs: Vec<OutputTally> = rated
                .iter()
                .map(|rated| OutputTally {
                    bad: 1,
                    place: Some(rated.place()),
                    ..OutputTally::new(rated.rated)
                })
                .collect();
            let set = set_of(&outputs, &rated, &policy, bytes);
            let value = kinds::value(&Learned::FewShotSet(set));
            let message = pb::ResourceValue {
                value: Some(value),
                ..pb::ResourceValue::default()
            };
            assert!(message.encoded_len() <= bytes.max(8), "{bytes}");
        }
    }

    proptest! {
        #[test]
        fn values_survive_a_round_trip(display in "\\PC{1,20}", choice in "[a-z]{1,10}", kind in 0..Kind::ALL.len()) {
            let kind = Kind::ALL[kind];
            let learned = [&*choice, "unblock:low", "rejected:SPAM", "neutral"]
                .into_iter()
                .find_map(|choice| Learned::of(kind, choice.to_owned()).ok())
                .unwrap_or_else(|| a_set(&choice));
            let value = ResourceValue::new(display, learned);
            prop_assert_eq!(decode(&encode(&value)).unwrap(), value);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode(&bytes);
        }
    }
}
