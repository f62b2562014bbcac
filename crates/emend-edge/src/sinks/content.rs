//! What a sink keeps, and the mark by which it knows it again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write as _},
};

use emend_client::{Refused, proto::common::v1::ResourceKey};
use ring::digest;

/// The letters of a mark: consonants alone, so that no stemmer takes anything from its end.
const LETTERS: &[u8; 16] = b"bcdfghjkmnpqrtvw";

/// What a set says, as one word: 16 letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    /// The mark of these lines, in this order.
    pub(super) fn of<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for line in lines {
            context.update(&line.len().to_le_bytes());
            context.update(line.as_bytes());
        }
        let letters = context.finish().as_ref()[..8]
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|half| char::from(LETTERS[usize::from(half)]))
            .collect();
        Self(letters)
    }

    /// A mark that was written; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_mark = text.len() == 16 && text.bytes().all(|byte| LETTERS.contains(&byte));
        is_mark.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who wrote a set, and by which state of the log: 40 letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Writer {
    /// The sink, by its id.
    pub(super) sink: String,
    /// What of a state it keeps.
    pub(super) selection: String,
    /// The epoch of the log.
    pub(super) epoch: String,
    pub(super) revision: i64,
}

/// How many letters tell one sink, selection or epoch from another.
const SHORT: usize = 8;

impl Writer {
    /// The sink of this id, which keeps what these lines name, at this place of the log.
    pub(super) fn new<'a>(
        sink: &str,
        selection: impl IntoIterator<Item = &'a str>,
        epoch: &str,
        revision: i64,
    ) -> Self {
        let short = |Mark(mut letters): Mark| {
            letters.truncate(SHORT);
            letters
        };
        Self {
            sink: short(Mark::of([sink])),
            selection: short(Mark::of(selection)),
            epoch: short(Mark::of([epoch])),
            revision,
        }
    }

    /// A writer as it was written; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let values: Option<Vec<usize>> = text
            .bytes()
            .map(|byte| LETTERS.iter().position(|letter| *letter == byte))
            .collect();
        let values = values.filter(|values| values.len() == 3 * SHORT + 16)?;
        let revision = values[3 * SHORT..].iter().try_fold(0_i64, |sum, value| {
            sum.checked_mul(16)?.checked_add(i64::try_from(*value).ok()?)
        })?;
        let part = |number: usize| text[number * SHORT..(number + 1) * SHORT].to_owned();
        Some(Self {
            sink: part(0),
            selection: part(1),
            epoch: part(2),
            revision,
        })
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.sink, self.selection, self.epoch)?;
        let digits = self.revision.to_be_bytes();
        let halves = digits.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        halves
            .map(|half| char::from(LETTERS[usize::from(half)]))
            .try_for_each(|letter| f.write_char(letter))
    }
}

/// What a set says of itself. Sets of older versions do not name who wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) mark: Mark,
    pub(super) writer: Option<Writer>,
}

impl Stamp {
    /// A stamp that was written; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mark, writer) = match text.split_once(' ') {
            None => (text, None),
            Some((mark, writer)) => (mark, Some(Writer::parse(writer)?)),
        };
        Some(Self {
            mark: Mark::parse(mark)?,
            writer,
        })
    }

    /// Its words: the mark is the first.
    pub(super) fn words(&self) -> impl Iterator<Item = String> + '_ {
        let writer = self.writer.iter().map(ToString::to_string);
        std::iter::once(self.mark.to_string()).chain(writer)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.words().collect();
        f.write_str(&words.join(" "))
    }
}

/// A term and everything that is searched for in its place, itself included.
pub(super) type Entries = BTreeMap<String, BTreeSet<String>>;

/// What is to be kept of a state.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// Synonyms.
    Synonyms(Entries),
    /// The lines of a list.
    Lines(Vec<String>),
    /// Files, by name.
    Files(BTreeMap<String, String>),
}

/// What a sink should keep.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// This.
    pub(super) content: Content,
    /// Its mark.
    pub(super) mark: Mark,
    /// The resource that each part of it is of, by term, line or name: the newest, where there are several.
    pub(super) origins: BTreeMap<String, Origin>,
    /// What can't be kept there.
    pub(super) refused: Vec<Refused>,
    /// Who wants it, and by which state; none: nobody who may meet another writer.
    pub(super) writer: Option<Writer>,
}

/// The resource that something is of.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) key: ResourceKey,
    pub(super) revision: i64,
}

impl Wanted {
    pub(super) fn new(content: Content, origins: BTreeMap<String, Origin>, refused: Vec<Refused>) -> Self {
        Self {
            mark: content.mark(),
            content,
            origins,
            refused,
            writer: None,
        }
    }

    /// What the set is to say of itself.
    pub(super) fn stamp(&self) -> Stamp {
        Stamp {
            mark: self.mark.clone(),
            writer: self.writer.clone(),
        }
    }

    /// The same without one part, which is refused with these words.
    pub(super) fn refuse(&mut self, part: &str, words: &str) {
        match &mut self.content {
            Content::Synonyms(entries) => drop(entries.remove(part)),
            Content::Lines(lines) => lines.retain(|line| line != part),
            Content::Files(files) => drop(files.remove(part)),
        }
        self.note_refused(part, words);
    }

    /// The same without a term where another stands, which is refused with these words.
    pub(super) fn refuse_in(&mut self, term: &str, other: &str, words: &str) {
        if let Content::Synonyms(entries) = &mut self.content
            && let Some(all) = entries.get_mut(term)
        {
            all.remove(other);
            if all.len() < 2 {
                entries.remove(term);
            }
        }
        self.note_refused(other, words);
    }

    fn note_refused(&mut self, part: &str, words: &str) {
        self.mark = self.content.mark();
        let Some(origin) = self.origins.get(part) else {
            return;
        };
        if !self.refused.iter().any(|refused| refused.key == origin.key) {
            self.refused.push(Refused {
                key: origin.key.clone(),
                revision: origin.revision,
                error: words.to_owned(),
            });
        }
    }

    /// The synonyms, if it is synonyms.
    pub(super) fn synonyms(&self) -> &Entries {
        static NONE: Entries = Entries::new();
        match &self.content {
            Content::Synonyms(entries) => entries,
            Content::Lines(_) | Content::Files(_) => &NONE,
        }
    }
}

impl Content {
    fn mark(&self) -> Mark {
        match self {
            Self::Synonyms(entries) => super::synonyms::mark(entries),
            Self::Lines(lines) => Mark::of(lines.iter().map(String::as_str)),
            Self::Files(files) => Mark::of(files.iter().flat_map(|(name, text)| [name.as_str(), text])),
        }
    }
}

/// What is found where a sink keeps its set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing.
    Empty,
    /// The set with this stamp, as it was written.
    Intact(Stamp),
    /// A set that was begun and not finished.
    Unfinished,
    /// A set that somebody else changed; in words, how.
    Changed(String),
    /// What no sink wrote; in words, what it is.
    Foreign(String),
}

impl Seen {
    /// Whether it is the set with this mark, as it was written.
    pub(super) fn is_intact(&self, mark: &Mark) -> bool {
        matches!(self, Self::Intact(stamp) if stamp.mark == *mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_tells_who_wrote_a_set_and_by_which_state() {
        let mark = Mark::of(["a"]);
        let writer = Writer::new("solr:cards", ["shop"], "epoch", 1_234_567_890_123);
        let stamp = Stamp {
            mark: mark.clone(),
            writer: Some(writer.clone()),
        };
        assert_eq!(writer.to_string().len(), 40);
        assert_eq!(Stamp::parse(&stamp.to_string()), Some(stamp));
        let older = Stamp { mark, writer: None };
        assert_eq!(Stamp::parse(&older.to_string()), Some(older));
        for other in [
            Writer::new("solr:other", ["shop"], "epoch", 1_234_567_890_123),
            Writer::new("solr:cards", ["shop", "b"], "epoch", 1_234_567_890_123),
            Writer::new("solr:cards", ["shop"], "other", 1_234_567_890_123),
            Writer::new("solr:cards", ["shop"], "epoch", 1_234_567_890_124),
        ] {
            assert_ne!(other, writer);
        }
        for not in ["", "a", &"t".repeat(40), &"w".repeat(40), &"b".repeat(39)] {
            assert_eq!(
                Writer::parse(not).filter(|writer| writer.revision < 0),
                None,
                "{not}"
            );
        }
        assert_eq!(Writer::parse(&"w".repeat(40)), None, "no revision is so great");
    }

    #[test]
    fn a_mark_is_one_word_of_consonants_and_differs_where_lines_do() {
        let mark = Mark::of(["a, b", "c"]);
        assert_eq!(Mark::parse(mark.as_str()), Some(mark.clone()));
        assert_ne!(Mark::of(["a, bc"]), Mark::of(["a, b", "c"]));
        assert_eq!(mark, Mark::of(["a, b", "c"]));
        for not in ["", "bcdfghjkmnpqrtv", "bcdfghjkmnpqrtva", "bcdfghjkmnpqrtvwb"] {
            assert_eq!(Mark::parse(not), None, "{not}");
        }
    }
}
