//! What the documents tell to type works as pasted: every block for a shell is run, page by page, in order. Blocks in other
//! languages are held to something, too; none is there for looks only.

mod markdown;
mod reader;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use self::{
    markdown::blocks,
    reader::{Reader, text},
};

/// What the pages beside services that run already stand on.
const UP: &str =
    "emend up --data-dir before\n# emend: ready feedback=127.0.0.1:7401 learning=127.0.0.1:7402\n";
/// The same, on PostgreSQL.
const UP_ON_POSTGRES: &str = "emend up --database-url \"$EMEND_DATABASE_URL\"\n# emend: ready \n";
/// Where the pages expect the database.
const DATABASE: &str = "export EMEND_DATABASE_URL=postgres://emend@127.0.0.1/emend\n";

/// Pages whose blocks for a shell are run here.
const TYPED: &[&str] = &["README.md", "docs/wire.md", "docs/operations.md", "docs/audit.md"];
/// The directory of pages that are run together.
const RUNBOOKS: &str = "docs/runbooks";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_readme_works_as_pasted() {
    let Some(mut reader) = Reader::of(&["README.md"]).await else {
        return;
    };
    reader.reads("README.md").await;
    assert!(reader.ends().await > 5, "the README shows what to type");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wire_guide_works_as_pasted() {
    let Some(mut reader) = Reader::of(&["docs/wire.md"]).await else {
        return;
    };
    reader.has_typed(UP).await;
    reader.reads("docs/wire.md").await;
    assert!(reader.ends().await > 5, "the guide shows how to use grpcurl");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_work_as_pasted() {
    let Some(mut reader) = Reader::of(&["docs/operations.md"]).await else {
        return;
    };
    reader.reads("docs/operations.md").await;
    assert!(reader.ends().await > 10, "operations show what to type");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runbooks_and_the_audit_work_as_pasted() {
    let pages: Vec<String> = pages()
        .into_iter()
        .filter(|page| page.starts_with(RUNBOOKS))
        .collect();
    let mut all: Vec<&str> = pages.iter().map(String::as_str).collect();
    all.push("docs/audit.md");
    let Some(mut reader) = Reader::of(&all).await else {
        return;
    };
    reader.has_typed(DATABASE).await;
    reader.has_typed(UP_ON_POSTGRES).await;
    for page in all {
        reader.reads(page).await;
    }
    assert!(reader.ends().await > 10, "runbooks show what to type");
}

#[test]
fn every_block_of_every_page_is_held_to_something() {
    let mut unheld = Vec::new();
    for page in pages() {
        for block in blocks(&text(&page)) {
            let is_part =
                block.before.starts_with("<!-- part of ") || block.before.starts_with("<!-- all of ");
            let held = match block.language.as_str() {
                "sh" => TYPED.contains(&page.as_str()) || page.starts_with(RUNBOOKS),
                // Pictures; and queries, which `cargo xtask lint` has promtool check, and the names in them.
                "text" | "promql" => true,
                // A documentation test of emend-client.
                "rust,no_run" => page == "README.md",
                // Taken from a program that is run.
                "rust" | "python" | "go" => is_part,
                _ => false,
            };
            if !held {
                unheld.push(format!("{page}: {}\n{}", block.language, block.text));
            }
        }
    }
    assert!(unheld.is_empty(), "{}", unheld.join("\n"));
}

/// Every page that users read.
fn pages() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = BTreeSet::from(["README.md".to_owned()]);
    let mut directories: Vec<PathBuf> = vec!["docs".into(), "deploy".into()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory)).expect("a directory") {
            let entry = entry.expect("an entry");
            let path = directory.join(entry.file_name());
            if entry.path().is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.insert(path.to_string_lossy().into_owned());
            }
        }
    }
    pages
}
