//! The id of a message that can't be read, so that its sender gets an answer all the same.

use serde_json::Value;

/// The longest id or name at the top level that is kept, in bytes.
const LONGEST: usize = 1024;

/// Where the next byte stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Between,
    Text,
    /// In a text, behind a backslash.
    Escape,
}

/// Reads a message piece by piece and keeps its `id` alone, whatever is wrong with the rest.
#[derive(Debug, Default)]
pub(crate) struct UnreadId {
    depth: u64,
    place: Place,
    /// The text or number at the top level that is being read, as it is written.
    part: Vec<u8>,
    name_is_id: bool,
    after_colon: bool,
    found: Option<Value>,
}

impl UnreadId {
    /// The id; null where none was found.
    pub(crate) fn found(self) -> Value {
        self.found.unwrap_or_default()
    }

    /// Reads the next piece.
    pub(crate) fn read(&mut self, piece: &[u8]) {
        for &byte in piece {
            if self.found.is_none() {
                self.read_byte(byte);
            }
        }
    }

    fn read_byte(&mut self, byte: u8) {
        if self.place != Place::Between {
            self.keep(byte);
            match (self.place, byte) {
                (Place::Escape, _) => self.place = Place::Text,
                (_, b'\\') => self.place = Place::Escape,
                (_, b'"') => {
                    self.place = Place::Between;
                    self.text_ended();
                }
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.place = Place::Text;
                self.part.clear();
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.value_ended();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.after_colon = true;
                self.part.clear();
            }
            b',' if self.depth == 1 => {
                self.value_ended();
                (self.after_colon, self.name_is_id) = (false, false);
                self.part.clear();
            }
            _ if !byte.is_ascii_whitespace() => self.keep(byte),
            _ => {}
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.part.len() <= LONGEST {
            self.part.push(byte);
        }
    }

    fn text_ended(&mut self) {
        if self.depth != 1 {
            return;
        }
        if self.after_colon {
            self.value_ended();
        } else {
            self.name_is_id = self.part == br#""id""#;
        }
    }

    fn value_ended(&mut self) {
        if self.depth != 1 || !self.after_colon || !self.name_is_id {
            return;
        }
        let value = serde_json::from_slice::<Value>(&self.part).ok();
        self.found = value.filter(|value| value.is_string() || value.is_number());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_id_of_a_message_is_found_whatever_the_rest_is() {
        let deep = "[".repeat(10_000);
        for (message, expected) in [
            (r#"{"id": 7, "params": {"text": "\ud800"}}"#.to_owned(), json!(7)),
            (
                r#"{"params": {"id": 1, "x": "\"id\": 2,"}, "id": "a,}b"}"#.to_owned(),
                json!("a,}b"),
            ),
            (format!(r#"{{"method": "id", "id":8,"params":{deep}"#), json!(8)),
            (r#"{"id": 9}"#.to_owned(), json!(9)),
            (r#"{"id": {"id": 3}, "#.to_owned(), Value::Null),
            (r#"["id", 4]"#.to_owned(), Value::Null),
            ("nonsense".to_owned(), Value::Null),
        ] {
            let mut id = UnreadId::default();
            for piece in message.as_bytes().chunks(3) {
                id.read(piece);
            }
            assert_eq!(id.found(), expected, "{message:.80}");
        }
    }
}
