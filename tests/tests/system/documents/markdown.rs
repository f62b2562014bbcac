//! The fenced blocks of a Markdown page.

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The fence's info string: a language, or empty.
    pub(super) language: String,
    /// Its lines, without the indentation of the fence.
    pub(super) text: String,
    /// The line before it.
    pub(super) before: String,
}

/// All fenced blocks, in order.
pub(super) fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut indent = None;
    let mut before = "";
    for line in markdown.lines() {
        let spaces = line.len() - line.trim_start().len();
        let fence = line.trim_start().strip_prefix("```");
        match (indent, fence) {
            (None, Some(info)) => {
                indent = Some(spaces);
                blocks.push(Block {
                    language: info.trim().to_owned(),
                    text: String::new(),
                    before: before.to_owned(),
                });
            }
            (None, None) => before = line,
            (Some(_), Some(_)) => indent = None,
            (Some(indent), None) => {
                let block = blocks.last_mut().expect("a block has begun");
                block.text.push_str(&line[spaces.min(indent)..]);
                block.text.push('\n');
            }
        }
    }
    blocks
}

#[test]
fn blocks_have_a_language_and_lose_the_indentation_of_their_fence() {
    let markdown = "a\n```sh\none\n  two\n```\n```\nno\n```\n1. x\n   ```text\n   three\n   ```\n";
    let told: Vec<(String, String, String)> = blocks(markdown)
        .into_iter()
        .map(|block| (block.before, block.language, block.text))
        .collect();
    let expected = [
        ("a", "sh", "one\n  two\n"),
        ("a", "", "no\n"),
        ("1. x", "text", "three\n"),
    ];
    let expected = expected.map(|(before, language, text)| (before.into(), language.into(), text.into()));
    assert_eq!(told, expected);
}
