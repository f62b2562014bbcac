//! Targets of an application's own as messages, on the wire and in the database.

use emend_core::{
    Violations,
    ratings::{OwnTarget, RatingClass},
};
use emend_proto::feedback::v1 as pb;
use prost::Message as _;

/// Parses targets, new or stored. Violations name fields of [`pb::Settings`].
pub fn parse(messages: &[pb::RatedTarget]) -> Result<Vec<OwnTarget>, Violations> {
    let mut violations = Violations::new();
    let mut targets = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        targets.extend(violations.part(&format!("rated_targets[{index}]"), target(message)));
    }
    violations.finish(Some(targets))
}

fn target(message: &pb::RatedTarget) -> Result<OwnTarget, Violations> {
    let mut violations = Violations::new();
    let mut values = Vec::with_capacity(message.values.len());
    for (index, pb::RatedValue { name, counts_as }) in message.values.iter().enumerate() {
        let class = RatingClass::from_number(*counts_as);
        if class.is_none() {
            let wrong = match counts_as {
                0 => "is required: good, neutral or bad".to_owned(),
                number => format!("is not a known class: {number}"),
            };
            violations.add(format!("values[{index}].counts_as"), wrong);
        }
        values.push((name.as_str(), class.unwrap_or(RatingClass::Neutral)));
    }
    let parsed = violations.part("", OwnTarget::parse(&message.name, values, message.is_judgement));
    violations.finish(parsed)
}

/// The messages of targets.
pub fn render(targets: &[OwnTarget]) -> Vec<pb::RatedTarget> {
    let value = |value: &emend_core::ratings::OwnValue| pb::RatedValue {
        name: value.name().to_owned(),
        counts_as: value.class().number(),
    };
    let target = |target: &OwnTarget| pb::RatedTarget {
        name: target.name().to_owned(),
        values: target.values().iter().map(value).collect(),
        is_judgement: target.is_judgement(),
    };
    targets.iter().map(target).collect()
}

/// Targets as they are stored.
pub fn encode(targets: &[OwnTarget]) -> Vec<u8> {
    let settings = pb::Settings {
        rated_targets: render(targets),
        ..pb::Settings::default()
    };
    settings.encode_to_vec()
}

/// Parses stored targets. They are those of their time: one may have the name of a target that every namespace has by now.
pub fn decode(bytes: &[u8]) -> Result<Vec<OwnTarget>, String> {
    let settings = pb::Settings::decode(bytes).map_err(|error| error.to_string())?;
    parse(&settings.rated_targets).map_err(|violations| violations.to_string())
}
