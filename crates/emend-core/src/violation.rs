//! What is wrong with an input: every violated field at once, not only the first.

use std::fmt;

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

/// Trims the text and checks that it has `min..=max` characters (Unicode scalar values, not bytes) and no control
/// characters.
pub fn bounded_text(raw: &str, min: usize, max: usize) -> Result<String, Invalid> {
    let text = raw.trim();
    let length = text.chars().count();
    if length < min && length == 0 {
        return Err(Invalid::new(format!("is required: {min} to {max} characters")));
    }
    if length < min || length > max {
        return Err(Invalid::new(format!(
            "must be {min} to {max} characters, has {length}"
        )));
    }
    if let Some(control) = text.chars().find(|c| c.is_control()) {
        return Err(Invalid::new(format!(
            "must not contain control characters, has U+{:04X}",
            control as u32
        )));
    }
    Ok(text.to_owned())
}

/// Like [`bounded_text`], but allows tabs and line breaks, for prose.
pub fn bounded_prose(raw: &str, min: usize, max: usize) -> Result<String, Invalid> {
    let text = raw.trim();
    let without_breaks: String = text
        .chars()
        .map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c })
        .collect();
    // Counted with breaks as spaces, so that a text of only breaks is empty.
    bounded_text(&without_breaks, min, max).map(|_| text.to_owned())
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
    fn characters_are_counted_not_bytes() {
        assert!(bounded_text("ééééé", 1, 5).is_ok());
    }
}
