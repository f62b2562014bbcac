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
        let near = words.iter().enumerate().flat_map(|(place, &word)| {
            let rest = &words[place + 1..];
            rest.iter()
                .take(PAIR_WINDOW)
                .map(move |&other| pair(word, other, 3))
        });
        let near = near.collect();
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
    let same = hashes.chunk_by(PartialEq::eq);
    same.map(|same| Feature {
        hash: same[0],
        count: u8::try_from(same.len()).unwrap_or(u8::MAX),
    })
    .collect()
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

/// Characters one after the other, all with spaces between words or all without, and the script of each.
type Run = Vec<(char, Script)>;

fn runs(phrase: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut open = false;
    for c in phrase.chars().take(MAX_CHARS) {
        let Some(script) = script(c) else {
            open = false;
            continue;
        };
        match runs.last_mut() {
            Some(run) if open && (run[0].1 == Script::Spaced) == (script == Script::Spaced) => {
                run.push((c, script));
            }
            _ => runs.push(vec![(c, script)]),
        }
        open = true;
    }
    runs
}

fn words(runs: &[Run]) -> impl Iterator<Item = String> {
    runs.iter()
        .flat_map(|run| run.chunk_by(|one, other| one.1 == other.1))
        .map(|word| word.iter().map(|&(c, _)| c).collect())
}

/// Two to four characters of each word, its borders among them; where there are no spaces, one to three.
fn parts(runs: &[Run]) -> Vec<u64> {
    let mut hashes = Vec::new();
    let (mut text, mut ends) = (String::new(), Vec::new());
    for run in runs {
        let spaced = run[0].1 == Script::Spaced;
        let border = spaced.then_some(' ');
        text.clear();
        ends.clear();
        ends.push(0);
        for c in border
            .into_iter()
            .chain(run.iter().map(|&(c, _)| c))
            .chain(border)
        {
            text.push(c);
            ends.push(text.len());
        }
        let lengths = if spaced { 2..=4 } else { 1..=3 };
        for length in lengths {
            for part in ends.windows(length + 1) {
                hashes.push(xxh3_64_with_seed(&text.as_bytes()[part[0]..part[length]], 1));
            }
        }
    }
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(phrase: &str) -> Vec<String> {
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
