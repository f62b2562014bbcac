//! A search node as an application embeds it: emend-client's subscriber and its view, compared with the database by what
//! they answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use emend_client::{
    Events, LearnedView, NodeHandle, Observed, Subscriber, SubscriberBuilder, SubscriberEvent,
};
use emend_core::{Kind, Namespace, Revision, UserId};
use emend_proto::common::v1::ResourceValue;
use emend_runtime::{BackoffConfig, Lifecycle, lifecycle::Shutdown};
use prost::Message as _;

use super::{
    held::{Held, Key},
    says::maps_to,
    wait::{eventually, holds, within},
    wary,
};

/// A node at work. It goes when it is dropped.
#[derive(Debug)]
pub struct Node {
    handle: NodeHandle,
    lifecycle: Lifecycle,
    events: Events,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.lifecycle.soft().cancel();
        self.lifecycle.hard().cancel();
    }
}

impl Node {
    /// A node of everything at that address.
    pub async fn start(address: impl fmt::Display, id: &str) -> Self {
        Self::start_from(address, id, None).await
    }

    /// The same, which keeps a copy on disk, if there is to be one, and starts from it.
    ///
    /// # Panics
    /// If its settings are refused.
    pub async fn start_from(address: impl fmt::Display, id: &str, copy: Option<PathBuf>) -> Self {
        let mut builder = Self::builder(address, id);
        if let Some(path) = copy {
            builder = builder.copy(path);
        }
        Self::spawn(builder).await
    }

    /// One that soon finds out that the other side has gone without a word, for networks on which that happens.
    ///
    /// # Panics
    /// If its settings are refused.
    pub async fn start_wary(address: impl fmt::Display, id: &str) -> Self {
        let builder = Self::builder(address, id)
            .keep_alive(wary::INTERVAL, wary::TIMEOUT)
            .connect_timeout(wary::INTERVAL + wary::TIMEOUT);
        Self::spawn(builder).await
    }

    fn builder(address: impl fmt::Display, id: &str) -> SubscriberBuilder {
        Subscriber::builder(format!("http://{address}"), id)
            .include_user_scoped(true)
            .bookmark_interval(Duration::from_secs(1))
            .copy_interval(Duration::from_millis(10))
            .backoff(BackoffConfig {
                initial: Duration::from_millis(10),
                max: Duration::from_millis(200),
                ..BackoffConfig::default()
            })
    }

    async fn spawn(builder: SubscriberBuilder) -> Self {
        let lifecycle = Lifecycle::new();
        let (handle, events) = builder.spawn_observed(&lifecycle).await.expect("valid settings");
        Self {
            handle,
            lifecycle,
            events,
        }
    }

    /// What it answers with.
    pub fn view(&self) -> &LearnedView {
        self.handle.view()
    }

    /// Waits until it has applied `revision`.
    pub async fn until(&self, revision: i64) {
        within(
            "the node has applied a revision",
            self.view().wait_for_revision(Revision(revision)),
        )
        .await;
    }

    /// Waits until the digests last compared were the server's.
    pub async fn until_certain(&self) {
        eventually("the node is certain of what it holds", || async {
            let staleness = self.view().staleness();
            holds(!staleness.in_doubt, || format!("{staleness:?}"))
        })
        .await;
    }

    /// All that happens to it from now on.
    pub fn watch(&self) -> Events {
        self.handle.events()
    }

    /// Waits for an event.
    ///
    /// # Panics
    /// If the node ends before.
    pub async fn until_event<T>(&mut self, what: &str, found: impl Fn(&SubscriberEvent) -> Option<T>) -> T {
        within(what, async {
            loop {
                match self.events.next().await {
                    Some(Observed::Event(event)) => {
                        if let Some(found) = found(&event) {
                            return found;
                        }
                    }
                    Some(Observed::Missed(_)) => {}
                    None => panic!("the node ended before {what}"),
                }
            }
        })
        .await
    }

    /// The events so far that nobody waited for.
    pub async fn events_so_far(&mut self) -> Vec<Arc<SubscriberEvent>> {
        let mut events = Vec::new();
        // Whatever is there is there at once.
        while let Ok(Some(observed)) = tokio::time::timeout(Duration::ZERO, self.events.next()).await {
            if let Observed::Event(event) = observed {
                events.push(event);
            }
        }
        events
    }

    /// Ends it in good order, with its copy up to date.
    ///
    /// # Panics
    /// If it does not end by itself.
    pub async fn stop(self) {
        let ended = self.handle.shutdown(Duration::from_secs(20)).await;
        assert_eq!(ended, Shutdown::Graceful);
    }

    /// What it answers for a phrase as somebody wrote it: the value, and the prohibited choices.
    ///
    /// # Panics
    /// If the phrase is not valid.
    pub fn answer(&self, namespace: &str, kind: Kind, phrase: &str, user: &str) -> Answer {
        let namespace = Namespace::parse(namespace).expect("a namespace");
        let user = (!user.is_empty()).then(|| UserId::parse(user).expect("a user"));
        let resolved = self.view().resolve(&namespace, kind, phrase, user.as_ref(), []);
        let resolved = resolved.expect("a phrase");
        Answer {
            found: resolved.found.map(|found| (found.value, found.revision.0)),
            prohibited: resolved.prohibited,
        }
    }

    /// That it answers for every key there is, for everybody and for every user there is, by exactly what is stored.
    /// `others` are phrases for which something was learned once.
    ///
    /// # Panics
    /// If it does not.
    pub fn assert_answers_by(&self, stored: &BTreeMap<Key, Held>, others: &[&str]) {
        let wrong = self.differences(stored, others);
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(!self.view().staleness().in_doubt, "its digests are the server's");
    }

    /// For which keys it does not answer by what is stored, and how.
    ///
    /// # Panics
    /// If a stored key or value is not valid.
    pub fn differences(&self, stored: &BTreeMap<Key, Held>, others: &[&str]) -> Vec<String> {
        let mut wrong = Vec::new();
        let namespaces: BTreeSet<&str> = stored.keys().map(|key| key.namespace.as_str()).collect();
        let mut users: BTreeSet<&str> = stored.keys().map(|key| key.user_id.as_str()).collect();
        users.insert("");
        for namespace in namespaces {
            let of_namespace = stored.keys().filter(|key| key.namespace == namespace);
            let phrases: BTreeSet<&str> = of_namespace
                .map(|key| key.key.as_str())
                .chain(others.iter().copied())
                .collect();
            for (phrase, user) in phrases
                .iter()
                .flat_map(|phrase| users.iter().map(move |user| (phrase, user)))
            {
                for kind in [Kind::InvocationPhrase, Kind::EntityAlias] {
                    let answer = self.answer(namespace, kind, phrase, user);
                    let expected = expected(stored, namespace, kind, phrase, user);
                    if answer != expected {
                        wrong.push(format!(
                            "for {kind} {phrase:?} of {user:?} in {namespace}: {answer:?}, should be {expected:?}"
                        ));
                    }
                }
            }
        }
        wrong
    }
}

/// What a node answers for a phrase.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The value and the revision that taught it.
    pub found: Option<(String, i64)>,
    /// The choices never to be offered, sorted.
    pub prohibited: Vec<String>,
}

/// The rule, spelled out over what is stored: what is prohibited for everybody or the user is out; then the user's own
/// value, then everybody's.
fn expected(stored: &BTreeMap<Key, Held>, namespace: &str, kind: Kind, phrase: &str, user: &str) -> Answer {
    let of_phrase = |kind: Kind| {
        stored.iter().filter(move |(key, _)| {
            key.namespace == namespace && key.kind == kind.number() && key.key == phrase
        })
    };
    let concerns = |of: &str| of.is_empty() || of == user;
    let prohibited: BTreeSet<String> = of_phrase(Kind::Prohibition)
        .filter(|(key, _)| concerns(&key.user_id))
        .map(|(key, _)| key.qualifier.clone())
        .collect();
    let value = |of: &str| {
        let (_, held) = of_phrase(kind).find(|(key, _)| key.user_id == of)?;
        let value = ResourceValue::decode(&*held.value).expect("a stored value");
        let value = maps_to(Some(&value)).to_owned();
        (!prohibited.contains(&value)).then_some((value, held.revision))
    };
    let own = if user.is_empty() { None } else { value(user) };
    Answer {
        found: own.or_else(|| value("")),
        prohibited: prohibited.into_iter().collect(),
    }
}
