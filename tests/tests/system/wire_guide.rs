//! What the README and the wire guide tell to type into a shell works: every block with grpcurl is run, in order, against
//! a fresh `emend up`.

use std::{env, fs, path::PathBuf};

use emend_tests::harness::{
    deployment::Up,
    process::{binary, run},
};
use tokio::process::Command;

use crate::real_clients::tool;

/// Where the documents say that the services listen.
const FEEDBACK: &str = "127.0.0.1:7401";
/// See [`FEEDBACK`].
const LEARNING: &str = "127.0.0.1:7402";
/// A block that begins so is about a refusal.
const FAILS: &str = "# fails:";

/// The fenced blocks of a Markdown text in that language.
fn blocks(markdown: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut inside: Option<(bool, String)> = None;
    for line in markdown.lines() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut inside, fence) {
            (None, Some(info)) => inside = Some((info.trim() == language, String::new())),
            (None, None) => {}
            (Some((wanted, block)), Some(_)) => {
                if *wanted {
                    blocks.push(std::mem::take(block));
                }
                inside = None;
            }
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
        }
    }
    blocks
}

#[test]
fn only_blocks_of_the_language_are_taken() {
    let markdown = "a\n```sh\none\ntwo\n```\n```text\nno\n```\n```\nno\n```\n  ```sh\nthree\n  ```\n";
    assert_eq!(blocks(markdown, "sh"), ["one\ntwo\n", "three\n"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_documents_tell_to_type_works() {
    let Some(grpcurl) = tool("EMEND_TEST_GRPCURL") else {
        return;
    };
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut count = 0;
    for document in ["README.md", "docs/wire.md"] {
        let text = fs::read_to_string(root.join(document));
        let text = text.unwrap_or_else(|error| panic!("{document}: {error}"));
        let up = Up::start().await;
        let programs = [
            PathBuf::from(&grpcurl).parent().map(PathBuf::from),
            binary("emend").await.parent().map(PathBuf::from),
        ];
        let before = env::var_os("PATH").unwrap_or_default();
        let path = programs.into_iter().flatten().chain(env::split_paths(&before));
        let path = env::join_paths(path).expect("directories without colons");
        for block in blocks(&text, "sh")
            .iter()
            .filter(|block| block.contains("grpcurl"))
        {
            count += 1;
            let script = block
                .replace(FEEDBACK, &up.feedback.to_string())
                .replace(LEARNING, &up.learning.to_string());
            let mut command = Command::new("sh");
            command
                .args(["-euc", &script])
                .env("PATH", &path)
                .current_dir(&root);
            let result = run(document, command).await;
            if block.starts_with(FAILS) {
                let refusal = result.expect_err("a block about a refusal is refused");
                // The details are shown in clear, because the services describe them too.
                for told in ["InvalidArgument", "google.rpc.BadRequest", "fieldViolations"] {
                    assert!(refusal.contains(told), "{document}:\n{block}\n{refusal}");
                }
            } else if let Err(failure) = result {
                panic!("{document}:\n{block}\n{failure}\n{}", up.process.output());
            }
        }
    }
    assert!(count > 0, "the documents show how to use grpcurl");
}
