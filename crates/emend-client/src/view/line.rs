//! One cache line of the table and its packed contents.

use emend_core::Revision;

pub(super) const SLOTS: usize = 4;

/// One cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Line {
    /// The lower halves of the keys; 0 marks an empty slot.
    pub(super) tags: [u64; SLOTS],
    pub(super) words: [Word; SLOTS],
}

impl Line {
    #[inline]
    pub(super) fn slot_of(&self, tag: u64) -> Option<usize> {
        let mut equal = 0_u32;
        for (slot, known) in self.tags.iter().enumerate() {
            equal |= u32::from(*known == tag) << slot;
        }
        (equal != 0).then(|| equal.trailing_zeros() as usize)
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.slot_of(0).is_none()
    }
}

/// A byte of each tag of a line, which nearly always tells that a key is not there. 0: the slot is empty.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks(u32);

impl Marks {
    const LOWEST_BITS: u32 = u32::from_le_bytes([1; SLOTS]);

    /// The mark of a tag.
    #[inline]
    pub(super) fn of(tag: u64) -> u8 {
        let [.., mark] = tag.to_le_bytes();
        mark.max(1)
    }

    /// All four are compared at once (Knuth, The Art of Computer Programming, vol. 4A, 7.1.3, (90)): which it is can't be
    /// predicted.
    #[inline]
    pub(super) fn have(self, mark: u8) -> bool {
        let differing = self.0 ^ (u32::from(mark) * Self::LOWEST_BITS);
        differing.wrapping_sub(Self::LOWEST_BITS) & !differing & (Self::LOWEST_BITS << 7) != 0
    }

    #[inline]
    pub(super) fn are_full(self) -> bool {
        !self.have(0)
    }

    pub(super) fn set(&mut self, slot: usize, mark: u8) {
        let mut marks = self.0.to_le_bytes();
        marks[slot] = mark;
        self.0 = u32::from_le_bytes(marks);
    }
}

/// A slot's contents: 2 bits of form, 24 bits of index, 38 bits of revision; of what is stored outside the slot 2 bits of form,
/// 32 bits of index, and a bit that says where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Word(u64);

pub(super) const INDEX_BITS: u32 = 24;
pub(super) const REVISION_BITS: u32 = 38;

impl Word {
    pub(super) const DOMAIN: u64 = 0;
    pub(super) const VERB: u64 = 1;
    pub(super) const ENTITY: u64 = 2;
    pub(super) const MANY: u64 = 3;

    const SYNONYMS: u64 = 1 << (2 + u32::BITS);

    /// An answer stored in the slot itself: the index of its text, or a decision about a domain packed into as many bits, and
    /// its revision. `None` if either is too large.
    pub(super) fn one(form: u64, index: u32, revision: Revision) -> Option<Self> {
        let revision = u64::try_from(revision.0).ok()?;
        (revision >> REVISION_BITS == 0 && index >> INDEX_BITS == 0)
            .then(|| Self(form | u64::from(index) << 2 | revision << (2 + INDEX_BITS)))
    }

    /// An entry stored outside the slot.
    pub(super) fn many(index: u32) -> Self {
        Self(Self::MANY | u64::from(index) << 2)
    }

    /// Synonyms stored outside the slot.
    pub(super) fn synonyms(index: u32) -> Self {
        Self(Self::MANY | Self::SYNONYMS | u64::from(index) << 2)
    }

    /// Whether what is stored outside the slot are synonyms.
    #[inline]
    pub(super) fn has_synonyms(self) -> bool {
        self.0 & Self::SYNONYMS != 0
    }

    #[inline]
    pub(super) fn form(self) -> u64 {
        self.0 & 3
    }

    /// The index of an answer's text, or the packed decision about a domain.
    #[inline]
    pub(super) fn text(self) -> usize {
        (self.0 >> 2) as usize & ((1 << INDEX_BITS) - 1)
    }

    #[inline]
    pub(super) fn revision(self) -> Revision {
        Revision((self.0 >> (2 + INDEX_BITS)).cast_signed())
    }

    /// The index of an entry, or of synonyms.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the revision's bits are not part of it"
    )]
    pub(super) fn entry(self) -> usize {
        (self.0 >> 2) as u32 as usize
    }
}

/// The half of a key that selects its line, and the half that identifies it there. The latter is never 0.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
pub(super) fn halves(key: u128) -> (u64, u64) {
    ((key >> 64) as u64, key as u64 | 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn marks_tell_what_they_have(bytes: [u8; SLOTS], close in 0..SLOTS, mark: u8) {
            for mark in [mark, bytes[close], bytes[close] ^ 1, bytes[close] ^ 0x80, 0] {
                let mut marks = Marks::default();
                for (slot, byte) in bytes.iter().enumerate() {
                    marks.set(slot, *byte);
                }
                prop_assert_eq!(marks.have(mark), bytes.contains(&mark));
                prop_assert_eq!(marks.are_full(), !bytes.contains(&0));
            }
        }
    }
}
