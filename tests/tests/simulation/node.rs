//! Search nodes: emend-client's subscriber on a simulated network, checked for what it makes visible.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use emend_base::{BackoffConfig, Lifecycle};
use emend_client::{LearnedView, NodeHandle, Observed, State, SubscriberEvent, simulation::builder};
use emend_core::Kind;

use crate::{
    clock::SimClock,
    history::{Filter, Key, key_of},
    line::Uplink,
    people::NAMESPACES,
    picture::{Picture, picture, pictured},
    world::{World, lock},
};

/// A slot in which a node may run.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) world: Arc<World>,
    pub(crate) number: usize,
    filter: Filter,
    clock: SimClock,
    running: Mutex<Option<(Lifecycle, NodeHandle)>>,
    /// It was sent something other than what a replica sent: what it shows may be wrong until the digests reveal it.
    pub(crate) misled: AtomicBool,
    /// It was not sent everything that a replica sent. What it shows is right all the same, and the digests may reveal
    /// the loss.
    pub(crate) missed: AtomicBool,
}

impl Node {
    pub(crate) fn new(world: &Arc<World>, number: usize) -> Arc<Self> {
        let dice = &world.dice;
        let filter = Filter {
            namespaces: if dice.chance(0.3) {
                vec![NAMESPACES[dice.below(NAMESPACES.len())].to_owned()]
            } else {
                Vec::new()
            },
            kinds: if dice.chance(0.2) {
                vec![Kind::EntityAlias.number(), Kind::Prohibition.number()]
            } else {
                Vec::new()
            },
            user_scoped: dice.chance(0.5),
        };
        Arc::new(Self {
            world: Arc::clone(world),
            number,
            filter,
            clock: SimClock::new(),
            running: Mutex::default(),
            misled: AtomicBool::default(),
            missed: AtomicBool::default(),
        })
    }

    /// Starts it with no state.
    pub(crate) async fn start(self: &Arc<Self>) {
        let world = &self.world;
        world
            .trace
            .note(format_args!("node {} starts, {:?}", self.number, self.filter));
        self.misled.store(false, Ordering::SeqCst);
        self.missed.store(false, Ordering::SeqCst);
        let lifecycle = Lifecycle::new();
        let uplink = Uplink(Arc::clone(self));
        let mut builder = builder(Arc::new(uplink), &format!("node-{}", self.number))
            .bookmark_interval(Duration::from_secs(1))
            .idle_timeout(Duration::from_secs(6))
            .connect_timeout(Duration::from_secs(6))
            .report_interval(Duration::from_secs(3))
            .include_user_scoped(self.filter.user_scoped)
            .backoff(BackoffConfig {
                initial: Duration::from_millis(50),
                max: Duration::from_secs(1),
                multiplier: 2.0,
            })
            .clock(self.clock.shared())
            .entropy(world.own_entropy());
        for namespace in &self.filter.namespaces {
            builder = builder.namespace(namespace.as_str());
        }
        for kind in &self.filter.kinds {
            builder = builder.kind(Kind::from_number(*kind).expect("a kind"));
        }
        let (handle, mut events) = builder.spawn_observed(&lifecycle).await.expect("valid settings");
        *lock(&self.running) = Some((lifecycle, handle.clone()));
        let (node, view) = (Arc::clone(self), handle.view().clone());
        tokio::spawn(async move {
            let mut seen = Seen::default();
            while let Some(observed) = events.next().await {
                let Observed::Event(event) = observed else {
                    seen = Seen::default();
                    continue;
                };
                let mut checked = seen.check(&event, &node);
                if let SubscriberEvent::Snapshot { .. } | SubscriberEvent::Updated { .. } = *event {
                    checked = checked.and_then(|()| node.check_picture(&view));
                }
                if let Err(broken) = checked {
                    node.world.violation(format!("node {}: {broken}", node.number));
                }
            }
        });
    }

    /// Kills it; its state is lost.
    pub(crate) fn kill(&self) {
        if let Some((lifecycle, _)) = lock(&self.running).take() {
            self.world
                .trace
                .note(format_args!("node {} is killed", self.number));
            lifecycle.hard().cancel();
        }
    }

    fn is_misled(&self) -> bool {
        self.misled.load(Ordering::SeqCst) || self.world.lost_its_tail()
    }

    /// Checks that it shows exactly what existed at the revision that it shows.
    fn check_picture(&self, view: &LearnedView) -> Result<(), String> {
        if self.is_misled() {
            return Ok(());
        }
        let (revision, shown) = picture(view);
        match self.expected(revision) {
            Some(expected) if shown == expected => Ok(()),
            expected => Err(format!("shows {shown:?} at {revision}, should show {expected:?}")),
        }
    }

    fn expected(&self, revision: i64) -> Option<Picture> {
        let held = lock(&self.world.history).held_at(&self.filter, revision)?;
        Some(pictured(&held))
    }

    /// Why it is not at the newest state; `None` if it is.
    pub(crate) fn behind(&self) -> Option<String> {
        let running = lock(&self.running);
        let Some((_, handle)) = &*running else {
            return Some(format!("node {} does not run", self.number));
        };
        let (revision, shown) = picture(handle.view());
        let head = lock(&self.world.history).head();
        if revision != head {
            return Some(format!("node {} is at {revision} of {head}", self.number));
        }
        let expected = self.expected(head);
        (Some(&shown) != expected.as_ref()).then(|| {
            format!(
                "node {} shows {shown:?} at {revision}, should show {expected:?}",
                self.number
            )
        })
    }
}

/// What a node has made visible so far.
#[derive(Debug, Default)]
struct Seen {
    at: Option<i64>,
    /// For each key, the revision that last changed it since the last snapshot.
    changed: BTreeMap<Key, i64>,
}

impl Seen {
    fn check(&mut self, event: &SubscriberEvent, node: &Node) -> Result<(), String> {
        let at = self.at;
        match event {
            SubscriberEvent::Snapshot { snapshot, .. } => {
                let revision = snapshot.revision.0;
                if at.is_some_and(|at| revision < at) && !node.is_misled() {
                    return Err(format!("back from {at:?} to {revision} by a snapshot"));
                }
                self.at = Some(revision);
                self.changed.clear();
            }
            SubscriberEvent::Updated { update, .. } => {
                if at.is_some_and(|at| update.from.0 > at || update.to.0 <= at) {
                    return Err(format!("({}, {}] follows {at:?}", update.from, update.to));
                }
                self.at = Some(update.to.0);
                for change in &update.changes {
                    let before = self.changed.insert(key_of(&change.key), change.revision.0);
                    if before.is_some_and(|before| before >= change.revision.0) {
                        return Err(format!("{:?} of {} comes twice", change.key, change.revision));
                    }
                    if matches!(change.state, State::Rejected(_)) && !node.is_misled() {
                        return Err(format!("{:?} can't be used", change.key));
                    }
                }
            }
            SubscriberEvent::Bookmark { revision, .. } => {
                if at.is_some_and(|at| revision.0 < at) {
                    return Err(format!("back from {at:?} to {revision} by a bookmark"));
                }
                self.at = Some(revision.0);
            }
            SubscriberEvent::Resumed { revision } => {
                if at.is_some_and(|at| revision.0 != at) {
                    return Err(format!("resumes at {revision}, is at {at:?}"));
                }
            }
            SubscriberEvent::DigestMismatch { differences } => {
                if !node.is_misled() && !node.missed.load(Ordering::SeqCst) {
                    return Err(format!("digests differ: {differences:?}"));
                }
            }
            SubscriberEvent::InstallationMismatch { held, answering } => {
                return Err(format!("installation {answering} answers instead of {held}"));
            }
            SubscriberEvent::Disconnected { reason, .. } => {
                node.world
                    .trace
                    .note(format_args!("node {} is disconnected: {reason}", node.number));
            }
            SubscriberEvent::Connected
            | SubscriberEvent::Restored { .. }
            | SubscriberEvent::CopyRefused { .. }
            | SubscriberEvent::Saved { .. }
            | SubscriberEvent::Mirrored { .. } => {}
        }
        Ok(())
    }
}
