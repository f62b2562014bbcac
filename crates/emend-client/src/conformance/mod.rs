//! The vectors that clients in every language are held to: `conformance/` at the root, one file of JSON Lines for each
//! group.
//!
//! The answers of `cases` are written by this crate, with `EMEND_UPDATE_CONFORMANCE=1`, and reviewed like code. The runner
//! reads the files and nothing else.

mod answers;
mod cases;
mod logs;
mod taught;

use std::{env, fmt::Write as _, fs, path::PathBuf};

use serde_json::{Value, json};

/// Names the variable that has the files written.
const UPDATE: &str = "EMEND_UPDATE_CONFORMANCE";

/// The groups that this crate claims: all.
const GROUPS: [&str; 9] = [
    "normalisation",
    "digests",
    "stream",
    "reports",
    "lookups",
    "near",
    "expansion",
    "prompts",
    "errors",
];

/// A line of a file.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// Unique in its group.
    id: String,
    /// What it checks, in words.
    checks: String,
    input: Value,
    answer: Value,
}

fn file(group: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance")
        .join(format!("{group}.jsonl"))
}

/// The lines of a group as they are in its file.
fn read(group: &str) -> Vec<Line> {
    let path = file(group);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .enumerate()
        .map(|(index, line)| {
            let place = format!("{}:{}", path.display(), index + 1);
            let parsed: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{place}: {error}"));
            let text = |name: &str| {
                let text = parsed[name].as_str().filter(|text| !text.is_empty());
                text.unwrap_or_else(|| panic!("{place} has no {name}")).to_owned()
            };
            Line {
                id: text("id"),
                checks: text("checks"),
                input: parsed["input"].clone(),
                answer: parsed["answer"].clone(),
            }
        })
        .collect()
}

/// The lines of a group as they should be.
fn written(group: &str, states: &[Line]) -> Vec<Line> {
    cases::of(group)
        .into_iter()
        .map(|(id, checks, input)| Line {
            answer: answers::of(group, &input, states),
            id: id.into(),
            checks: checks.into(),
            input,
        })
        .collect()
}

fn encoded(lines: &[Line]) -> String {
    let mut text = String::new();
    for Line {
        id,
        checks,
        input,
        answer,
    } in lines
    {
        let (id, checks) = (json!(id), json!(checks));
        writeln!(
            text,
            r#"{{"id":{id},"checks":{checks},"input":{input},"answer":{answer}}}"#
        )
        .expect("a text takes everything");
    }
    text
}

#[test]
fn the_files_are_what_the_rules_say() {
    let states = written("stream", &[]);
    for group in GROUPS {
        let rules = written(group, &states);
        if env::var_os(UPDATE).is_some() {
            fs::write(file(group), encoded(&rules)).unwrap();
            continue;
        }
        // Not as texts: whether serde_json keeps the order of fields depends on what else is built.
        let held = read(group);
        let first = rules.iter().zip(&held).find(|(rule, line)| rule != line);
        assert!(
            rules == held,
            "{group} differs from the rules; {UPDATE}=1 writes it. First: {first:?}"
        );
    }
}

/// What is wrong with the lines of a group, each by its id.
fn wrong(group: &str, lines: &[Line], states: &[Line]) -> Vec<String> {
    let mut wrong = Vec::new();
    if lines.is_empty() {
        wrong.push(format!("{group} is empty"));
    }
    for (index, line) in lines.iter().enumerate() {
        let Line { id, checks, .. } = line;
        if lines[..index].iter().any(|before| before.id == *id) {
            wrong.push(format!("{group}/{id} is there twice"));
        }
        let answer = answers::of(group, &line.input, states);
        if answer != line.answer {
            wrong.push(format!(
                "{group}/{id}: {checks}:\n  {answer}\n  is not {}",
                line.answer
            ));
        }
    }
    wrong
}

#[test]
fn this_client_conforms_to_every_group() {
    let states = read("stream");
    let wrong: Vec<String> = GROUPS
        .iter()
        .flat_map(|group| wrong(group, &read(group), &states))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_runner_names_the_line_whose_answer_is_changed() {
    let states = read("stream");
    for group in GROUPS {
        let mut lines = read(group);
        let place = lines.len() / 2;
        let id = lines[place].id.clone();
        spoil(&mut lines[place].answer);
        let told = wrong(group, &lines, &states);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(&format!("{group}/{id}: ")), "{told:?}");
        assert_eq!(wrong(group, &[], &states), [format!("{group} is empty")]);
    }
}

/// Changes the first text, number or truth in an answer; adds a text where there is none.
fn spoil(answer: &mut Value) {
    match answer {
        Value::Null => *answer = json!("spoilt"),
        Value::Bool(is) => *is = !*is,
        Value::Number(_) => *answer = json!(-1),
        Value::String(text) => text.push('x'),
        Value::Array(list) => match list.first_mut() {
            Some(first) => spoil(first),
            None => list.push(json!("spoilt")),
        },
        Value::Object(fields) => fields.values_mut().take(1).for_each(spoil),
    }
}
