//! docs/api.md: the wire contract as a page, from the protos and their comments as parsed by buf.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Written, markdown::anchor, text};
use crate::process::{self, Workspace};

const PATH: &str = "docs/api.md";

const HEAD: &str = "\
# API reference

Written by `cargo xtask docs` from the protos in [`proto/`](../proto), comments and all; [wire.md](wire.md) shows the calls by example. A field that a message
has not set has its type's default; `UNSPECIFIED` of an enum means what its comment says. Every list call is paged: an empty `next_page_token` is the last page.
";

/// The field numbers that protobuf's descriptors use in the paths of comments.
mod part {
    pub(super) const MESSAGE: u64 = 4;
    pub(super) const ENUM: u64 = 5;
    pub(super) const SERVICE: u64 = 6;
    pub(super) const FIELD: u64 = 2;
    pub(super) const ENUM_VALUE: u64 = 2;
    pub(super) const METHOD: u64 = 2;
    pub(super) const ONEOF: u64 = 8;
}

/// The page's expected content.
pub(crate) fn page(workspace: &Workspace, buf: &Path) -> Result<Written> {
    let image = process::output(
        workspace
            .command(buf)
            .args(["build", "--output", "-#format=json"]),
    )?;
    let image: Value = serde_json::from_str(&image).context("buf's image of the protos")?;
    Ok((PATH.into(), render(&image)?))
}

fn render(image: &Value) -> Result<String> {
    let files: Vec<File<'_>> = list(image, "file")
        .filter(|file| {
            file.get("package")
                .and_then(Value::as_str)
                .is_some_and(|package| package.starts_with("emend."))
        })
        .map(File::new)
        .collect::<Result<_>>()?;
    unambiguous(&files)?;
    let mut page = HEAD.to_owned();
    let mut packages: BTreeMap<&str, Vec<&File<'_>>> = BTreeMap::new();
    for file in &files {
        packages.entry(file.package).or_default().push(file);
    }
    for (package, files) in &packages {
        write!(page, "\n## {package}\n")?;
        for file in files {
            file.services(&mut page)?;
        }
        for file in files {
            file.messages(&mut page)?;
            file.enums(&mut page)?;
        }
    }
    Ok(page)
}

/// Links use names without their packages.
fn unambiguous(files: &[File<'_>]) -> Result<()> {
    let mut names = BTreeSet::new();
    for file in files {
        for kind in ["service", "messageType", "enumType"] {
            for named in list(file.json, kind) {
                let name = text(named, "name")?;
                if !names.insert(name) {
                    bail!("two things are called {name}; links of {PATH} would be ambiguous");
                }
            }
        }
    }
    Ok(())
}

/// One proto file.
struct File<'a> {
    json: &'a Value,
    package: &'a str,
    comments: BTreeMap<Vec<u64>, String>,
}

impl<'a> File<'a> {
    fn new(json: &'a Value) -> Result<Self> {
        let mut comments = BTreeMap::new();
        for location in list(json.get("sourceCodeInfo").unwrap_or(&Value::Null), "location") {
            if let Some(comment) = location.get("leadingComments").and_then(Value::as_str) {
                let path = list(location, "path").filter_map(Value::as_u64).collect();
                // Joins the lines into one paragraph and escapes what would end a table cell.
                let words: Vec<&str> = comment.split_whitespace().collect();
                comments.insert(path, words.join(" ").replace('|', "\\|").replace('<', "&lt;"));
            }
        }
        Ok(Self {
            json,
            package: text(json, "package")?,
            comments,
        })
    }

    fn comment(&self, path: &[usize]) -> &str {
        let path: Vec<u64> = path.iter().map(|&part| part as u64).collect();
        self.comments.get(&path).map_or("", String::as_str)
    }

    fn services(&self, page: &mut String) -> Result<()> {
        for (index, service) in list(self.json, "service").enumerate() {
            let at = [number(part::SERVICE), index];
            write!(
                page,
                "\n### {}\n\n{}\n",
                text(service, "name")?,
                self.comment(&at)
            )?;
            writeln!(page, "\n| call | request | response | |\n|---|---|---|---|")?;
            for (index, method) in list(service, "method").enumerate() {
                let streams = |key: &str| {
                    if method.get(key) == Some(&Value::Bool(true)) {
                        "stream of "
                    } else {
                        ""
                    }
                };
                writeln!(
                    page,
                    "| `{}` | {}{} | {}{} | {} |",
                    text(method, "name")?,
                    streams("clientStreaming"),
                    link(text(method, "inputType")?),
                    streams("serverStreaming"),
                    link(text(method, "outputType")?),
                    self.comment(&[at[0], at[1], number(part::METHOD), index]),
                )?;
            }
        }
        Ok(())
    }

    fn messages(&self, page: &mut String) -> Result<()> {
        for (index, message) in list(self.json, "messageType").enumerate() {
            let at = [number(part::MESSAGE), index];
            write!(
                page,
                "\n### {}\n\n{}\n",
                text(message, "name")?,
                self.comment(&at)
            )?;
            if list(message, "field").next().is_none() {
                continue;
            }
            let oneofs: Vec<&Value> = list(message, "oneofDecl").collect();
            writeln!(page, "\n| field | number | type | |\n|---|---|---|---|")?;
            for (index, field) in list(message, "field").enumerate() {
                let mut described = self
                    .comment(&[at[0], at[1], number(part::FIELD), index])
                    .to_owned();
                if let Some(oneof) = field.get("oneofIndex").and_then(Value::as_u64) {
                    let oneof = usize::try_from(oneof)?;
                    let name = text(oneofs.get(oneof).context("a oneof that is not declared")?, "name")?;
                    let rule = self.comment(&[at[0], at[1], number(part::ONEOF), oneof]);
                    described = format!(
                        "One of `{name}` ({}). {described}",
                        rule.trim_end_matches('.').to_lowercase()
                    );
                }
                let field_number = field
                    .get("number")
                    .and_then(Value::as_u64)
                    .context("a field has a number")?;
                writeln!(
                    page,
                    "| `{}` | {field_number} | {} | {described} |",
                    text(field, "name")?,
                    field_type(message, field)?,
                )?;
            }
        }
        Ok(())
    }

    fn enums(&self, page: &mut String) -> Result<()> {
        for (index, named) in list(self.json, "enumType").enumerate() {
            let at = [number(part::ENUM), index];
            write!(page, "\n### {}\n\n{}\n", text(named, "name")?, self.comment(&at))?;
            writeln!(page, "\n| value | number | |\n|---|---|---|")?;
            for (index, value) in list(named, "value").enumerate() {
                writeln!(
                    page,
                    "| `{}` | {} | {} |",
                    text(value, "name")?,
                    value.get("number").and_then(Value::as_i64).unwrap_or_default(),
                    self.comment(&[at[0], at[1], number(part::ENUM_VALUE), index]),
                )?;
            }
        }
        Ok(())
    }
}

/// A field's type in words.
fn field_type(message: &Value, field: &Value) -> Result<String> {
    let one = match field.get("typeName").and_then(Value::as_str) {
        Some(name) => {
            if let Some(entry) = map_entry(message, name) {
                let mut parts = list(entry, "field");
                let (Some(key), Some(value)) = (parts.next(), parts.next()) else {
                    bail!("{name} is no entry of a map");
                };
                let (key, value) = (field_type(entry, key)?, field_type(entry, value)?);
                return Ok(format!("map of {key} to {value}"));
            }
            link(name)
        }
        None => text(field, "type")?.trim_start_matches("TYPE_").to_lowercase(),
    };
    let repeated = field.get("label").and_then(Value::as_str) == Some("LABEL_REPEATED");
    Ok(if repeated { format!("list of {one}") } else { one })
}

/// A type's name, linked to its section if it is on this page.
fn link(name: &str) -> String {
    let name = name.trim_start_matches('.');
    let (package, short) = name.rsplit_once('.').unwrap_or(("", name));
    match package {
        "google.protobuf" => format!("`{short}`"),
        _ if package.starts_with("emend.") => format!("[{short}](#{})", anchor(short)),
        _ => format!("`{name}`"),
    }
}

/// The entry type that protobuf generates for a map, if `name` is one of this message's.
fn map_entry<'a>(message: &'a Value, name: &str) -> Option<&'a Value> {
    list(message, "nestedType").find(|nested| {
        let is_entry = nested.pointer("/options/mapEntry") == Some(&Value::Bool(true));
        let short = nested.get("name").and_then(Value::as_str);
        is_entry && short.is_some_and(|short| name.rsplit('.').next() == Some(short))
    })
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

#[expect(clippy::cast_possible_truncation, reason = "the numbers are below ten")]
fn number(part: u64) -> usize {
    part as usize
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::render;

    #[test]
    fn services_messages_maps_oneofs_and_enums_are_documented_with_comments() {
        let image = json!({"file": [
            {"package": "google.protobuf", "messageType": [{"name": "Timestamp"}]},
            {
                "package": "emend.x.v1",
                "service": [{"name": "S", "method": [
                    {"name": "Do", "inputType": ".emend.x.v1.M", "outputType": ".google.protobuf.Timestamp", "serverStreaming": true},
                ]}],
                "messageType": [{
                    "name": "M",
                    "oneofDecl": [{"name": "form"}],
                    "nestedType": [{"name": "LabelsEntry", "options": {"mapEntry": true}, "field": [
                        {"name": "key", "type": "TYPE_STRING", "label": "LABEL_OPTIONAL", "number": 1},
                        {"name": "value", "type": "TYPE_ENUM", "typeName": ".emend.x.v1.E", "label": "LABEL_OPTIONAL", "number": 2},
                    ]}],
                    "field": [
                        {"name": "id", "number": 1, "type": "TYPE_STRING", "label": "LABEL_REPEATED"},
                        {"name": "labels", "number": 2, "type": "TYPE_MESSAGE", "typeName": ".emend.x.v1.M.LabelsEntry", "label": "LABEL_REPEATED"},
                        {"name": "one", "number": 3, "type": "TYPE_INT64", "label": "LABEL_OPTIONAL", "oneofIndex": 0},
                    ],
                }],
                "enumType": [{"name": "E", "value": [{"name": "E_UNSPECIFIED", "number": 0}]}],
                "sourceCodeInfo": {"location": [
                    {"path": [6, 0], "leadingComments": " Serves.\n"},
                    {"path": [6, 0, 2, 0], "leadingComments": " Does a | b,\n over two lines.\n"},
                    {"path": [4, 0, 2, 0], "leadingComments": " Which.\n"},
                    {"path": [4, 0, 8, 0], "leadingComments": " At most one.\n"},
                    {"path": [5, 0, 2, 0], "leadingComments": " The default.\n"},
                ]},
            },
        ]});
        let page = render(&image).unwrap();
        for expected in [
            "## emend.x.v1\n\n### S\n\nServes.\n",
            "| `Do` | [M](#m) | stream of `Timestamp` | Does a \\| b, over two lines. |",
            "| `id` | 1 | list of string | Which. |",
            "| `labels` | 2 | map of string to [E](#e) |  |",
            "| `one` | 3 | int64 | One of `form` (at most one).  |",
            "| `E_UNSPECIFIED` | 0 | The default. |",
        ] {
            assert!(page.contains(expected), "{expected} is not in\n{page}");
        }
        assert!(!page.contains("### Timestamp"), "{page}");
    }

    #[test]
    fn duplicate_names_are_refused() {
        let image = json!({"file": [
            {"package": "emend.x.v1", "messageType": [{"name": "M"}]},
            {"package": "emend.y.v1", "messageType": [{"name": "M"}]},
        ]});
        assert!(render(&image).is_err());
    }
}
