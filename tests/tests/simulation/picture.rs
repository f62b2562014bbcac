//! What a node answers to every possible question, and what it should answer.

use std::{collections::BTreeMap, sync::LazyLock};

use emend_client::{LearnedView, LookupKey};
use emend_core::{Kind, Namespace, NormalizedKey};

use crate::{
    history::{Held, Key},
    people::{CHOICES, NAMESPACES, PHRASES},
};

/// The kinds that are looked up.
const LOOKED_UP: [Kind; 2] = [Kind::InvocationPhrase, Kind::EntityAlias];

/// A node's answers to all questions: the value with its revision, and the prohibited choices.
pub(crate) type Picture = BTreeMap<(usize, usize, i32), (Option<(String, i64)>, Vec<String>)>;

/// Namespaces and phrases, parsed once.
static ASKED: LazyLock<(Vec<Namespace>, Vec<NormalizedKey>)> = LazyLock::new(|| {
    let namespaces = NAMESPACES.map(|raw| Namespace::parse(raw).expect("a namespace"));
    let phrases = PHRASES.map(|raw| NormalizedKey::parse(raw).expect("a phrase"));
    (namespaces.into(), phrases.into())
});

fn questions() -> impl Iterator<Item = (usize, usize, Kind)> {
    (0..NAMESPACES.len()).flat_map(|namespace| {
        (0..PHRASES.len()).flat_map(move |phrase| LOOKED_UP.map(|kind| (namespace, phrase, kind)))
    })
}

/// What a view answers, and at which revision.
pub(crate) fn picture(view: &LearnedView) -> (i64, Picture) {
    let reading = view.read();
    let answers = questions().map(|(namespace, phrase, kind)| {
        let found = reading.lookup(
            LookupKey {
                namespace: &ASKED.0[namespace],
                phrase: &ASKED.1[phrase],
            },
            kind,
            None,
        );
        let answer = found
            .found()
            .map(|found| (found.value.to_owned(), found.revision.0));
        let prohibited = CHOICES.iter().filter(|choice| found.is_prohibited(choice));
        let prohibited = prohibited.map(|choice| (*choice).to_owned()).collect();
        ((namespace, phrase, kind.number()), (answer, prohibited))
    });
    (reading.revision().0, answers.collect())
}

/// The right answers for a holder of these resources.
pub(crate) fn pictured(held: &Held) -> Picture {
    let find = |namespace: usize, phrase: usize, kind: Kind, qualifier: &str| {
        let key: Key = (
            NAMESPACES[namespace].to_owned(),
            kind.number(),
            PHRASES[phrase].to_owned(),
            qualifier.to_owned(),
            String::new(),
        );
        let (revision, value) = held.get(&key)?;
        let value = emend_wire::value::decode(value.as_deref()?).expect("a value");
        Some((value.learned.maps_to().to_owned(), *revision))
    };
    let answers = questions().map(|(namespace, phrase, kind)| {
        let is_prohibited = |choice: &str| find(namespace, phrase, Kind::Prohibition, choice).is_some();
        let answer = find(namespace, phrase, kind, "").filter(|(value, _)| !is_prohibited(value));
        let prohibited = CHOICES.iter().filter(|choice| is_prohibited(choice));
        let prohibited = prohibited.map(|choice| (*choice).to_owned()).collect();
        ((namespace, phrase, kind.number()), (answer, prohibited))
    });
    answers.collect()
}
