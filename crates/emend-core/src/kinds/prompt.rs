//! The prompt with which an AI is asked for an output. Decided by review: versions are put by operators or proposed by
//! generators, each has a number of its own, and a person says which one is current under which label.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use super::{Field, Form, KindRules, Learned, Qualifier, ReviewRules, Rule};
use crate::{
    text::clean,
    violation::{Invalid, Violations, bounded_text, check_prose, check_verbatim},
};

/// The label of a prompt where nobody names one.
pub const PRODUCTION: &str = "production";

/// The most characters of a prompt, and of the value of one of its variables.
pub const PROMPT_CHARS: usize = 32_768;
/// The most bytes of a prompt whose variables are filled in.
const FILLED_BYTES: usize = 1 << 20;
/// The most variables of a prompt, and the most settings.
const MAX_PARTS: usize = 32;
/// The most characters of a name of a variable or setting.
const NAME_CHARS: usize = 64;
/// The most characters of a setting's value.
const SETTING_CHARS: usize = 1_024;

/// One version of a prompt. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Prompt {
    /// Its number among the versions of its target; 0 until it has been given one.
    pub version: u32,
    text: String,
    variables: Vec<Variable>,
    settings: Vec<Setting>,
}

/// A place in a prompt, `{{name}}` or `{{ name }}`, where each call has a text of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What stands there where a call says nothing; `None`: each call must say.
    pub default: Option<String>,
}

/// A setting of the model, for example its name or temperature, as the application reads it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Prompt {
    /// A prompt without a number. The text is kept byte for byte; variables keep their order, settings are sorted by name.
    pub fn new(text: &str, variables: Vec<Variable>, mut settings: Vec<Setting>) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        if text.trim().is_empty() {
            violations.add(
                "text",
                format!("is required: 1 to {PROMPT_CHARS} characters, not only white space"),
            );
        } else {
            violations.check("text", check_verbatim(text, PROMPT_CHARS));
        }
        check_count(&mut violations, "variables", variables.len());
        for (index, Variable { name, default }) in variables.iter().enumerate() {
            let field = |part| format!("variables[{index}].{part}");
            violations.check(&field("name"), parse_name(name));
            if variables.iter().take(index).any(|before| before.name == *name) {
                violations.add(field("name"), format!("is there twice: {name:?}"));
            }
            if places(text).all(|place| place.name != name) {
                let why = format!("is not in the text, which must have {{{{{name}}}}}");
                violations.add(field("name"), why);
            }
            if let Some(default) = default {
                violations.check(&field("default_value"), check_verbatim(default, PROMPT_CHARS));
            }
        }
        check_count(&mut violations, "settings", settings.len());
        for (index, Setting { name, value }) in settings.iter().enumerate() {
            let field = |part| format!("settings[{index}].{part}");
            violations.check(&field("name"), parse_name(name));
            if settings.iter().take(index).any(|before| before.name == *name) {
                violations.add(field("name"), format!("is there twice: {name:?}"));
            }
            violations.check(&field("value"), bounded_text(value, 1, SETTING_CHARS));
        }
        settings.sort_unstable();
        violations.finish(Some(Self {
            version: 0,
            text: text.to_owned(),
            variables,
            settings,
        }))
    }

    /// The text, with places for variables.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its variables.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The settings of the model, sorted by name.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The same with another text, if that has a place for each variable.
    pub fn with_text(&self, text: &str) -> Result<Self, Violations> {
        Self::new(text, self.variables.clone(), self.settings.clone())
    }

    /// Whether another version says the same.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let parts = |prompt: &Self| {
            (
                prompt.text.clone(),
                prompt.variables.clone(),
                prompt.settings.clone(),
            )
        };
        parts(self) == parts(other)
    }

    /// Names that stand in the text as variables do, but are none of it: they are text, which may not be meant. Each once, in
    /// their order, at most 32.
    pub fn undeclared(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for Place { name, .. } in places(&self.text) {
            let is_declared = self.variables.iter().any(|variable| variable.name == name);
            if !is_declared && !names.contains(&name) && names.len() < MAX_PARTS {
                names.push(name);
            }
        }
        names
    }

    /// The text with each variable's value in its places. A value is put in as it is but for what people do not see: what looks
    /// like a place in it is text. Violations name the variable.
    pub fn fill(&self, values: &BTreeMap<String, String>) -> Result<String, Violations> {
        let mut violations = Violations::new();
        for (name, value) in values {
            let field = format!("variables[{name}]");
            if self.variables.iter().any(|variable| variable.name == *name) {
                violations.check(&field, check_prose(value, PROMPT_CHARS));
            } else {
                violations.add(field, "is not a variable of this prompt");
            }
        }
        let mut filled = Vec::with_capacity(self.variables.len());
        for variable in &self.variables {
            match values.get(&variable.name).or(variable.default.as_ref()) {
                Some(value) => filled.push((variable.name.as_str(), clean(value))),
                None => violations.add(
                    format!("variables[{}]", variable.name),
                    "is required: the prompt has no default for it",
                ),
            }
        }
        let text = fill(&self.text, &filled);
        if text.is_none() {
            violations.add(
                "variables",
                format!("make a text of more than {FILLED_BYTES} bytes, the maximum"),
            );
        }
        violations.finish(text)
    }
}

/// What may be the place of a variable: a word between two braces, with or without spaces around it.
struct Place<'t> {
    /// Where it begins and ends.
    at: Range<usize>,
    name: &'t str,
}

/// The places of a text, in one pass from the left.
fn places(text: &str) -> impl Iterator<Item = Place<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let begin = from + text.get(from..)?.find("{{")?;
            // Of three braces the last two may be a place's.
            let Some((name, length)) = word_in_braces(text.get(begin..)?) else {
                from = begin + 1;
                continue;
            };
            from = begin + length;
            return Some(Place {
                at: begin..from,
                name,
            });
        }
    })
}

/// The word in the braces that a text begins with, and the bytes of both.
fn word_in_braces(text: &str) -> Option<(&str, usize)> {
    let is_space = |c: char| matches!(c, ' ' | '\t');
    let inner = text.strip_prefix("{{")?.trim_start_matches(is_space);
    let end = inner.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'))?;
    let (name, rest) = inner.split_at(end);
    let rest = rest.trim_start_matches(is_space).strip_prefix("}}")?;
    (!name.is_empty()).then_some((name, text.len() - rest.len()))
}

/// Replaces the places that have a value; `None` if the text becomes too long.
fn fill(text: &str, values: &[(&str, Cow<'_, str>)]) -> Option<String> {
    let mut filled = String::with_capacity(text.len());
    let mut done = 0;
    for Place { at, name } in places(text) {
        let Some((_, value)) = values.iter().find(|(variable, _)| *variable == name) else {
            continue;
        };
        filled.push_str(text.get(done..at.start)?);
        filled.push_str(value);
        if filled.len() > FILLED_BYTES {
            return None;
        }
        done = at.end;
    }
    filled.push_str(text.get(done..)?);
    (filled.len() <= FILLED_BYTES).then_some(filled)
}

fn check_count(violations: &mut Violations, field: &str, count: usize) {
    if count > MAX_PARTS {
        violations.add(
            field,
            format!("must have at most {MAX_PARTS} entries, has {count}"),
        );
    }
}

fn parse_name(name: &str) -> Result<(), Invalid> {
    let is_name = (1..=NAME_CHARS).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if is_name {
        return Ok(());
    }
    Err(Invalid::new(format!(
        "must be 1 to {NAME_CHARS} characters of [a-z0-9_], beginning with a letter, is {name:?}"
    )))
}

pub(super) const RULES: KindRules = KindRules {
    name: "prompt",
    number: 9,
    summary: "The prompt with which an AI is asked for an output",
    short_name: "prompt",
    aliases: &["prompts"],
    key: Form::Target,
    qualifier: Some(Qualifier {
        form: Form::Exact,
        meaning: "the label",
        field: None,
        default: Some(PRODUCTION),
    }),
    rule: Rule::Review(ReviewRules {
        rejection_closes_to_generators: false,
        of_users: false,
        numbered_with: Some(PRODUCTION),
        numbered,
    }),
    parse: |text| {
        Prompt::new(&text, Vec::new(), Vec::new())
            .map(Learned::Prompt)
            .map_err(|violations| Invalid::new(violations.to_string()))
    },
    allows: |_, _| Ok(()),
    is_answer: false,
    arrow: '⇒',
};

fn numbered(learned: &mut Learned, version: u32) {
    if let Learned::Prompt(prompt) = learned {
        prompt.version = version;
    }
}

pub(super) fn fields(prompt: &Prompt) -> Vec<Field<'_>> {
    let field = |name, text| Field {
        name,
        text,
        distinguishes: true,
    };
    let mut fields = vec![
        field("version", Cow::Owned(prompt.version.to_string())),
        field("text", Cow::Borrowed(&*prompt.text)),
    ];
    let variables = prompt
        .variables
        .iter()
        .map(|Variable { name, default }| match default {
            None => Cow::Borrowed(name.as_str()),
            Some(default) => Cow::Owned(format!("{name}={default}")),
        });
    fields.extend(variables.map(|text| field("variables", text)));
    let settings = prompt
        .settings
        .iter()
        .map(|Setting { name, value }| Cow::Owned(format!("{name}={value}")));
    fields.extend(settings.map(|text| field("settings", text)));
    fields
}

/// Its first line with words.
pub(super) fn maps_to(prompt: &Prompt) -> &str {
    let mut lines = prompt.text.lines().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

pub(super) fn describe(target: &str, prompt: &Prompt) -> String {
    format!(
        "“{target}” is asked with version {} of its prompt",
        prompt.version
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variable(name: &str, default: Option<&str>) -> Variable {
        Variable {
            name: name.to_owned(),
            default: default.map(str::to_owned),
        }
    }

    fn setting(name: &str, value: &str) -> Setting {
        Setting {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn variables_are_filled_in_one_pass_and_all_others_stay_text() {
        let text = "  {{{day}}} {{other}} {{day}}{{tone}}\r\n";
        let variables = vec![variable("day", None), variable("tone", Some("dry"))];
        let prompt = Prompt::new(text, variables, Vec::new()).unwrap();
        let filled = prompt.fill(&values(&[("day", "{{tone}}")])).unwrap();
        assert_eq!(filled, "  {{{tone}}} {{other}} {{tone}}dry\r\n");
        let filled = prompt.fill(&values(&[("day", "May 1"), ("tone", "")])).unwrap();
        assert_eq!(filled, "  {May 1} {{other}} May 1\r\n");
    }

    #[test]
    fn spaces_around_a_name_make_no_difference() {
        let text = "Use {{ day }}, {{day}} and {{\tday }}, not {{ d ay }} or {{\nday}}.";
        let prompt = Prompt::new(text, vec![variable("day", Some("today"))], vec![]).unwrap();
        let filled = prompt.fill(&values(&[])).unwrap();
        assert_eq!(filled, "Use today, today and today, not {{ d ay }} or {{\nday}}.");
        assert_eq!(prompt.undeclared(), Vec::<&str>::new());
        assert!(Prompt::new("{{ day }}", vec![variable("day", None)], vec![]).is_ok());
    }

    #[test]
    fn names_that_are_no_variables_are_text_and_can_be_told() {
        let text = "{{day}} {{ Tone }} {{user.name}} {{{{Tone}}}} {{}} {{#if x}} {{ day";
        let prompt = Prompt::new(text, vec![variable("day", None)], vec![]).unwrap();
        assert_eq!(prompt.undeclared(), ["Tone", "user.name"]);
        let filled = prompt.fill(&values(&[("day", "May 1")])).unwrap();
        assert_eq!(filled, text.replace("{{day}}", "May 1"));
    }

    #[test]
    fn a_call_gives_all_variables_without_default_and_no_others() {
        let prompt = Prompt::new(
            "{{day}} {{who}}",
            vec![variable("day", None), variable("who", None)],
            vec![],
        );
        let refused = prompt
            .unwrap()
            .fill(&values(&[("who", "a\0"), ("month", "May")]))
            .unwrap_err()
            .to_string();
        assert_eq!(
            refused,
            "variables[month]: is not a variable of this prompt; \
             variables[who]: must not contain control characters, has U+0000; \
             variables[day]: is required: the prompt has no default for it"
        );
    }

    #[test]
    fn a_value_in_many_places_makes_no_text_without_end() {
        let prompt = Prompt::new(&"{{a}}".repeat(6_000), vec![variable("a", None)], vec![]).unwrap();
        assert!(prompt.fill(&values(&[("a", "x")])).is_ok());
        let refused = prompt.fill(&values(&[("a", &"x".repeat(PROMPT_CHARS))]));
        assert_eq!(
            refused.unwrap_err().to_string(),
            "variables: make a text of more than 1048576 bytes, the maximum"
        );
    }

    #[test]
    fn every_violated_field_is_named() {
        let long = "é".repeat(PROMPT_CHARS + 1);
        let variables = vec![
            variable("Day", None),
            variable("day", Some("\0")),
            variable("day", None),
        ];
        let settings = vec![setting("model", ""), setting("model", "m")];
        let violations = Prompt::new(&long, variables, settings).unwrap_err().into_vec();
        let fields: Vec<_> = violations
            .iter()
            .map(|violation| violation.field.as_str())
            .collect();
        assert_eq!(
            fields,
            [
                "text",
                "variables[0].name",
                "variables[0].name",
                "variables[1].name",
                "variables[1].default_value",
                "variables[2].name",
                "variables[2].name",
                "settings[0].value",
                "settings[1].name",
            ]
        );
        let many = (0..33)
            .map(|number| setting(&format!("s{number}"), "1"))
            .collect();
        let refused = Prompt::new("x", vec![], many).unwrap_err().to_string();
        assert_eq!(refused, "settings: must have at most 32 entries, has 33");
        for empty in ["", " \n"] {
            let refused = Prompt::new(empty, vec![], vec![]).unwrap_err().to_string();
            assert_eq!(
                refused,
                "text: is required: 1 to 32768 characters, not only white space"
            );
        }
    }

    #[test]
    fn another_text_must_have_the_same_places() {
        let prompt = Prompt::new(
            "on {{day}}",
            vec![variable("day", None)],
            vec![setting("model", "m")],
        );
        let prompt = prompt.unwrap();
        let other = prompt.with_text("of {{day}}, briefly").unwrap();
        assert_eq!(other.settings(), prompt.settings());
        assert!(!other.says_the_same(&prompt));
        let refused = prompt.with_text("briefly").unwrap_err().to_string();
        assert_eq!(
            refused,
            "variables[0].name: is not in the text, which must have {{day}}"
        );
    }

    proptest! {
        #[test]
        fn without_variables_a_prompt_is_its_text_byte_for_byte(text in "[ {}a\n\té]{0,20}[{}aé][ {}a\n\té]{0,20}") {
            let prompt = Prompt::new(&text, vec![], vec![]).unwrap();
            prop_assert_eq!(prompt.fill(&BTreeMap::new()).unwrap(), text);
        }
    }
}
