//! Every command in the documents works as pasted: every shell block is run, page by page, in order. Blocks in other
//! languages are checked too; none is there only for show.

mod markdown;
mod reader;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use emend_base::bearer::TokenFile;
use emend_serve::auth::{self, Authenticator, Role};
use emend_tests::harness::process::{binary, run};
use tokio::process::Command;

pub(crate) use self::reader::postgres_programs;
use self::{
    markdown::blocks,
    reader::{Reader, text},
};

/// What pages that expect running services build on.
const UP: &str =
    "emend up --data-dir before\n# emend: ready feedback=127.0.0.1:7401 learning=127.0.0.1:7402\n";
/// The example search node beside it.
const SEARCH_NODE_UP: &str = "cargo run -p search-node -- serve --namespace cards\n# search-node: \n";
/// The same as `UP`, on PostgreSQL.
const UP_ON_POSTGRES: &str =
    "emend up --accept-new-installation --database-url \"$EMEND_DATABASE_URL\"\n# emend: ready \n";
/// Where the pages expect the database.
const DATABASE: &str = "export EMEND_DATABASE_URL=postgres://emend@127.0.0.1/emend\n";

/// Pages whose shell blocks are run here, besides the runbooks.
const TYPED: &[&str] = &[
    "README.md",
    "docs/wire.md",
    "docs/operations.md",
    "docs/audit.md",
    GUIDE_IN_RUST,
    "docs/integration/python.md",
    "docs/integration/go.md",
    "docs/integration/research.md",
    "docs/integration/assistant.md",
    OUTPUTS,
    SEARCH,
    QUERIES,
    EVIDENCE,
    EDGE,
    MCP,
    NEAR,
    SEARCH_NODE,
    SECURITY,
    TELEMETRY,
];
/// The page of the example search node.
const SEARCH_NODE: &str = "examples/search-node/README.md";
/// The page about ratings, prompts and profiles.
const OUTPUTS: &str = "docs/outputs.md";
/// The page about ratings of what was found.
const SEARCH: &str = "docs/search.md";
/// The page about what was searched.
const QUERIES: &str = "docs/queries.md";
/// The page about look-ups over HTTP.
const EDGE: &str = "docs/edge.md";
/// The page about tools for assistants.
const MCP: &str = "docs/mcp.md";
/// The page about phrases that nobody corrected.
const NEAR: &str = "docs/near.md";
/// The page with a search node's dependencies.
const GUIDE_IN_RUST: &str = "docs/integration/rust.md";
/// The page whose commands a test of `emend` runs: services are started with the certificates that they make.
const TLS: &str = "docs/tls.md";
/// The page with a settings file.
const CONFIGURATION: &str = "docs/configuration.md";
/// The page of what takes a container engine or a cluster to run. The names in it are checked against the programs by
/// the manifests' tests, and here against what exists.
const DEPLOY: &str = "docs/deploy.md";
/// The page about the console.
pub(crate) const CONSOLE: &str = "docs/console.md";
/// The page with files that say who may do what.
const SECURITY: &str = "docs/security.md";
/// The page about metrics, logs and traces.
const TELEMETRY: &str = "docs/telemetry.md";
/// The page with lines of the evidence graph and a trust file.
const EVIDENCE: &str = "docs/evidence.md";
/// The directory of pages that are run together.
const RUNBOOKS: &str = "docs/runbooks";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_readme_works_as_pasted() {
    let Some(mut reader) = Reader::of(&["README.md"]).await else {
        return;
    };
    let printed = reader.reads("README.md").await.concat();
    let change = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.starts_with(&["3", "entity_alias:", "the", "lux", "fund", "→", "fund:lux-2"])
            && line.ends_with(" ms]")
    };
    assert!(printed.lines().any(change), "{printed}");
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
async fn feedback_on_ai_output_works_as_pasted() {
    let Some(mut reader) = Reader::of(&[OUTPUTS]).await else {
        return;
    };
    reader.has_typed(UP).await;
    reader.reads(OUTPUTS).await;
    assert!(reader.ends().await > 5, "the page shows what to type");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feedback_on_searches_works_as_pasted() {
    for page in [SEARCH, QUERIES] {
        let Some(mut reader) = Reader::of(&[page]).await else {
            return;
        };
        reader.has_typed(UP).await;
        if page == SEARCH {
            reader.has_typed(SEARCH_NODE_UP).await;
        }
        reader.reads(page).await;
        assert!(reader.ends().await > 4, "{page} shows what to type");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_evidence_graph_works_as_pasted() {
    let Some(mut reader) = Reader::of(&[EVIDENCE]).await else {
        return;
    };
    let page = blocks(&text(EVIDENCE));
    for (name, language) in [("evidence.jsonl", "json"), ("trust.yaml", "yaml")] {
        let file = page.iter().find(|block| block.language == language);
        reader.has_written(name, &file.expect(language).text);
    }
    reader.has_typed(UP).await;
    reader.reads(EVIDENCE).await;
    assert!(reader.ends().await > 4, "the page shows what to type");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_edge_works_as_pasted() {
    let Some(mut reader) = Reader::of(&[EDGE]).await else {
        return;
    };
    reader.reads(EDGE).await;
    assert!(reader.ends().await > 3, "the page shows what to type");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tools_for_assistants_work_as_pasted() {
    let Some(mut reader) = Reader::of(&[MCP]).await else {
        return;
    };
    reader.reads(MCP).await;
    assert!(reader.ends().await > 2, "the page shows what to type");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn near_answers_work_as_pasted() {
    let Some(mut reader) = Reader::of(&[NEAR]).await else {
        return;
    };
    reader.has_typed(UP).await;
    reader.reads(NEAR).await;
    assert!(reader.ends().await > 0, "the page shows what to type");
}

#[test]
fn the_documented_edge_files_are_accepted() {
    let page = blocks(&text(EDGE));
    let files = page.iter().filter(|block| block.language == "toml");
    for (place, file) in files.enumerate() {
        let config = emend_edge::Config::parse(&file.text);
        let config = config.unwrap_or_else(|error| panic!("{error}:\n{}", file.text));
        assert!(place > 0 || config.listen.len() == 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_search_nodes_page_works_as_pasted() {
    let Some(mut reader) = Reader::of(&[SEARCH_NODE]).await else {
        return;
    };
    reader.has_typed(UP).await;
    reader.reads(SEARCH_NODE).await;
    assert!(reader.ends().await > 5, "the page shows what to type");
}

#[test]
fn the_documented_record_is_in_the_search_nodes_corpus() {
    let page = blocks(&text(SEARCH_NODE));
    let shown = page.iter().find(|block| block.language == "json");
    let shown = shown.expect("the page shows a record").text.trim();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/search-node/corpus");
    let mut files = fs::read_dir(directory).expect("a directory");
    let is_there = files.any(|file| {
        let corpus = fs::read_to_string(file.expect("an entry").path()).expect("text");
        corpus.lines().any(|line| line == shown)
    });
    assert!(is_there, "{shown}");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_to_integration_work_as_pasted() {
    for page in TYPED.iter().filter(|page| page.starts_with("docs/integration/")) {
        let Some(mut reader) = Reader::of(&[page]).await else {
            continue;
        };
        reader.has_typed(UP).await;
        reader.reads(page).await;
        assert!(reader.ends().await > 0, "{page} shows what to type");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_settings_file_is_accepted() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("feedback.toml");
    let page = blocks(&text(CONFIGURATION));
    let mut files = page.iter().filter(|block| block.language == "toml");
    let settings = files.next().expect("the page shows a file");
    fs::write(&file, &settings.text).expect("a file");
    let mut command = Command::new(binary("feedback-svc").await);
    command.arg("--print-config").arg("--config").arg(&file);
    let printed = run("feedback-svc", command).await;
    let printed = printed.unwrap_or_else(|failure| panic!("{failure}"));
    for line in settings.text.lines() {
        let (key, _) = line.split_once(" = ").expect("a setting");
        assert!(printed.contains(key), "{key} is not in\n{printed}");
    }
    assert_eq!(files.count(), 0, "every file is tried");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_made_as_documented_is_known_by_the_line_for_the_file() {
    let Some(mut reader) = Reader::of(&[SECURITY]).await else {
        return;
    };
    let printed = reader.reads(SECURITY).await.concat();
    let principal = format!("[[principals]]\nname = \"search-backend\"\n{printed}");
    let file = principal + "grants = [{ roles = [\"reporter\"], namespaces = \"*\" }]\n";
    let token = reader.path("search-backend.token");
    let known = reader.path("auth.toml");
    reader.has_written("auth.toml", &file);
    assert!(Authenticator::load(&known).is_ok(), "{file}");
    let refused = auth::args::check_token(&known, &TokenFile::new(&token), Role::Reporter);
    assert_eq!(refused, None, "{file}");
    let mode = fs::metadata(&token).expect("the token").permissions().mode();
    assert_eq!(mode & 0o077, 0, "only its bearer can read it");
    assert_eq!(reader.ends().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_level_of_the_log_is_changed_as_documented() {
    let Some(mut reader) = Reader::of(&[TELEMETRY]).await else {
        return;
    };
    let printed = reader.reads(TELEMETRY).await.concat();
    assert!(printed.contains("learning_svc=debug,info"), "{printed}");
    assert!(reader.ends().await > 1, "the page shows what to type");
}

#[test]
fn the_documented_access_file_is_accepted() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("auth.toml");
    let page = blocks(&text(SECURITY));
    let rows = blocks(&text(DEPLOY));
    // The public key of RFC 8037, appendix A.2.
    let keys =
        r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    fs::write(directory.path().join("jwks.json"), keys).expect("a file");
    let files: Vec<_> = page.iter().filter(|block| block.language == "toml").collect();
    assert_eq!(
        files.len(),
        3,
        "by tokens, and by tokens that others issue, with keys of two kinds"
    );
    let rows = rows.iter().filter(|block| block.language == "toml");
    for block in files.into_iter().chain(rows) {
        fs::write(&file, &block.text).expect("a file");
        if let Err(problem) = Authenticator::load(&file) {
            panic!("{problem}:\n{}", block.text);
        }
    }
}

#[test]
fn the_readmes_dependencies_are_those_its_example_uses() {
    let page = blocks(&text("README.md"));
    let block = |language: &str| {
        page.iter()
            .find(|block| block.language == language)
            .expect(language)
    };
    let told: BTreeSet<String> = block("toml")
        .text
        .lines()
        .skip(1)
        .map(|line| {
            let (name, how) = line.split_once(" = ").expect("a dependency");
            if let Some(path) = how.split("\"../emend/").nth(1) {
                let path = path.split('"').next().expect("a path");
                assert!(
                    text(&format!("{path}/Cargo.toml")).contains(&format!("name = \"{name}\"")),
                    "{line}"
                );
            }
            name.replace('-', "_")
        })
        .collect();
    let words = block("rust,no_run").text.replace("::", " ");
    let used = |name: &String| {
        words
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|word| word == name)
    };
    assert!(told.iter().all(used), "{told:?}");
    for line in block("rust,no_run")
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("use "))
    {
        let name = line.split("::").next().expect("a crate");
        assert!(told.contains(name), "{name} is not among the dependencies");
    }
}

#[test]
fn a_search_node_needs_one_crate_of_emend() {
    let is_ours = |line: &&str| line.starts_with("emend-");
    for page in ["README.md", GUIDE_IN_RUST] {
        let page_blocks = blocks(&text(page));
        let shown = page_blocks.iter().find(|block| block.language == "toml");
        let shown = shown.unwrap_or_else(|| panic!("{page} shows no dependencies"));
        let ours: Vec<&str> = shown.text.lines().filter(is_ours).collect();
        assert_eq!(
            ours,
            ["emend-client = { path = \"../emend/crates/emend-client\" }"],
            "{page}"
        );
    }
    let example = text("examples/verb-node/Cargo.toml");
    let ours: Vec<&str> = example.lines().filter(is_ours).collect();
    assert_eq!(ours, ["emend-client.workspace = true"]);
}

#[test]
fn files_named_by_the_deployment_guide_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut named = 0;
    for block in blocks(&text(DEPLOY)) {
        let words = block.text.split(|c: char| c.is_whitespace() || c == '?');
        for path in words.filter_map(|word| Some(&word[word.find("deploy/")?..])) {
            assert!(root.join(path).exists(), "there is no {path}");
            named += 1;
        }
    }
    assert!(named > 2, "it names files of the repository");
}

#[test]
fn every_block_of_every_page_is_tested() {
    let mut unheld = Vec::new();
    for page in pages() {
        let text_of_page = text(&page);
        let outside = text_of_page.split("```").step_by(2).flat_map(str::lines);
        unheld.extend(
            outside
                .filter(|line| is_indented_command(line))
                .map(|line| format!("{page}: not in a block: {line}")),
        );
        for block in blocks(&text(&page)) {
            let is_part =
                block.before.starts_with("<!-- part of ") || block.before.starts_with("<!-- all of ");
            let held = match block.language.as_str() {
                "sh" => {
                    TYPED.contains(&page.as_str())
                        || page.starts_with(RUNBOOKS)
                        || page == DEPLOY
                        || page == TLS
                }
                // What tests of `emend` read: a trust file, and lines of the evidence graph; what those of manifests do.
                "yaml" => page == DEPLOY || page == EVIDENCE || page == SECURITY,
                // An assistant's configuration, which a test of `emend` starts.
                "json" => page == MCP || page == EVIDENCE || page == SEARCH_NODE,
                // Pictures; and queries, which `cargo xtask lint` has promtool check, with the names in them.
                "text" | "promql" => true,
                // What an application writes, which the console's tests open in a browser.
                "html" => page == CONSOLE,
                // A documentation test of emend-client.
                "rust,no_run" => page == "README.md",
                // A settings file, given to a program below; dependencies, looked up below.
                // An assistant's configuration, which a test of `emend` starts.
                "toml" => [
                    CONFIGURATION,
                    SECURITY,
                    DEPLOY,
                    "README.md",
                    GUIDE_IN_RUST,
                    EDGE,
                    MCP,
                ]
                .contains(&page.as_str()),
                // Taken from a program that is run.
                "rust" | "python" | "go" | "js" | "ts" => is_part,
                _ => false,
            };
            if !held {
                unheld.push(format!("{page}: {}\n{}", block.language, block.text));
            }
        }
    }
    assert!(unheld.is_empty(), "{}", unheld.join("\n"));
}

/// Whether a line outside of all blocks is shown as one by its indentation, and is a command.
fn is_indented_command(line: &str) -> bool {
    const COMMANDS: [&str; 5] = ["emend ", "curl ", "umask ", "feedback-svc --", "learning-svc --"];
    let command = line.trim_start();
    command.len() < line.len() && COMMANDS.iter().any(|begins| command.starts_with(begins))
}

#[test]
fn a_command_is_seen_whatever_its_indentation() {
    for command in ["    emend up", "       emend admin token > made", "\tcurl -s x"] {
        assert!(is_indented_command(command), "{command:?}");
    }
    for prose in ["emend up", "   feedback-svc may send", "  `emend up` serves"] {
        assert!(!is_indented_command(prose), "{prose:?}");
    }
}

/// The only block of a page in this language.
pub(crate) fn block(page: &str, language: &str) -> String {
    let mut found = blocks(&text(page))
        .into_iter()
        .filter(|block| block.language == language);
    let block = found.next().expect("the page has one");
    assert!(found.next().is_none(), "{page} has one block of {language}");
    block.text
}

/// Every page that users read.
fn pages() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = BTreeSet::from(["README.md", SEARCH_NODE].map(str::to_owned));
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
