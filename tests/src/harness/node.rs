//! A search node as an application embeds it: emend-client's subscriber and its view, compared with the database by
//! what they hold and by what they answer.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use emend_base::{BackoffConfig, Lifecycle, lifecycle::Shutdown};
use emend_client::{
    Events, LearnedView, NodeHandle, Observed, Subscriber, SubscriberBuilder, SubscriberEvent,
    subscriber::Holding,
};
use emend_core::{
    Digest, DomainRule, InstallationId, Kind, Layer, Namespace, Revision, UserId,
    evidence::{Covering, Layers, RulesOfName, deciding},
};
use emend_proto::common::v1::ResourceValue;
use prost::Message as _;

use super::{
    held::{Group, Held, Key, sums_of},
    says::{NAMESPACE, maps_to},
    wait::{eventually, holds, within},
    wary,
};

/// A running node. Dropping it stops it.
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
    /// A node that subscribes to everything at `address`.
    pub async fn start(address: impl fmt::Display, id: &str) -> Self {
        Self::start_from(address, id, None).await
    }

    /// The same, optionally with a copy on disk that it starts from and keeps up to date.
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

    /// One that soon notices that its peer has silently gone, for networks on which that happens.
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

    /// The view that it answers from.
    pub fn view(&self) -> &LearnedView {
        self.handle.view()
    }

    /// Makes it accept another installation in place of the one whose resources it holds.
    pub fn accept_installation(&self, installation: InstallationId) {
        self.handle.accept_installation(installation);
    }

    /// Waits until it has applied `revision`.
    pub async fn until(&self, revision: i64) {
        within(
            "the node has applied a revision",
            self.view().wait_for_revision(Revision(revision)),
        )
        .await;
    }

    /// Waits until the last comparison of digests matched the server's.
    pub async fn until_certain(&self) {
        eventually("the node is certain of what it holds", || async {
            let staleness = self.view().staleness();
            holds(!staleness.in_doubt, || format!("{staleness:?}"))
        })
        .await;
    }

    /// All its events from now on.
    pub fn watch(&self) -> Events {
        self.handle.events()
    }

    /// Waits for an event that `found` accepts.
    ///
    /// # Panics
    /// If the node ends first.
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

    /// The events so far that no wait has consumed.
    pub async fn events_so_far(&mut self) -> Vec<Arc<SubscriberEvent>> {
        let mut events = Vec::new();
        // Events that have already happened are ready at once.
        while let Ok(Some(observed)) = tokio::time::timeout(Duration::ZERO, self.events.next()).await {
            if let Observed::Event(event) = observed {
                events.push(event);
            }
        }
        events
    }

    /// Shuts it down gracefully, with its copy up to date.
    ///
    /// # Panics
    /// If it does not end by itself.
    pub async fn stop(self) {
        let ended = self.handle.shutdown(Duration::from_secs(20)).await;
        assert_eq!(ended, Shutdown::Graceful);
    }

    /// What it answers for a phrase as a user typed it: the value, and the prohibited choices.
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

    /// The revision of the log it has reached, and what it holds: every resource as received, with its digests.
    pub fn holds(&self) -> Holds {
        let Holding {
            position,
            resources,
            digests,
        } = self.handle.holding();
        let held = resources.into_iter().map(|resource| {
            let held = Held {
                revision: resource.revision,
                value: resource.value,
            };
            (Key::from(&resource.key), held)
        });
        let digests = digests
            .into_iter()
            .map(|(of, digest)| ((of.namespace, of.kind, of.user_scoped), digest));
        Holds {
            revision: position.map(|position| position.revision),
            resources: held.collect(),
            digests: digests.collect(),
        }
    }

    /// Asserts that it holds exactly what is stored, with matching digests, and answers accordingly for every key, for
    /// everybody and for every user. `others` are phrases for which something was learned once.
    ///
    /// # Panics
    /// If it does not.
    pub fn assert_answers_by(&self, stored: &BTreeMap<Key, Held>, others: &[&str]) {
        let holds = self.holds();
        assert_eq!(holds.resources, *stored, "it holds what is stored");
        assert_eq!(
            holds.digests,
            sums_of(stored),
            "its digests are of what is stored"
        );
        let others = others.iter().map(|phrase| Key {
            namespace: NAMESPACE.to_owned(),
            kind: Kind::InvocationPhrase.number(),
            key: (*phrase).to_owned(),
            qualifier: String::new(),
            user_id: String::new(),
        });
        let wrong = self.differences(stored, &others.collect());
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(!self.view().staleness().in_doubt, "its digests are the server's");
    }

    /// The keys for which it does not answer by what is stored, and how it differs. It is asked for every phrase of
    /// every namespace, for everybody and for every user, past and present: `once` are all keys for which something was
    /// ever proposed or learned.
    ///
    /// # Panics
    /// If a stored key or value is not valid.
    pub fn differences(&self, stored: &BTreeMap<Key, Held>, once: &BTreeSet<Key>) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut of_phrases: BTreeMap<(&str, &str), Vec<(&Key, &Held)>> = BTreeMap::new();
        let mut users = BTreeSet::from([""]);
        for key in stored.keys().chain(once) {
            of_phrases.entry((&key.namespace, &key.key)).or_default();
            users.insert(&key.user_id);
        }
        for (key, held) in stored {
            of_phrases
                .entry((&key.namespace, &key.key))
                .or_default()
                .push((key, held));
        }
        for ((namespace, phrase), of_phrase) in of_phrases {
            for user in &users {
                for kind in [Kind::InvocationPhrase, Kind::EntityAlias] {
                    let answer = self.answer(namespace, kind, phrase, user);
                    let expected = expected(&of_phrase, kind, user);
                    if answer != expected {
                        wrong.push(format!(
                            "for {kind} {phrase:?} of {user:?} in {namespace}: {answer:?}, should be {expected:?}"
                        ));
                    }
                }
            }
        }
        wrong.extend(self.wrong_about_domains(stored, once));
        wrong
    }

    /// The hosts whose trust it does not say by what is stored: each name that a decision was about, and one below it.
    fn wrong_about_domains(&self, stored: &BTreeMap<Key, Held>, once: &BTreeSet<Key>) -> Vec<String> {
        let number = Kind::DomainRule.number();
        let names = stored.keys().chain(once).filter(|key| key.kind == number);
        let hosts: BTreeSet<(&str, String)> = names
            .flat_map(|key| {
                let name = Covering::of(&key.key).name;
                [name.to_owned(), format!("below.{name}")].map(|host| (key.namespace.as_str(), host))
            })
            .collect();
        let mut wrong = Vec::new();
        for (namespace, host) in hosts {
            let mut rules: HashMap<&str, RulesOfName<i64>> = HashMap::new();
            let own = stored
                .iter()
                .filter(|(key, _)| key.kind == number && key.namespace == namespace);
            for (key, held) in own {
                let value = ResourceValue::decode(&*held.value).expect("a stored value");
                let rule = DomainRule::parse(&maps_to(Some(&value))).expect("a stored decision");
                let layer = Layer::parse(&key.qualifier).expect("a stored layer");
                let of_name = rules.entry(Covering::of(&key.key).name).or_default();
                of_name.set(&key.key, layer, Some((rule, held.revision)));
            }
            let expected = deciding(&host, Layers::All, |name| rules.get(name));
            let expected = expected.map(|of| (of.level, of.covering.pattern(), of.with));
            let of = Namespace::parse(namespace).expect("a stored namespace");
            let answer = self.view().trust(&of, &host).expect("a host");
            let found = answer
                .decided_by
                .map(|rule| (answer.level, rule.pattern, rule.revision.0));
            if found != expected {
                wrong.push(format!(
                    "for {host} in {namespace}: {found:?}, should be {expected:?}"
                ));
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

/// What a node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holds {
    /// The revision of the log; `None` before anything arrived.
    pub revision: Option<i64>,
    /// Every resource.
    pub resources: BTreeMap<Key, Held>,
    /// Its digests of all non-empty groups.
    pub digests: BTreeMap<Group, Digest>,
}

/// The rule, applied to what is stored for a phrase: a value prohibited for everybody or for the user is out; then the
/// user's own value wins, then everybody's.
fn expected(stored: &[(&Key, &Held)], kind: Kind, user: &str) -> Answer {
    let of_kind = |kind: Kind| stored.iter().filter(move |(key, _)| key.kind == kind.number());
    let concerns = |of: &str| of.is_empty() || of == user;
    let prohibited: BTreeSet<String> = of_kind(Kind::Prohibition)
        .filter(|(key, _)| concerns(&key.user_id))
        .map(|(key, _)| key.qualifier.clone())
        .collect();
    let value = |of: &str| {
        let (_, held) = of_kind(kind).find(|(key, _)| key.user_id == of)?;
        let value = ResourceValue::decode(&*held.value).expect("a stored value");
        let value = maps_to(Some(&value));
        (!prohibited.contains(&value)).then_some((value, held.revision))
    };
    let own = if user.is_empty() { None } else { value(user) };
    Answer {
        found: own.or_else(|| value("")),
        prohibited: prohibited.into_iter().collect(),
    }
}
