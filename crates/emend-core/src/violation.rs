//! What is wrong with an input: every violated field at once, not only the first.

use std::fmt;

use crate::text;

/// Why a single value is invalid, with the bound it broke, for example "must be 1 to 63 characters, has 70".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl Invalid {
    /// Describes what is wrong.
    pub fn new(description: impl Into<String>) -> Self {
        Self(description.into())
    }
}

/// One violated field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// The path of the field in the request, for example `correction.verb.original_input`.
    pub field: String,
    /// What is wrong with it, including the bound.
    pub description: String,
}

impl fmt::Display for FieldViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of what is wrong with the whole there is no field to name.
        if self.field.is_empty() {
            return f.write_str(&self.description);
        }
        write!(f, "{}: {}", self.field, self.description)
    }
}

/// Collects the violations of one request while it is parsed.
///
/// Parsers take `&mut Violations` and return `Option<T>`. `None` always comes with a violation, so that
/// [`Violations::finish`] can turn the result into a `Result`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations(Vec<FieldViolation>);

impl Violations {
    /// No violations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that `field` is wrong.
    pub fn add(&mut self, field: impl Into<String>, description: impl Into<String>) {
        self.0.push(FieldViolation {
            field: field.into(),
            description: description.into(),
        });
    }

    /// Returns the value if it is valid; otherwise records why not.
    pub fn check<T>(&mut self, field: &str, result: Result<T, Invalid>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(Invalid(description)) => {
                self.add(field, description);
                None
            }
        }
    }

    /// Adds the violations of a part of the request, under the part's path. An empty path is the request itself; a
    /// violation without a field concerns the part as a whole.
    pub fn nest(&mut self, path: &str, part: Violations) {
        for FieldViolation { field, description } in part.0 {
            let field = match (path, field.as_str()) {
                ("", _) => field,
                (_, "") => path.to_owned(),
                _ => format!("{path}.{field}"),
            };
            self.add(field, description);
        }
    }

    /// Returns the parsed part of the request; otherwise adds its violations, under the part's path.
    pub fn part<T>(&mut self, path: &str, parsed: Result<T, Violations>) -> Option<T> {
        parsed.map_err(|part| self.nest(path, part)).ok()
    }

    /// Whether there are no violations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All violations, in the order in which they were found.
    pub fn into_vec(self) -> Vec<FieldViolation> {
        self.0
    }

    /// The parsed value, or all violations.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Violations> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            violation.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

/// Trims an id, a name or another text that is compared, and checks that it has `min..=max` characters (Unicode scalar
/// values, not bytes), no control characters, and none that people do not see ([`crate::text`]): what is changed unasked is
/// another id.
pub fn bounded_text(raw: &str, min: usize, max: usize) -> Result<String, Invalid> {
    let text = raw.trim();
    check_length(text, min, max)?;
    check_controls(text)?;
    check_hidden(text)?;
    Ok(text.to_owned())
}

/// Trims prose, which people read, and takes out what they do not see ([`text::clean`]); then checks that it has `min..=max`
/// characters and no control characters but tabs and line breaks.
pub fn bounded_prose(raw: &str, min: usize, max: usize) -> Result<String, Invalid> {
    check_prose_controls(raw)?;
    let clean = text::clean(raw);
    let text = clean.trim();
    check_length(text, min, max)?;
    Ok(text.to_owned())
}

/// The same on one line: line breaks and tabs become spaces.
pub fn bounded_line(raw: &str, min: usize, max: usize) -> Result<String, Invalid> {
    check_prose_controls(raw)?;
    let clean = text::clean_line(raw);
    let text = clean.trim();
    check_length(text, min, max)?;
    Ok(text.to_owned())
}

/// Checks that a text that is kept byte for byte has at most `max` characters, no control characters but tabs and line breaks,
/// and none that people do not see.
pub fn check_verbatim(text: &str, max: usize) -> Result<(), Invalid> {
    check_prose(text, max)?;
    check_hidden(text)
}

/// Checks that a text has at most `max` characters and no control characters but tabs and line breaks.
pub fn check_prose(text: &str, max: usize) -> Result<(), Invalid> {
    let length = text.chars().count();
    if length > max {
        return Err(Invalid::new(format!(
            "must have at most {max} characters, has {length}"
        )));
    }
    check_prose_controls(text)
}

/// Checks that a text has no characters that people do not see.
pub fn check_hidden(text: &str) -> Result<(), Invalid> {
    match text::first_hidden(text) {
        None => Ok(()),
        Some(hidden) => Err(has_hidden(hidden)),
    }
}

/// Refuses a character that people do not see.
pub(crate) fn has_hidden(hidden: char) -> Invalid {
    Invalid::new(format!(
        "must not contain invisible characters, has U+{:04X}",
        u32::from(hidden)
    ))
}

fn check_length(text: &str, min: usize, max: usize) -> Result<(), Invalid> {
    let length = text.chars().count();
    if length < min && length == 0 {
        return Err(Invalid::new(format!("is required: {min} to {max} characters")));
    }
    if length < min || length > max {
        return Err(Invalid::new(format!(
            "must be {min} to {max} characters, has {length}"
        )));
    }
    Ok(())
}

fn check_controls(text: &str) -> Result<(), Invalid> {
    text::first_control(text).map_or(Ok(()), |control| Err(has_control(control)))
}

/// In prose the separators of lines are line breaks, whichever they are.
fn check_prose_controls(text: &str) -> Result<(), Invalid> {
    let stray = |c: &char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    text.chars()
        .find(stray)
        .map_or(Ok(()), |control| Err(has_control(control)))
}

fn has_control(control: char) -> Invalid {
    Invalid::new(format!(
        "must not contain control characters, has U+{:04X}",
        u32::from(control)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_violations_are_kept_with_their_paths() {
        let mut inner = Violations::new();
        assert_eq!(inner.check("id", bounded_text("", 1, 5)), None);
        assert_eq!(inner.check("name", bounded_text("abcdef", 1, 5)), None);
        let mut outer = Violations::new();
        outer.nest("reporter", inner);
        let found = outer.finish(Some(())).unwrap_err().into_vec();
        assert_eq!(
            found[0].to_string(),
            "reporter.id: is required: 1 to 5 characters"
        );
        assert_eq!(
            found[1].to_string(),
            "reporter.name: must be 1 to 5 characters, has 6"
        );
    }

    #[test]
    fn control_characters_are_named() {
        assert_eq!(
            bounded_text("a\0b", 1, 5).unwrap_err().0,
            "must not contain control characters, has U+0000"
        );
        assert!(bounded_text("a\nb", 1, 5).is_err());
        assert_eq!(bounded_prose("a\nb", 1, 5).as_deref(), Ok("a\nb"));
        assert!(bounded_prose("a\u{7}b", 1, 5).is_err());
    }

    #[test]
    fn ids_with_what_nobody_sees_are_refused_and_prose_is_rid_of_it() {
        for (raw, named) in [
            ("ja\u{202E}ne", "U+202E"),
            ("jane\u{E0041}", "U+E0041"),
            ("ja\u{200D}ne", "U+200D"),
            ("\u{FEFF}jane", "U+FEFF"),
        ] {
            let refused = bounded_text(raw, 1, 9).unwrap_err();
            assert_eq!(
                refused.0,
                format!("must not contain invisible characters, has {named}")
            );
            assert_eq!(bounded_prose(raw, 1, 4).as_deref(), Ok("jane"));
        }
        let separated = bounded_text("a\u{2028}b", 1, 9).unwrap_err();
        assert_eq!(separated.0, "must not contain control characters, has U+2028");
        assert_eq!(bounded_prose("a\u{2028}b", 1, 9).as_deref(), Ok("a\nb"));
        assert_eq!(bounded_line(" a\r\nb\u{202E}\n", 1, 9).as_deref(), Ok("a b"));
        assert!(bounded_prose("\u{200B}", 1, 9).is_err());
        assert_eq!(bounded_text("👩\u{200D}🔬", 1, 9).as_deref(), Ok("👩\u{200D}🔬"));
    }

    #[test]
    fn characters_are_counted_not_bytes() {
        assert!(bounded_text("ééééé", 1, 5).is_ok());
    }
}
