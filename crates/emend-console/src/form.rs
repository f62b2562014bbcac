//! Fields that a browser sends, in a form or behind the question mark of an address.

use std::fmt::Write as _;

use form_urlencoded::Serializer;

/// Names and values, in the order in which they were sent; a name may come again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads `name=value&…`. Line ends become those of texts here, not those of forms.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(text);
        Self(
            pairs
                .map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")))
                .collect(),
        )
    }

    /// The first value of that name, trimmed; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.all(name).next().map(str::trim).unwrap_or_default()
    }

    /// The first value of that name as it was typed; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// All values of that name.
    pub(crate) fn all<'f>(&'f self, name: &str) -> impl Iterator<Item = &'f str> {
        let name = name.to_owned();
        let pairs = self.0.iter();
        pairs
            .filter(move |(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    }

    /// All that are not empty.
    pub(crate) fn filled(&self, name: &str) -> Vec<String> {
        self.all(name)
            .map(str::trim)
            .filter(|value| !value.is_empty())
            .map(ToOwned::to_owned)
            .collect()
    }

    /// Whether it was sent at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Everything, for a page that sends it again.
    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// The same without those names.
    pub(crate) fn without(&self, names: &[&str]) -> Self {
        let pairs = self.0.iter();
        Self(
            pairs
                .filter(|(name, _)| !names.contains(&name.as_str()))
                .cloned()
                .collect(),
        )
    }

    /// The same with one more, in place of those of that name; an empty value takes them away.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut fields = self.without(&[name]);
        if !value.is_empty() {
            fields.0.push((name.to_owned(), value.to_owned()));
        }
        fields
    }

    /// As it stands behind a path: `?…`, or nothing.
    pub(crate) fn query(&self) -> String {
        let filled = self.0.iter().filter(|(_, value)| !value.is_empty());
        let text = Serializer::new(String::new()).extend_pairs(filled).finish();
        if text.is_empty() { text } else { format!("?{text}") }
    }
}

/// A part of a path, with everything encoded that could end it.
pub(crate) fn segment(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were_sent() {
        let fields = Fields::parse("kind=1&kind=2&q=a+b%26c&empty=&text=a%0D%0Ab".as_bytes());
        assert_eq!(fields.filled("kind"), ["1", "2"]);
        assert_eq!(fields.get("q"), "a b&c");
        assert_eq!(fields.text("text"), "a\nb");
        assert_eq!(fields.query(), "?kind=1&kind=2&q=a+b%26c&text=a%0Ab");
        assert_eq!(
            fields.with("kind", "3").without(&["q", "text"]).query(),
            "?kind=3"
        );
        assert_eq!(Fields::default().query(), "");
    }

    #[test]
    fn a_segment_can_not_leave_its_place() {
        assert_eq!(segment("a/../b?c#d e"), "a%2F..%2Fb%3Fc%23d%20e");
    }
}
