//! What else to search for where terms stand in a query's text.

use emend_core::{
    Namespace, UserId,
    search::{self, ExpandMode, ExpandedText},
};

use super::{
    LearnedView, Reading,
    entry::Found,
    synonyms::{Synonyms, alternatives},
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
    /// the longest. Width, case, the long-vowel mark, quotes and spaces are ignored; nothing is found inside a word of letters
    /// and digits or of katakana, and a single character only where its neighbours are of other scripts.
    pub fn expand(
        &self,
        namespace: &Namespace,
        text: &str,
        mode: ExpandMode,
        user: Option<&UserId>,
    ) -> ExpandedText {
        let of = self.synonyms_of(namespace, user);
        let matchers = self.state.terms.of(namespace.as_str());
        let found = search::find(text, &matchers, |term| {
            of(term).into_iter().flatten().any(Synonyms::expand)
        });
        search::expand(text, &found, mode, |term| alternatives(term, &of))
    }

    /// Answers for a key in normal form: the user's own synonyms, and everybody's.
    pub(super) fn synonyms_of<'s>(
        &'s self,
        namespace: &Namespace,
        user: Option<&UserId>,
    ) -> impl Fn(&str) -> [Option<&'s Synonyms>; 2] + use<'s> {
        let (state, hash) = (&*self.state, self.hash);
        let namespace = hash.namespace(namespace.as_str());
        let user = user
            .filter(|_| state.user_scoped)
            .map(|user| hash.user(user.as_str()));
        move |term| {
            let global = namespace ^ hash.phrase(term);
            let own = user.map(|user| global ^ user);
            [own, Some(global)].map(|key| key.and_then(|key| state.find(key)).and_then(Found::synonyms))
        }
    }
}
