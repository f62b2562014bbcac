//! W3C trace context as it travels with calls, events and changes.

use std::{fmt, sync::Arc};

/// A valid W3C `traceparent` of version 00: `00-<trace id>-<parent id>-<flags>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traceparent(Arc<str>);

impl Traceparent {
    /// Parses a header's value or a stored one. `None` if it is invalid or of a later version.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |part: &str, length: usize| {
            part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let present = |part: &str| part.bytes().any(|byte| byte != b'0');
        let valid = parts.next().is_none()
            && version == "00"
            && hex(trace, 32)
            && present(trace)
            && hex(parent, 16)
            && present(parent)
            && hex(flags, 2);
        valid.then(|| Self(text.into()))
    }

    /// The same, but only what its originator records.
    pub fn parse_sampled(text: &str) -> Option<Self> {
        Self::parse(text).filter(Self::is_sampled)
    }

    /// The header's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the whole trace: 32 lower-case hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        self.0.get(3..35).unwrap_or_default()
    }

    /// The id of the span under which the receiver works: 16 lower-case hexadecimal digits.
    pub fn parent_id(&self) -> &str {
        self.0.get(36..52).unwrap_or_default()
    }

    /// Whether the trace's originator records it.
    pub fn is_sampled(&self) -> bool {
        // The lowest bit of the flags.
        let flags = self.0.chars().last().and_then(|digit| digit.to_digit(16));
        flags.is_some_and(|flags| flags % 2 == 1)
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_well_formed_trace_contexts_are_accepted() {
        let parsed = Traceparent::parse(VALID).unwrap();
        assert_eq!(
            (parsed.as_str(), parsed.trace_id()),
            (VALID, "4bf92f3577b34da6a3ce929d0e0e4736")
        );
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-011",
        ] {
            assert_eq!(Traceparent::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_lowest_bit_of_the_flags_says_whether_a_trace_is_recorded() {
        let sampled = |flags: &str| {
            let traceparent = VALID.replace("-01", &format!("-{flags}"));
            Traceparent::parse(&traceparent).unwrap().is_sampled()
        };
        for (flags, expected) in [
            ("01", true),
            ("00", false),
            ("03", true),
            ("02", false),
            ("0b", true),
            ("0a", false),
            ("ff", true),
        ] {
            assert_eq!(sampled(flags), expected, "{flags}");
        }
    }
}
