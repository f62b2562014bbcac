//! JSON with the lines of its values, for files whose rows are nested: one value, or several one after the other.

use std::{
    cell::Cell,
    fmt,
    io::{self, BufRead, Read},
    rc::Rc,
};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{record::RowError, source::Utf8};

/// A value, and the line on which it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: u64,
    pub(super) value: Value,
}

/// A value of which texts, lists and maps are looked into.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object, with its names as they come.
    Map(Vec<(String, Node)>),
    /// A number, true, false or null.
    Other,
}

impl Node {
    /// What an object has by a name; of a name that comes again the last, as JSON's readers have it.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Value::Map(entries) = &self.value else {
            return None;
        };
        let found = entries.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, node)| node)
    }

    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub(super) fn list(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(nodes) => Some(nodes),
            _ => None,
        }
    }
}

/// Reads all values of a file, or says which line is wrong.
pub(super) fn read(from: impl BufRead) -> Result<Vec<Node>, (u64, RowError)> {
    let (from, wrong) = Utf8::of(from);
    let line = Rc::new(Cell::new(1));
    let counted = Counted {
        from,
        line: Rc::clone(&line),
    };
    let mut deserializer = serde_json::Deserializer::from_reader(counted);
    let mut nodes = Vec::new();
    // Behind the last value there is nothing but space.
    while deserializer.end().is_err() {
        match (Seed { line: &line }).deserialize(&mut deserializer) {
            Ok(node) => nodes.push(node),
            Err(error) => {
                return Err(wrong.take().unwrap_or_else(|| {
                    let why = RowError::row(format!("is not the expected JSON: {error}"));
                    (line.get(), why.of_the_file())
                }));
            }
        }
    }
    match wrong.take() {
        Some(wrong) => Err(wrong),
        None => Ok(nodes),
    }
}

/// Counts the lines of what is read. JSON is read byte by byte, and none ahead but the first of the next value.
struct Counted<R> {
    from: R,
    line: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        let ends = into.iter().take(read).filter(|byte| **byte == b'\n').count();
        self.line.set(self.line.get() + ends as u64);
        Ok(read)
    }
}

/// Reads one value and notes where it begins.
#[derive(Clone, Copy)]
struct Seed<'l> {
    line: &'l Cell<u64>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let line = self.line.get();
        let value = deserializer.deserialize_any(self)?;
        Ok(Node { line, value })
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = from.next_element_seed(self)? {
            nodes.push(node);
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = from.next_key::<String>()? {
            entries.push((name, from.next_value_seed(self)?));
        }
        Ok(Value::Map(entries))
    }
}
