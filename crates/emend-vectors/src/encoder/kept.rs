//! Vectors that were made are kept: an encoder takes milliseconds for each.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The numbers of a vector, in 1,024ths.
pub(super) type Rounded = Arc<[i16]>;

/// The vectors of the phrases that were asked for last: of at least `most` of them, and of at most twice as many.
pub(super) struct Kept {
    most: usize,
    generations: Mutex<Generations>,
}

/// What was asked for since the last change of generations, and what was before it.
#[derive(Default)]
struct Generations {
    newer: HashMap<Box<str>, Rounded>,
    older: HashMap<Box<str>, Rounded>,
}

impl Kept {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            generations: Mutex::default(),
        }
    }

    /// A phrase's vector, made if it is not kept. Nothing is locked while it is made.
    pub(super) fn get_or_make(
        &self,
        phrase: &str,
        make: impl FnOnce() -> Option<Rounded>,
    ) -> Option<Rounded> {
        let kept = self.lock().get(phrase, self.most);
        if kept.is_some() {
            return kept;
        }
        let vector = make()?;
        self.lock().insert(phrase.into(), Arc::clone(&vector), self.most);
        Some(vector)
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn get(&mut self, phrase: &str, most: usize) -> Option<Rounded> {
        if let Some(vector) = self.newer.get(phrase) {
            return Some(Arc::clone(vector));
        }
        let (phrase, vector) = self.older.remove_entry(phrase)?;
        self.insert(phrase, Arc::clone(&vector), most);
        Some(vector)
    }

    fn insert(&mut self, phrase: Box<str>, vector: Rounded, most: usize) {
        if self.newer.len() >= most {
            self.older = mem::take(&mut self.newer);
        }
        self.newer.insert(phrase, vector);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a phrase's vector had to be made.
    fn is_made(kept: &Kept, phrase: &str) -> bool {
        let mut is_made = false;
        let vector = kept.get_or_make(phrase, || {
            is_made = true;
            Some(phrase.bytes().map(i16::from).collect())
        });
        assert_eq!(vector.unwrap().len(), phrase.len());
        is_made
    }

    #[test]
    fn what_was_asked_for_last_is_not_made_again() {
        let kept = Kept::new(3);
        for phrase in ["a", "b", "c"] {
            assert!(is_made(&kept, phrase), "{phrase}");
        }
        for phrase in ["d", "e"] {
            assert!(is_made(&kept, phrase), "{phrase}");
            assert!(!is_made(&kept, "a"), "it is asked for all the time");
        }
        assert!(!is_made(&kept, "d"));
        for number in 0..100 {
            is_made(&kept, &number.to_string());
        }
        let generations = kept.lock();
        assert!(generations.newer.len() <= 3 && generations.older.len() <= 3);
        drop(generations);
        assert!(is_made(&kept, "a"), "others came since");
    }

    #[test]
    fn what_can_not_be_made_is_tried_again() {
        let kept = Kept::new(3);
        assert_eq!(kept.get_or_make("a", || None), None);
        assert!(is_made(&kept, "a"));
    }
}
