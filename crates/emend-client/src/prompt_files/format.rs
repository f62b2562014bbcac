//! What a prompt's file says.
//!
//! A prompt that is only a text is its text. Variables and settings stand above it, between two lines of three hyphens, in a
//! form that programs read as YAML:
//!
//! ```text
//! ---
//! variables:
//!   day:
//!   tone: "dry"
//! settings:
//!   model: "small"
//! ---
//! Summarise {{day}} in a {{tone}} tone.
//! ```
//!
//! Everything after the second line of hyphens is the text, byte for byte. A byte order mark at the beginning of the file is
//! skipped.

use std::fmt::{self, Write as _};

use emend_core::{
    Prompt, Violations,
    kinds::{Setting, Variable},
    ratings::target_name,
};

use super::{
    foreign,
    names::{file_name, is_shortened, target_of},
};

/// Begins and ends the header.
const FENCE: &str = "---";
/// What some editors put before a text.
const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// A file of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    /// What stands above the text; `None` if nothing does.
    pub header: Option<Header>,
    /// The text, byte for byte.
    pub text: String,
}

/// What stands above a prompt's text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// The target, where the file's name is too short for it.
    pub target: Option<String>,
    /// The variables, in their order.
    pub variables: Vec<Variable>,
    /// The settings of the model.
    pub settings: Vec<Setting>,
}

/// Why a file is not a prompt's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The header is not in its form.
    #[error("line {line}: {why}")]
    Header {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The name does not say the target, and the header says none that the name fits.
    #[error("the name of the file is cut, and its header does not say the target that it is the name of")]
    Target,
    /// What it says is no prompt.
    #[error("{0}")]
    Prompt(Violations),
}

impl PromptFile {
    /// The file of a target's prompt.
    pub fn of(target: &str, prompt: &Prompt) -> Self {
        let header = Header {
            target: is_shortened(&file_name(target)).then(|| target.to_owned()),
            variables: prompt.variables().to_vec(),
            settings: prompt.settings().to_vec(),
        };
        // A text that looks like a header, or begins with what is skipped at the beginning of a file, gets one above it.
        let text = prompt.text();
        let looks_like_one =
            text.starts_with(BYTE_ORDER_MARK) || text.split_inclusive('\n').next().is_some_and(is_fence);
        Self {
            header: (looks_like_one || header != Header::default()).then_some(header),
            text: prompt.text().to_owned(),
        }
    }

    /// Reads a file, behind its byte order mark if it has one. What others write above a prompt, as dotprompt and promptfoo do, are
    /// settings; lines below a rule that are no header are text.
    pub fn parse(contents: &str) -> Result<Self, FileError> {
        let contents = contents.trim_start_matches(BYTE_ORDER_MARK);
        let whole = Self {
            header: None,
            text: contents.to_owned(),
        };
        let mut lines = contents.split_inclusive('\n');
        if !lines.next().is_some_and(is_fence) {
            return Ok(whole);
        }
        let mut above = Vec::new();
        let end = lines.by_ref().find(|line| {
            let is_end = is_fence(line);
            if !is_end {
                above.push(line.trim_end());
            }
            is_end
        });
        let is_comment = |line: &&&str| line.is_empty() || line.starts_with('#');
        let first = above.iter().find(|line| !is_comment(line));
        let name = first.and_then(|line| Some(line.split_once(':')?.0));
        let is_own = name.is_some_and(|name| OWN.contains(&name));
        if end.is_none() {
            return if is_own {
                Err(FileError::Header {
                    line: contents.lines().count(),
                    why: "the header has no end: a line of three hyphens".into(),
                })
            } else {
                Ok(whole)
            };
        }
        if !is_own && !foreign::is_header(&above) {
            return Ok(whole);
        }
        let mut header = Header::default();
        let mut section = Section::None;
        for (line, content) in (2..).zip(&above) {
            header
                .read(&mut section, content)
                .map_err(|why| FileError::Header { line, why })?;
        }
        if let Section::Foreign(keys) = section {
            header.settings.extend(keys.settings());
        }
        Ok(Self {
            header: Some(header),
            text: lines.collect(),
        })
    }

    /// The prompt that it says, without a number.
    pub fn prompt(&self) -> Result<Prompt, FileError> {
        let Header {
            variables, settings, ..
        } = self.header.clone().unwrap_or_default();
        Prompt::new(&self.text, variables, settings).map_err(FileError::Prompt)
    }

    /// The target whose file this is, if it has this name.
    pub fn target(&self, name: &str) -> Result<String, FileError> {
        let target = self.header.as_ref().and_then(|header| header.target.as_ref());
        match (target, target_of(name)) {
            // Any spelling of a target that every namespace has.
            (None, Some(target)) => Ok(target_name(&target).to_owned()),
            (Some(target), _) if file_name(target) == name => Ok(target.clone()),
            _ => Err(FileError::Target),
        }
    }
}

impl fmt::Display for PromptFile {
    /// Its contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(header) = &self.header else {
            return f.write_str(&self.text);
        };
        writeln!(f, "{FENCE}")?;
        if let Some(target) = &header.target {
            writeln!(f, "target: {}", quoted(target))?;
        }
        if !header.variables.is_empty() {
            writeln!(f, "variables:")?;
        }
        for Variable { name, default } in &header.variables {
            match default {
                None => writeln!(f, "  {name}:")?,
                Some(default) => writeln!(f, "  {name}: {}", quoted(default))?,
            }
        }
        if !header.settings.is_empty() {
            writeln!(f, "settings:")?;
        }
        for Setting { name, value } in &header.settings {
            writeln!(f, "  {name}: {}", quoted(value))?;
        }
        write!(f, "{FENCE}\n{}", self.text)
    }
}

/// The names with which a header of this form begins.
const OWN: [&str; 3] = ["target", "variables", "settings"];

/// What the lines that are indented belong to.
enum Section {
    None,
    Variables,
    Settings,
    Foreign(foreign::Keys),
}

impl Header {
    /// Reads one of its lines.
    fn read(&mut self, section: &mut Section, line: &str) -> Result<(), String> {
        const KNOWN: &str = "expected `target: …`, `variables:` or `settings:`";
        let content = line.trim_start();
        let is_top = content.len() == line.len();
        if content.is_empty() || content.starts_with('#') {
            return Ok(());
        }
        let name = content.split_once(':').map(|(name, _)| name.trim_end());
        let is_own = is_top && name.is_some_and(|name| OWN.contains(&name));
        let is_other_key = is_top && name.is_some() && !is_own;
        if let Section::Foreign(keys) = section
            && !is_own
        {
            return keys.read(line);
        }
        if is_other_key {
            let mut keys = foreign::Keys::default();
            keys.read(line)?;
            *section = Section::Foreign(keys);
            return Ok(());
        }
        let (name, value) = content
            .split_once(':')
            .ok_or_else(|| "expected a name and a colon".to_owned())?;
        let value = unquoted(value)?;
        if is_top {
            if let Section::Foreign(keys) = std::mem::replace(section, Section::None) {
                self.settings.extend(keys.settings());
            }
            match (name, value) {
                ("target", Some(target)) => self.target = Some(target),
                ("variables", None) => *section = Section::Variables,
                ("settings", None) => *section = Section::Settings,
                _ => return Err(KNOWN.into()),
            }
            return Ok(());
        }
        let name = name.trim_end().to_owned();
        match section {
            Section::None | Section::Foreign(_) => return Err(KNOWN.into()),
            Section::Variables => self.variables.push(Variable { name, default: value }),
            Section::Settings => self.settings.push(Setting {
                name,
                value: value.unwrap_or_default(),
            }),
        }
        Ok(())
    }
}

fn is_fence(line: &str) -> bool {
    line.trim_end_matches(['\n', '\r']) == FENCE
}

/// A text in quotation marks, as JSON and YAML have it.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // Line ends to YAML, and what can't be seen at the beginning of a file.
            '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                // Writing to a String can't fail.
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A value as written: nothing, a text in quotation marks, or one without. A comment may come after it, as in YAML: from a # that
/// white space comes before.
fn unquoted(after_colon: &str) -> Result<Option<String>, String> {
    let value = after_colon.trim();
    let Some(inner) = value.strip_prefix('"') else {
        let is_plain = !value.starts_with(['\'', '|', '>', '[', '{', '&', '*', '!', '%', '@', '`']);
        return if is_plain {
            let comment = comment_in(after_colon).unwrap_or(after_colon.len());
            let value = after_colon.get(..comment).unwrap_or(after_colon).trim();
            Ok((!value.is_empty()).then(|| value.to_owned()))
        } else {
            Err(format!(
                "put the value in double quotation marks: {}",
                quoted(value)
            ))
        };
    };
    let unclosed = || "the value has no closing quotation mark".to_owned();
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    loop {
        match chars.next().ok_or_else(unclosed)? {
            '"' => break,
            '\\' => text.push(escape(&mut chars).ok_or("the value has a backslash that escapes nothing")?),
            c => text.push(c),
        }
    }
    match chars.as_str().trim_start() {
        rest if rest.is_empty() || rest.starts_with('#') => Ok(Some(text)),
        _ => Err("something comes after the closing quotation mark".into()),
    }
}

/// Where a comment begins.
fn comment_in(value: &str) -> Option<usize> {
    let begins = [value.find(" #"), value.find("\t#")];
    begins.into_iter().flatten().min()
}

fn escape(chars: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match chars.next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let (digits, rest) = chars.as_str().split_at_checked(4)?;
            *chars = rest.chars();
            char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
        }
        c @ ('"' | '\\' | '/') => c,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variable(name: &str, default: Option<&str>) -> Variable {
        Variable {
            name: name.into(),
            default: default.map(str::to_owned),
        }
    }

    fn setting(name: &str, value: &str) -> Setting {
        Setting {
            name: name.into(),
            value: value.into(),
        }
    }

    #[test]
    fn a_prompt_that_is_only_a_text_is_its_text() {
        let prompt = Prompt::new("Summarise.\r\n\n", vec![], vec![]).unwrap();
        let file = PromptFile::of("T", &prompt);
        assert_eq!(file.to_string(), "Summarise.\r\n\n");
        assert_eq!(
            PromptFile::parse("Summarise.\r\n\n").unwrap().prompt(),
            Ok(prompt)
        );
    }

    #[test]
    fn variables_and_settings_stand_above_the_text() {
        let prompt = Prompt::new(
            "{{day}} {{tone}}\n---\n",
            vec![variable("tone", Some("\"dry\"\\\n")), variable("day", None)],
            vec![setting("temperature", "0.2"), setting("model", "small")],
        )
        .unwrap();
        let contents = PromptFile::of("T", &prompt).to_string();
        let expected = "---\nvariables:\n  tone: \"\\\"dry\\\"\\\\\\n\"\n  day:\nsettings:\n  model: \"small\"\n  \
                        temperature: \"0.2\"\n---\n{{day}} {{tone}}\n---\n";
        assert_eq!(contents, expected);
        assert_eq!(PromptFile::parse(&contents).unwrap().prompt(), Ok(prompt));
    }

    #[test]
    fn what_people_write_is_read() {
        let contents = "---\r\n# ours\r\nsettings:\r\n  model: gpt-4:mini\r\n  temperature:   0.2  \r\nvariables:\r\n\
                        \x20   day :\r\n  tone: \"\" # none\r\n\r\n---\r\nOn {{day}}{{tone}}";
        let file = PromptFile::parse(contents).unwrap();
        let header = file.header.clone().unwrap();
        assert_eq!(
            header.settings,
            [setting("model", "gpt-4:mini"), setting("temperature", "0.2")]
        );
        assert_eq!(
            header.variables,
            [variable("day", None), variable("tone", Some(""))]
        );
        assert_eq!(file.text, "On {{day}}{{tone}}");
    }

    #[test]
    fn a_byte_order_mark_hides_no_header_and_is_none_of_the_text() {
        let written = "\u{FEFF}---\r\nvariables:\r\n  day: \"today\"\r\n---\r\nSummarise {{day}}.\r\n";
        let file = PromptFile::parse(written).unwrap();
        assert_eq!(file.header.unwrap().variables, [variable("day", Some("today"))]);
        assert_eq!(file.text, "Summarise {{day}}.\r\n");
        assert_eq!(
            PromptFile::parse("\u{FEFF}Summarise.").unwrap().text,
            "Summarise."
        );
        // Behind the first one it is a character that people don't see.
        let two = PromptFile::parse("\u{FEFF}Summarise\u{FEFF}.").unwrap();
        assert!(two.prompt().is_err());
    }

    #[test]
    fn a_comment_after_a_value_is_none_of_it() {
        let contents = "---\nvariables: # all\n  day: # no default\n  tone: dry # as ever\n  mood: \"#1 # best\"\t# of all\n\
                        settings:\n  model: a#b\t# c # d\n---\n{{day}}{{tone}}{{mood}}";
        let header = PromptFile::parse(contents).unwrap().header.unwrap();
        assert_eq!(
            header.variables,
            [
                variable("day", None),
                variable("tone", Some("dry")),
                variable("mood", Some("#1 # best"))
            ]
        );
        assert_eq!(header.settings, [setting("model", "a#b")]);
    }

    #[test]
    fn what_is_wrong_with_a_header_is_said_with_its_line() {
        for (contents, error) in [
            ("---\nvariables:\n  day:\n", "line 3: the header has no end"),
            ("---\nvariables: day\n---\n", "line 2: expected `target: …`"),
            (
                "---\nvariables:\n  - day\n---\n",
                "line 3: expected a name and a colon",
            ),
            (
                "---\nsettings:\n  a: \"b\n---\n",
                "line 3: the value has no closing",
            ),
            (
                "---\nsettings:\n  a: \"\\x\"\n---\n",
                "line 3: the value has a backslash",
            ),
            (
                "---\nsettings:\n  a: \"b\" c\n---\n",
                "line 3: something comes after",
            ),
            (
                "---\nsettings:\n  a: 'b'\n---\n",
                "line 3: put the value in double quotation marks: \"'b'\"",
            ),
        ] {
            let found = PromptFile::parse(contents).unwrap_err().to_string();
            assert!(found.starts_with(error), "{contents:?}: {found}");
        }
        let unplaced = PromptFile::parse("---\nvariables:\n  day:\n---\nToday").unwrap();
        assert!(unplaced.prompt().unwrap_err().to_string().contains("{{day}}"));
    }

    #[test]
    fn what_others_write_above_a_prompt_is_kept_as_settings() {
        let dotprompt = "---\nname: daily\nmodel: googleai/gemini-1.5-flash # fast\nconfig:\n  temperature: 0.2\n  maxOutputTokens: 400\n\
                         input:\n  schema:\n    day: string\n  default: {day: today}\noutput:\n  format: json\ntags:\n- a\n- 'b c'\n\
                         description: >\n  What happened,\n  in short\n---\nSummarise {{day}}.\n";
        let file = PromptFile::parse(dotprompt).unwrap();
        let prompt = file.prompt().unwrap();
        let expected = [
            ("config_max_output_tokens", "400"),
            ("config_temperature", "0.2"),
            ("description", "What happened, in short"),
            ("input_default", "{day: today}"),
            ("input_schema_day", "string"),
            ("model", "googleai/gemini-1.5-flash"),
            ("name", "daily"),
            ("output_format", "json"),
            ("tags", "a, b c"),
        ];
        assert_eq!(
            prompt.settings(),
            expected.map(|(name, value)| setting(name, value))
        );
        assert_eq!(prompt.text(), "Summarise {{day}}.\n");
        assert_eq!(prompt.undeclared(), ["day"]);
        let promptfoo = "---\nid: daily\nlabel: 'Daily summary'\nprovider: openai:gpt-4o-mini\ntemperature: 0.2\nconfig:\n  max_tokens: 400\n  \
                         apiBaseUrl: https://models.example/v1\nvars:\n  day: today\n---\nSummarise {{day}}.\n";
        let file = PromptFile::parse(promptfoo).unwrap();
        let expected = [
            ("config_api_base_url", "https://models.example/v1"),
            ("config_max_tokens", "400"),
            ("id", "daily"),
            ("label", "Daily summary"),
            ("provider", "openai:gpt-4o-mini"),
            ("temperature", "0.2"),
            ("vars_day", "today"),
        ];
        let prompt = file.prompt().unwrap();
        assert_eq!(
            prompt.settings(),
            expected.map(|(name, value)| setting(name, value))
        );
        assert_eq!(prompt.text(), "Summarise {{day}}.\n");
        let mixed = PromptFile::parse("---\nmodel: small\nvariables:\n  day:\n---\n{{day}}").unwrap();
        let header = mixed.header.unwrap();
        assert_eq!(header.settings, [setting("model", "small")]);
        assert_eq!(header.variables, [variable("day", None)]);
    }

    #[test]
    fn a_text_that_begins_with_a_rule_is_text() {
        for text in [
            "---\n",
            "---\nSummarise the day.\n",
            "---\nSummarise the day.\n---\nBriefly.\n",
            "---\n\nRole: summarise.\n\n---\nBriefly.",
            "---\nRole: you summarise\nwhat happened.\n---\n",
            "---\n# Rules\nBe brief: always.\n---\n",
            "---\nmodel: small\n",
            "---\n  day:\n---\n",
        ] {
            let file = PromptFile::parse(text).unwrap();
            assert_eq!((file.header, &*file.text), (None, text));
        }
    }

    #[test]
    fn a_file_of_a_target_in_any_spelling_is_that_targets() {
        let file = PromptFile::parse("x").unwrap();
        for (name, target) in [
            ("interpret.md", "INTERPRET"),
            ("summarize-hourly.md", "SUMMARIZE_HOURLY"),
            ("Task_Extract.md", "TASK_EXTRACT"),
            ("triage.md", "triage"),
        ] {
            assert_eq!(file.target(name).as_deref(), Ok(target));
        }
    }

    #[test]
    fn a_file_whose_name_is_cut_says_its_target() {
        let (long, prompt) = ("要約".repeat(60), Prompt::new("x", vec![], vec![]).unwrap());
        let file = PromptFile::of(&long, &prompt);
        let read = PromptFile::parse(&file.to_string()).unwrap();
        assert_eq!(read.target(&file_name(&long)), Ok(long));
        assert_eq!(read.target("T.md"), Err(FileError::Target), "another target's");
        let without = PromptFile::of("T", &prompt);
        assert_eq!(without.target("T.md"), Ok("T".to_owned()));
        assert!(without.target(&file_name(&"x".repeat(250))).is_err());
    }

    #[test]
    fn the_mark_at_the_beginning_of_a_file_is_passed_over() {
        for contents in ["Summarise.\n", "---\nvariables:\n  day:\n---\n{{day}}\n"] {
            let marked = PromptFile::parse(&format!("\u{feff}{contents}")).unwrap();
            assert_eq!(marked, PromptFile::parse(contents).unwrap());
        }
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            "[-\n\r\t \"\\\\:#a{}]{1,40}",
            "---\r?\n?\\PC{0,10}",
            "\\PC{1,40}",
            "\u{feff}?[\u{2028}\u{85}a]{1,9}"
        ]
        .prop_map(|text| text.replace(|c: char| c.is_control() && !"\n\r\t".contains(c), ""))
    }

    proptest! {
        #[test]
        fn every_prompt_is_read_as_it_was_written(
            text in texts(), target in "\\PC{1,256}", default in texts(), value in texts(), parts in 0..4u8,
        ) {
            let has = |part: u8| parts & part != 0;
            let text = if has(1) { format!("{text}{{{{day}}}}{{{{tone}}}}") } else { text };
            let variables = vec![variable("tone", Some(&default)), variable("day", None)];
            let variables = if has(1) { variables } else { vec![] };
            let settings = if has(2) { vec![setting("model", &value)] } else { vec![] };
            if let Ok(prompt) = Prompt::new(&text, variables, settings) {
                let contents = PromptFile::of(&target, &prompt).to_string();
                let read = PromptFile::parse(&contents).unwrap();
                prop_assert_eq!(read.target(&file_name(&target)).unwrap(), target);
                prop_assert_eq!(read.to_string(), contents);
                prop_assert_eq!(read.prompt(), Ok(prompt));
            }
        }
    }
}
