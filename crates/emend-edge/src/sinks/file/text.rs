//! A file of synonyms or domains, which begins with its stamp.

use std::{
    fs,
    io::{self, ErrorKind},
    path::PathBuf,
};

use emend_client::prompt_files::replace;
use serde_json::{Map, Value, json};

use super::blocking;
use crate::sinks::{
    config::Format,
    content::{Content, Entries, Mark, Seen, Stamp, Wanted},
    error::SinkError,
    synonyms,
};

/// Begins the first line, before the stamp.
const HEADER: &str = "# Kept by Emend, which writes it anew: ";
/// Names the stamp in JSON.
const MEMBER: &str = "kept_by_emend";

/// A file.
#[derive(Debug, Clone)]
pub(in crate::sinks) struct TextFile {
    /// Where it is.
    pub(in crate::sinks) path: PathBuf,
    /// How it is written.
    pub(in crate::sinks) format: Format,
}

impl TextFile {
    /// What is there now.
    pub(in crate::sinks) async fn seen(&self) -> Result<Seen, SinkError> {
        let (path, format) = (self.path.clone(), self.format);
        blocking(&self.path, move || match fs::read(path) {
            Ok(bytes) => Ok(seen(format, &bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Seen::Empty),
            Err(error) => Err(error),
        })
        .await
    }

    /// Replaces it as a whole.
    pub(in crate::sinks) async fn write(&self, wanted: &Wanted) -> Result<(), SinkError> {
        let (path, text) = (self.path.clone(), text(self.format, wanted));
        blocking(&self.path, move || {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "is no name of a file"))?;
            replace(directory.unwrap_or_else(|| ".".as_ref()), name, &text)
        })
        .await
    }
}

fn text(format: Format, wanted: &Wanted) -> String {
    let stamp = wanted.stamp();
    let lines = match &wanted.content {
        Content::Synonyms(entries) if format == Format::Json => {
            let entries: Map<String, Value> = entries
                .iter()
                .map(|(term, all)| (term.clone(), json!(all)))
                .collect();
            let document = json!({MEMBER: stamp.to_string(), "synonyms": entries});
            return format!("{document:#}\n");
        }
        Content::Synonyms(entries) => synonyms::rules(entries, &stamp),
        Content::Lines(lines) => lines.clone(),
        Content::Files(_) => Vec::new(),
    };
    let mut text = format!("{HEADER}{stamp}\n");
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn seen(format: Format, bytes: &[u8]) -> Seen {
    let Ok(text) = str::from_utf8(bytes) else {
        return Seen::Foreign(format!("{} bytes", bytes.len()));
    };
    if text.is_empty() {
        return Seen::Empty;
    }
    let found = match format {
        Format::Json => of_json(text),
        Format::Solr | Format::Plain | Format::Hosts | Format::Ublacklist => of_lines(format, text),
    };
    match found {
        None => Seen::Foreign(format!("{} bytes", bytes.len())),
        Some((said, is)) if is.as_ref() == Some(&said.mark) => Seen::Intact(said),
        Some(_) => Seen::Changed(format!(
            "{} lines that are not those that were written",
            text.lines().count()
        )),
    }
}

/// The stamp that is written in the file, and the mark of what stands in it; `None` if no sink wrote it.
fn of_lines(format: Format, text: &str) -> Option<(Stamp, Option<Mark>)> {
    let mut lines = text.lines();
    let said = Stamp::parse(lines.next()?.strip_prefix(HEADER)?)?;
    let is = if format == Format::Solr {
        synonyms::parse(lines).and_then(|found| match synonyms::seen(&found) {
            Seen::Intact(stamp) => Some(stamp.mark),
            _ => None,
        })
    } else {
        Some(Mark::of(lines))
    };
    Some((said, is))
}

fn of_json(text: &str) -> Option<(Stamp, Option<Mark>)> {
    let document: Value = serde_json::from_str(text).ok()?;
    let said = Stamp::parse(document.get(MEMBER)?.as_str()?)?;
    let entries: Option<Entries> = document
        .get("synonyms")
        .and_then(|entries| serde_json::from_value(entries.clone()).ok());
    Some((said, entries.map(|entries| synonyms::mark(&entries))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sinks::content::Writer;

    #[test]
    fn every_format_is_known_again_and_a_change_by_hand_is_seen() {
        let entries = Entries::from([("a, #b".to_owned(), ["a, #b".to_owned(), "c".to_owned()].into())]);
        let lines = vec!["*://*.example.org/*".to_owned()];
        for (format, content) in [
            (Format::Solr, Content::Synonyms(entries.clone())),
            (Format::Json, Content::Synonyms(entries)),
            (Format::Plain, Content::Lines(lines.clone())),
            (Format::Ublacklist, Content::Lines(lines)),
            (Format::Hosts, Content::Lines(Vec::new())),
        ] {
            let mut wanted = Wanted::new(content, BTreeMap::new(), Vec::new());
            wanted.writer = Some(Writer::new("file:words", ["shop"], "epoch", 7));
            let written = text(format, &wanted);
            assert_eq!(
                seen(format, written.as_bytes()),
                Seen::Intact(wanted.stamp()),
                "{written}"
            );
            let changed = match format {
                Format::Json => written.replace("\"c\"", "\"d\""),
                _ => format!("{written}more => more, less\n"),
            };
            assert!(
                matches!(seen(format, changed.as_bytes()), Seen::Changed(_)),
                "{changed}"
            );
            assert!(matches!(seen(format, b"somebody's own"), Seen::Foreign(_)));
        }
    }
}
