//! What of a phrase's wording is compared: its words, words beside each other, words near each other, and parts of words.
//!
//! Scripts without spaces (Han, kana) have no words here but runs of one script, which in Japanese fall on most borders
//! of words; their parts are taken across such runs.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Characters of a phrase that are looked at; a learned phrase has no more.
const MAX_CHARS: usize = 512;
/// Words of a phrase that are looked at.
const MAX_WORDS: usize = 128;
/// How many words further on the second of a pair may be.
const PAIR_WINDOW: usize = 5;

/// The ways in which phrases are compared. Each is weighed by itself, so that none drowns another by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    Words,
    Characters,
    Neighbours,
    Pairs,
}

impl Block {
    pub(super) const ALL: [Self; 4] = [Self::Words, Self::Characters, Self::Neighbours, Self::Pairs];

    /// How much it counts beside the others, chosen by measurement (docs/learning.md).
    pub(super) fn weight(self) -> f32 {
        match self {
            Self::Words | Self::Pairs => 1.0,
            Self::Characters => 1.2,
            Self::Neighbours => 0.7,
        }
    }

    /// Whether the nearest phrases are found by it.
    pub(super) fn finds_neighbours(self) -> bool {
        matches!(self, Self::Words | Self::Characters)
    }
}

/// A feature by its hash, and how often the phrase has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Feature {
    pub(super) hash: u64,
    pub(super) count: u8,
}

/// The features of one phrase, of each block in the order of their hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Features {
    blocks: [Vec<Feature>; Block::ALL.len()],
}

impl Features {
    /// The features of a phrase in normal form.
    pub(super) fn of(phrase: &str) -> Self {
        let runs = runs(phrase);
        let words: Vec<u64> = words(&runs)
            .take(MAX_WORDS)
            .map(|word| xxh3_64_with_seed(word.as_bytes(), 0))
            .collect();
        let beside = words.windows(2).map(|two| pair(two[0], two[1], 2)).collect();
        let mut near = Vec::with_capacity(PAIR_WINDOW * words.len());
        for (place, &word) in words.iter().enumerate() {
            let rest = words[place + 1..].iter().take(PAIR_WINDOW);
            near.extend(rest.map(|&other| pair(word, other, 3)));
        }
        Self {
            blocks: [
                counted(words.clone()),
                counted(parts(&runs)),
                counted(beside),
                counted(near),
            ],
        }
    }

    /// Those of one block.
    pub(super) fn block(&self, block: Block) -> &[Feature] {
        &self.blocks[block as usize]
    }
}

fn pair(one: u64, other: u64, salt: u64) -> u64 {
    (one.rotate_left(23) ^ other)
        .wrapping_add(salt)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn counted(mut hashes: Vec<u64>) -> Vec<Feature> {
    hashes.sort_unstable();
    let mut counted = Vec::with_capacity(hashes.len());
    counted.extend(hashes.chunk_by(PartialEq::eq).map(|same| Feature {
        hash: same[0],
        count: u8::try_from(same.len()).unwrap_or(u8::MAX),
    }));
    counted
}

/// What letters of a kind make: words between spaces, or writing without spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Spaced,
    Han,
    Hiragana,
    Katakana,
}

/// The script of a character that is part of a word.
fn script(c: char) -> Option<Script> {
    match c {
        '\u{3041}'..='\u{309F}' => Some(Script::Hiragana),
        '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' => Some(Script::Katakana),
        '\u{2E80}'..='\u{2FDF}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => Some(Script::Han),
        // Marks of Indic scripts are no letters and yet within words; emoji say something too.
        '\u{2000}'..='\u{206F}' | '\u{3000}'..='\u{303F}' | '\u{30FB}' => None,
        c if c.is_alphanumeric() || !(c.is_ascii() || c.is_whitespace() || c.is_control()) => {
            Some(Script::Spaced)
        }
        _ => None,
    }
}

/// A stretch of a phrase: characters one after the other, all with spaces between words or all without.
#[derive(Debug, Clone, Copy)]
struct Run<'p> {
    text: &'p str,
    is_spaced: bool,
}

fn runs(phrase: &str) -> Vec<Run<'_>> {
    let end = phrase
        .char_indices()
        .nth(MAX_CHARS)
        .map_or(phrase.len(), |(at, _)| at);
    let phrase = &phrase[..end];
    let mut runs = Vec::new();
    // Where the open run begins, and its kind.
    let mut open: Option<(usize, bool)> = None;
    let mut close = |open: Option<(usize, bool)>, end: usize| {
        if let Some((begin, is_spaced)) = open {
            let text = &phrase[begin..end];
            runs.push(Run { text, is_spaced });
        }
    };
    for (at, c) in phrase.char_indices() {
        let is_spaced = script(c).map(|script| script == Script::Spaced);
        if open.map(|(_, is_spaced)| is_spaced) != is_spaced {
            close(open, at);
            open = is_spaced.map(|is_spaced| (at, is_spaced));
        }
    }
    close(open, phrase.len());
    runs
}

/// The words of runs: those with spaces between them, and stretches of one script.
fn words<'p>(runs: &[Run<'p>]) -> impl Iterator<Item = &'p str> {
    runs.iter().flat_map(|run| {
        let mut rest = run.text;
        std::iter::from_fn(move || {
            let kind = rest.chars().next().map(script)?;
            let end = rest.find(|c| script(c) != kind).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            Some(word)
        })
    })
}

/// Two to four characters of each word, its borders among them; where there are no spaces, one to three.
fn parts(runs: &[Run<'_>]) -> Vec<u64> {
    let characters: usize = runs.iter().map(|run| run.text.len() + 2).sum();
    let mut hashes = Vec::with_capacity(3 * characters);
    let (mut text, mut ends) = (String::new(), Vec::new());
    for run in runs {
        let (border, lengths) = if run.is_spaced { (" ", 2..=4) } else { ("", 1..=3) };
        text.clear();
        text.extend([border, run.text, border]);
        ends.clear();
        ends.extend(text.char_indices().map(|(at, _)| at));
        ends.push(text.len());
        for length in lengths {
            hashes.extend(ends.windows(length + 1).map(|part| {
                let part = &text.as_bytes()[part[0]..part[length]];
                xxh3_64_with_seed(part, 1)
            }));
        }
    }
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(phrase: &str) -> Vec<&str> {
        words(&runs(phrase)).collect()
    }

    #[test]
    fn words_end_at_punctuation_and_where_the_script_changes() {
        assert_eq!(
            split("my top-up hasn't come!"),
            ["my", "top", "up", "hasn", "t", "come"]
        );
        assert_eq!(
            split("カードを紛失した id3"),
            ["カード", "を", "紛失", "した", "id3"]
        );
        assert_eq!(split("हिन्दी में"), ["हिन्दी", "में"]);
        assert!(split(" ?!").is_empty());
    }

    #[test]
    fn what_has_no_words_has_no_features() {
        for phrase in ["", "?", "   "] {
            assert_eq!(Features::of(phrase), Features::default(), "{phrase:?}");
        }
    }

    #[test]
    fn a_huge_phrase_has_a_bounded_number_of_features() {
        let huge = Features::of(&"word ab ".repeat(100_000));
        let all: usize = Block::ALL.iter().map(|&block| huge.block(block).len()).sum();
        assert!(all < 100, "{all}");
        let wild: String = (0..100_000_u32)
            .filter_map(|c| char::from_u32(0x4E00 + c % 20_000))
            .collect();
        let all: usize = Block::ALL
            .iter()
            .map(|&block| Features::of(&wild).block(block).len())
            .sum();
        assert!(all < 4 * MAX_CHARS, "{all}");
    }

    #[test]
    fn repeated_words_are_counted() {
        let features = Features::of("no no no");
        assert_eq!(features.block(Block::Words)[0].count, 3);
        assert_eq!(features.block(Block::Words).len(), 1);
    }
}
