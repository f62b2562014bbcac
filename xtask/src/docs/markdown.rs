//! Just enough Markdown for the document checks: pages, fenced blocks, links and headings.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::process::Workspace;

/// Where pages are: these directories and below, besides the root itself.
const DIRECTORIES: &[&str] = &["docs", "deploy", "examples"];

/// A page of the repository.
pub(crate) struct Page {
    /// Relative to the root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// All pages, sorted by path.
pub(crate) fn pages(workspace: &Workspace) -> Result<Vec<Page>> {
    let root = workspace.path("");
    let mut paths = Vec::new();
    for entry in fs::read_dir(&root)? {
        let path = entry?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    let mut directories: Vec<PathBuf> = DIRECTORIES.iter().map(|name| root.join(name)).collect();
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            // What npm installs beside an example is others'.
            if path.is_dir() && !path.ends_with("node_modules") {
                directories.push(path);
            } else if path.is_file() {
                paths.push(path);
            }
        }
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let path = path.strip_prefix(&root).unwrap_or(&path).to_owned();
            Ok(Page { path, text })
        })
        .collect()
}

/// The lines of a page, and whether each is within a fenced block. A fence counts as within.
fn lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut inside = false;
    text.lines().map(move |line| {
        let fence = line.trim_start().starts_with("```");
        let within = inside || fence;
        inside ^= fence;
        (line, within)
    })
}

/// The fenced blocks in `language`, without their indentation.
pub(crate) fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut inside: Option<(usize, bool, String)> = None;
    for line in text.lines() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut inside, fence) {
            (None, Some(info)) => {
                inside = Some((
                    line.len() - line.trim_start().len(),
                    info.trim() == language,
                    String::new(),
                ));
            }
            (None, None) => {}
            (Some((_, wanted, block)), Some(_)) => {
                if *wanted {
                    blocks.push(std::mem::take(block));
                }
                inside = None;
            }
            (Some((indent, _, block)), None) => {
                let spaces = line.len() - line.trim_start().len();
                block.push_str(&line[spaces.min(*indent)..]);
                block.push('\n');
            }
        }
    }
    blocks
}

/// Broken links: to a missing file, or to a heading that its page lacks.
pub(crate) fn link_findings(workspace: &Workspace, pages: &[Page]) -> Vec<String> {
    let mut findings = Vec::new();
    for page in pages {
        for link in links(&page.text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let directory = page.path.parent().unwrap_or(Path::new(""));
            let target = if file.is_empty() {
                page.path.clone()
            } else {
                normal(&directory.join(file))
            };
            let shown = page.path.display();
            if !workspace.path(&target).exists() {
                findings.push(format!("{shown}: {link} does not exist"));
            } else if !heading.is_empty() {
                let there = pages.iter().find(|page| page.path == target);
                if there.is_none_or(|page| !anchors(&page.text).contains(heading)) {
                    findings.push(format!("{shown}: {link}: the page has no such heading"));
                }
            }
        }
    }
    findings
}

/// The path with `.` and `..` resolved.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                normal.pop();
            }
            std::path::Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// The targets of a text's links, `[…](here)`, outside code.
fn links(text: &str) -> impl Iterator<Item = &str> {
    lines(text).filter(|(_, within)| !within).flat_map(|(line, _)| {
        line.match_indices("](").filter_map(move |(at, _)| {
            let (before, after) = (&line[..at], &line[at + 2..]);
            // An odd number of backticks before it means it is within code.
            (before.matches('`').count() % 2 == 0 || before.ends_with('`')).then_some(())?;
            after.split(')').next()
        })
    })
}

/// The anchors of a page's headings, as GitHub generates them.
fn anchors(text: &str) -> BTreeSet<String> {
    lines(text)
        .filter(|(line, within)| !within && line.starts_with('#'))
        .map(|(line, _)| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

/// The anchor of a heading.
pub(crate) fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{anchors, blocks, links, normal};

    #[test]
    fn blocks_lose_the_indentation_of_their_fence() {
        let text = "1. a\n   ```sh\n   one\n     two\n   ```\n```text\nno\n```\n";
        assert_eq!(blocks(text, "sh"), ["one\n  two\n"]);
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](b.md) and [`c`](d.md#e), `[no](f)`\n```\n[no](g)\n```\n";
        assert_eq!(links(text).collect::<Vec<_>>(), ["b.md", "d.md#e"]);
    }

    #[test]
    fn headings_have_githubs_anchors() {
        let anchors = anchors("# How it works\n## Rate, errors: `a_b`\n```\n# no\n```\n");
        assert_eq!(
            anchors.into_iter().collect::<Vec<_>>(),
            ["how-it-works", "rate-errors-a_b"]
        );
    }

    #[test]
    fn a_path_loses_its_detours() {
        assert_eq!(normal(Path::new("docs/runbooks/../a.md")), Path::new("docs/a.md"));
    }
}
