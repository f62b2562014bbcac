//! Words by a dictionary of Japanese that lindera reads (IPADIC and others), which knows how they are inflected.

use std::{borrow::Cow, path::Path};

use anyhow::{Context as _, Result};
use lindera::{dictionary::load_dictionary, mode::Mode, segmenter::Segmenter, token::Token};

use super::Piece;

/// What dictionaries call the uninflected form.
const BASE_FORMS: [&str; 2] = ["base_form", "orthographic_base_form"];
/// What a dictionary has where it knows nothing.
const UNKNOWN: &str = "*";

/// Cuts texts by a dictionary.
pub(super) struct Dictionary {
    segmenter: Segmenter,
    name: String,
}

impl Dictionary {
    /// The dictionary in a directory, as `lindera build` makes them.
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let path = directory
            .to_str()
            .context("the dictionary's path must be UTF-8")?;
        let dictionary = load_dictionary(path)
            .with_context(|| format!("{} is no dictionary that lindera reads", directory.display()))?;
        let name = dictionary.metadata.name.clone();
        Ok(Self {
            segmenter: Segmenter::new(Mode::Normal, dictionary, None),
            name,
        })
    }

    /// What it calls itself.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The pieces of a text, without the white space between them.
    pub(super) fn pieces(&self, text: &str) -> Result<Vec<Piece>> {
        let tokens = self.segmenter.segment(Cow::Borrowed(text)).context("lindera")?;
        Ok(tokens.into_iter().map(piece).collect())
    }
}

fn piece(mut token: Token<'_>) -> Piece {
    let base = BASE_FORMS.iter().find_map(|field| {
        let base = token.get(field)?;
        (base != UNKNOWN && !base.is_empty()).then(|| base.to_owned())
    });
    Piece {
        range: token.byte_start..token.byte_end,
        is_word: token.surface.chars().any(char::is_alphanumeric),
        base,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use emend_base::testing::skipped;
    use emend_client::{Clock as _, SystemClock};
    use lindera::dictionary::{DictionaryBuilder, Metadata};
    use tempfile::TempDir;

    use super::{super::Words, *};
    use crate::{corpus::Record, index::SearchIndex, query::parts, ranking::Bounds};

    /// Where a whole dictionary is, to test with.
    const WHOLE: &str = "SEARCH_NODE_TEST_DICTIONARY";
    const CATEGORIES: &str = "\
DEFAULT 0 1 0
SPACE 0 1 0
KANJI 0 0 2
HIRAGANA 0 1 2
KATAKANA 1 1 2
ALPHA 1 1 0
NUMERIC 1 1 0
0x0020 SPACE
0x0030..0x0039 NUMERIC
0x0041..0x005A ALPHA
0x0061..0x007A ALPHA
0x3041..0x309F HIRAGANA
0x30A1..0x30FF KATAKANA
0x4E00..0x9FFF KANJI
";
    const UNKNOWN_WORDS: &str = "\
DEFAULT,0,0,9000,記号,一般,*,*,*,*,*,*,*
SPACE,0,0,9000,記号,空白,*,*,*,*,*,*,*
KANJI,0,0,9000,名詞,一般,*,*,*,*,*,*,*
HIRAGANA,0,0,9000,名詞,一般,*,*,*,*,*,*,*
KATAKANA,0,0,5000,名詞,一般,*,*,*,*,*,*,*
ALPHA,0,0,5000,名詞,一般,*,*,*,*,*,*,*
NUMERIC,0,0,5000,名詞,数,*,*,*,*,*,*,*
";
    const WORDS: &str = "\
手札,0,0,100,名詞,一般,*,*,*,*,手札,テフダ,テフダ
攻撃力,0,0,100,名詞,一般,*,*,*,*,攻撃力,コウゲキリョク,コウゲキリョク
に,0,0,100,助詞,格助詞,一般,*,*,*,に,ニ,ニ
を,0,0,100,助詞,格助詞,一般,*,*,*,を,ヲ,ヲ
返す,0,0,100,動詞,自立,*,*,五段・サ行,基本形,返す,カエス,カエス
返し,0,0,100,動詞,自立,*,*,五段・サ行,連用形,返す,カエシ,カエシ
返せ,0,0,100,動詞,自立,*,*,五段・サ行,仮定形,返す,カエセ,カエセ
た,0,0,100,助動詞,*,*,*,特殊・タ,基本形,た,タ,タ
";

    /// A dictionary of a few words, built as lindera builds any.
    fn tiny() -> TempDir {
        let (source, built) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (file, text) in [
            ("char.def", CATEGORIES),
            ("unk.def", UNKNOWN_WORDS),
            ("lex.csv", WORDS),
            ("matrix.def", "1 1\n0 0 0\n"),
        ] {
            fs::write(source.path().join(file), text).unwrap();
        }
        let metadata = Metadata {
            name: "tiny".to_owned(),
            ..Metadata::default()
        };
        DictionaryBuilder::new(metadata)
            .build_dictionary(source.path(), built.path())
            .unwrap();
        built
    }

    fn terms(words: &Words, text: &str) -> String {
        let words = words.of(text).unwrap();
        let terms = words
            .iter()
            .map(|word| word.terms().collect::<Vec<_>>().join("/"));
        terms.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn inflected_words_are_known_by_their_base_form() {
        let words = Words::by_dictionary(tiny().path()).unwrap();
        for (text, expected) in [
            ("手札に返した", "手札 返し/返す"),
            ("手札に返す", "手札 返す"),
            ("攻撃力を返せ", "攻撃力/攻撃/撃力 返せ/返す"),
            ("ﾌｪｲｽ フェイス", "フェイス フェイス"),
            ("Deal 2 カード。", "deal 2 カード"),
            ("", ""),
        ] {
            assert_eq!(terms(&words, text), expected);
        }
    }

    #[test]
    fn an_index_is_searched_by_the_words_that_it_was_made_of() {
        let dictionary = tiny();
        let words = || Words::by_dictionary(dictionary.path()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let index = SearchIndex::open_with(directory.path(), words()).unwrap();
        let record = Record {
            id: "A:effect_1".to_owned(),
            title: "A".to_owned(),
            text: "手札に返した".to_owned(),
            namespace: "effects".to_owned(),
            url: String::new(),
        };
        index
            .update(&[record], None, false, SystemClock.now(), &mut std::io::sink())
            .unwrap();
        let expanded = emend_client::ExpandedText {
            original: "手札を返せ".to_owned(),
            mode: emend_client::ExpandMode::Keyword,
            groups: Vec::new(),
        };
        let bounds = Bounds {
            namespaces: ["effects".to_owned()].into(),
            min_score: 1.0,
            top_k: 1,
            ..Bounds::default()
        };
        let parts = parts(&index.words, &expanded).unwrap();
        let found = index.search(&parts, None, &bounds).unwrap();
        assert_eq!(found.titles.len(), 1, "it has both words in another form");
        drop(index);
        SearchIndex::open_with(directory.path(), words()).unwrap();
        let refused = SearchIndex::open(directory.path()).unwrap_err();
        let why = "is no index of this version and of words by ICU";
        assert!(refused.to_string().ends_with(why), "{refused:#}");
    }

    #[test]
    fn what_is_no_dictionary_is_refused_by_its_path() {
        let empty = tempfile::tempdir().unwrap();
        let other = tiny();
        let file = other.path().join("metadata.json");
        let metadata = fs::read_to_string(&file).unwrap();
        let mut metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
        metadata["format_version"] = 1.into();
        fs::write(&file, metadata.to_string()).unwrap();
        for (directory, why) in [
            (Path::new("/no/such/dictionary"), ""),
            (empty.path(), ""),
            (other.path(), "format version 1"),
        ] {
            let refused = format!("{:#}", Words::by_dictionary(directory).unwrap_err());
            let begin = format!("{} is no dictionary that lindera reads", directory.display());
            assert!(refused.starts_with(&begin) && refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_whole_dictionary_knows_base_forms() {
        let Some(directory) = std::env::var_os(WHOLE).filter(|path| !path.is_empty()) else {
            skipped(format_args!("{WHOLE} is not set"));
            return;
        };
        let words = Words::by_dictionary(Path::new(&directory)).unwrap();
        let terms = terms(&words, "カードを手札に返した");
        assert!(terms.contains("手札") && terms.contains("返し/返す"), "{terms}");
    }
}
