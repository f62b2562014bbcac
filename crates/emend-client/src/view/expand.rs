//! What else to search for where terms stand in a query's text.

use emend_core::{
    Namespace, UserId,
    search::{self, ExpandMode, ExpandedText},
};

use super::{
    LearnedView, Reading,
    synonyms::{Known, alternatives},
};

impl LearnedView {
    /// A text with what else to search for where terms stand in it, by the user's own synonyms and everybody's. Nothing is
    /// replaced, and words that nobody has taught stay. Terms are found in one pass, however many there are; see
    /// [`Reading::expand`].
    pub fn expand(
        &self,
        namespace: &Namespace,
        text: &str,
        mode: ExpandMode,
        user: Option<&UserId>,
    ) -> ExpandedText {
        self.read().expand(namespace, text, mode, user)
    }
}

impl Reading<'_> {
    /// A text with what else to search for where terms stand in it. The leftmost term comes first, of several that begin there
    /// the longest. Width, case, the long-vowel mark, quotes and spaces are ignored; nothing is found inside a word: of letters
    /// and digits, a run of katakana, or words of hiragana and kanji as a dictionary has them. A single character is found only
    /// where its neighbours are of other scripts.
    pub fn expand(
        &self,
        namespace: &Namespace,
        text: &str,
        mode: ExpandMode,
        user: Option<&UserId>,
    ) -> ExpandedText {
        let matchers = self.state.terms.of(namespace.as_str());
        let synonyms_of = self.synonyms_of(namespace, user);
        let found = search::find(text, &matchers, |term| {
            let known = synonyms_of(term);
            let is_expanded = known.iter().flatten().any(|synonyms| synonyms.expand());
            is_expanded.then_some(known)
        });
        search::expand(text, &found, mode, |found| {
            alternatives(found.term, found.known, &synonyms_of)
        })
    }

    /// The synonyms of a key in normal form.
    pub(super) fn synonyms_of<'s>(
        &'s self,
        namespace: &Namespace,
        user: Option<&UserId>,
    ) -> impl Fn(&str) -> Known<'s> + use<'s> {
        let (state, hash) = (&*self.state, self.hash);
        let namespace = hash.namespace(namespace.as_str());
        let user = user
            .filter(|_| state.user_scoped)
            .map(|user| hash.user(user.as_str()));
        move |term| {
            let global = namespace ^ hash.phrase(term);
            let own = user.map(|user| global ^ user);
            [own, Some(global)].map(|key| state.find(key?)?.synonyms())
        }
    }
}
