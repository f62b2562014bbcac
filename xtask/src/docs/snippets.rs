//! Examples in documents that are taken from tested programs: a comment names the file and the part, and the fenced
//! block after it is that part.
//!
//! In the document: `<!-- part of FILE: NAME -->` or `<!-- all of FILE -->`, directly before a fenced block. In the
//! file, a part begins after a line that ends with `[NAME]` and ends before the one that ends with `[/NAME]`. Marks of
//! other parts are omitted.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

/// Replaces every such block with the part of the file that `read` returns.
pub(super) fn fill(text: &str, read: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut filled = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        writeln!(filled, "{line}")?;
        let Some(source) = Source::parse(line) else {
            continue;
        };
        let fence = lines.next().filter(|line| line.starts_with("```"));
        let fence = fence.with_context(|| format!("{line}: a fenced block has to follow"))?;
        if !lines.by_ref().any(|line| line.starts_with("```")) {
            bail!("{line}: the block has no end");
        }
        let part = source
            .part_of(&read(source.file)?)
            .with_context(|| line.to_owned())?;
        write!(filled, "{fence}\n{part}```\n")?;
    }
    Ok(filled)
}

struct Source<'a> {
    file: &'a str,
    part: Option<&'a str>,
}

impl<'a> Source<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let directive = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        if let Some(file) = directive.strip_prefix("all of ") {
            return Some(Self { file, part: None });
        }
        let (file, part) = directive.strip_prefix("part of ")?.split_once(": ")?;
        Some(Self {
            file,
            part: Some(part),
        })
    }

    fn part_of(&self, text: &str) -> Result<String> {
        let Some(name) = self.part else {
            return Ok(text
                .lines()
                .filter(|line| !is_mark(line))
                .flat_map(|line| [line, "\n"])
                .collect());
        };
        let (begin, end) = (format!("[{name}]"), format!("[/{name}]"));
        let mut part = Vec::new();
        let mut lines = text.lines().skip_while(|line| !line.trim_end().ends_with(&begin));
        lines.next().with_context(|| format!("there is no {begin}"))?;
        let mut ended = false;
        for line in lines {
            if line.trim_end().ends_with(&end) {
                ended = true;
                break;
            }
            if !is_mark(line) {
                part.push(line);
            }
        }
        if !ended {
            bail!("there is no {end}");
        }
        let indent = |line: &&str| line.len() - line.trim_start().len();
        let common = part
            .iter()
            .filter(|line| !line.trim().is_empty())
            .map(indent)
            .min();
        let lines = part
            .iter()
            .map(|line| line.get(common.unwrap_or(0)..).unwrap_or_default());
        Ok(lines.flat_map(|line| [line, "\n"]).collect())
    }
}

/// Whether the line is a comment that consists of a mark.
fn is_mark(line: &str) -> bool {
    let line = line.trim();
    let comment = line.strip_prefix("//").or_else(|| line.strip_prefix('#'));
    comment.map(str::trim).is_some_and(|comment| {
        comment.starts_with('[')
            && comment.ends_with(']')
            && comment
                .trim_matches(['[', ']', '/'])
                .chars()
                .all(|c| c.is_alphanumeric() || c == '-')
    })
}

#[cfg(test)]
mod tests {
    use super::fill;

    const PROGRAM: &str = "import a\n\ndef f():\n    # [outer]\n    one\n    # [inner]\n    if two:\n\n        three\n    # [/inner]\n    # [/outer]\n";

    fn filled(text: &str) -> Result<String, String> {
        fill(text, |_| Ok(PROGRAM.to_owned())).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_block_becomes_the_part_it_names_without_its_indentation() {
        let text = "a\n<!-- part of x.py: inner -->\n```python\nold\n```\nb\n";
        assert_eq!(
            filled(text).unwrap(),
            "a\n<!-- part of x.py: inner -->\n```python\nif two:\n\n    three\n```\nb\n"
        );
    }

    #[test]
    fn markers_are_left_out_and_other_blocks_unchanged() {
        let text = "<!-- part of x.py: outer -->\n```python\n```\n\n```python\nas it is\n```\n";
        assert_eq!(
            filled(text).unwrap(),
            "<!-- part of x.py: outer -->\n```python\none\nif two:\n\n    three\n```\n\n```python\nas it is\n```\n"
        );
        let all = filled("<!-- all of x.py -->\n```python\n```\n").unwrap();
        assert!(all.contains("import a\n") && !all.contains('['), "{all}");
    }

    #[test]
    fn a_part_that_is_not_there_is_an_error() {
        for text in [
            "<!-- part of x.py: gone -->\n```\n```\n",
            "<!-- part of x.py: inner -->\nno block\n",
            "<!-- part of x.py: inner -->\n```\nno end\n",
        ] {
            assert!(filled(text).is_err(), "{text}");
        }
    }
}
