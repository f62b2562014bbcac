//! Search nodes: emend-client's subscriber on a simulated network, watched for what it makes visible.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use emend_client::{
    LearnedView, LookupKey, NodeHandle, Observed, State, SubscriberEvent,
    simulation::{Messages, Server, builder},
};
use emend_core::{Kind, Namespace, NormalizedKey};
use emend_proto::{
    frame::Frame,
    learning::v1::{ReportStatusRequest, SubscribeRequest},
    wire::{self, Message},
};
use emend_runtime::{BackoffConfig, Lifecycle};
use futures::{StreamExt as _, future::BoxFuture};
use prost::Message as _;
use tokio::{sync::mpsc, time::sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::{
    clock::SimClock,
    history::{Filter, Held, Key, key_of},
    people::{CHOICES, NAMESPACES, PHRASES},
    sabotage::{Sabotage, encoded},
    weather::Place,
    witness::Witness,
    world::{Running, World, lock},
};

/// The kinds that are looked up.
const LOOKED_UP: [Kind; 2] = [Kind::InvocationPhrase, Kind::EntityAlias];

/// A place where a node runs, or does not.
#[derive(Debug)]
pub(crate) struct Node {
    world: Arc<World>,
    number: usize,
    filter: Filter,
    clock: SimClock,
    running: Mutex<Option<(Lifecycle, NodeHandle)>>,
    /// It was sent something else than a replica said: what it shows may be wrong until the digests tell.
    misled: Arc<AtomicBool>,
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
            misled: Arc::default(),
        })
    }

    /// Starts it, holding nothing.
    pub(crate) async fn start(self: &Arc<Self>) {
        let world = &self.world;
        world
            .trace
            .note(format_args!("node {} starts, {:?}", self.number, self.filter));
        self.misled.store(false, Ordering::SeqCst);
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

    /// Kills it; what it held is gone.
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

    /// What it shows is what there was at the revision that it shows, all of it and nothing else.
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

    /// Why it is not at the newest state; none: it is.
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

/// What a node says to every question: the answer with its revision, and the prohibited choices.
type Picture = BTreeMap<(usize, usize, i32), (Option<(String, i64)>, Vec<String>)>;

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

fn picture(view: &LearnedView) -> (i64, Picture) {
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

/// What is to be answered by who holds this.
fn pictured(held: &Held) -> Picture {
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

/// What a node has made visible so far.
#[derive(Debug, Default)]
struct Seen {
    at: Option<i64>,
    /// Of each key the revision that changed it last, since the last snapshot.
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
            SubscriberEvent::Bookmark { revision } => {
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
                if !node.is_misled() {
                    return Err(format!("digests differ: {differences:?}"));
                }
            }
            SubscriberEvent::Disconnected { reason, .. } => {
                node.world
                    .trace
                    .note(format_args!("node {} is disconnected: {reason}", node.number));
            }
            SubscriberEvent::Connected
            | SubscriberEvent::Restored { .. }
            | SubscriberEvent::CopyRefused { .. }
            | SubscriberEvent::Saved { .. } => {}
        }
        Ok(())
    }
}

/// A node's way to learning-svc: each stream to any replica.
#[derive(Debug)]
struct Uplink(Arc<Node>);

impl Server for Uplink {
    fn subscribe(&self, request: SubscribeRequest) -> BoxFuture<'static, Result<Messages, Status>> {
        let node = Arc::clone(&self.0);
        Box::pin(async move {
            let (world, place) = (Arc::clone(&node.world), Place::Node(node.number));
            let number = world.dice.below(world.learning.len());
            let slot = &world.learning[number];
            let lost = |_| Status::unavailable("the connection is lost");
            world.travel(place, slot.place).await.map_err(lost)?;
            let running = slot
                .running()
                .ok_or_else(|| Status::unavailable("nobody listens"))?;
            let name = format!("stream from {:?} to node {}", slot.place, node.number);
            let witness = Witness::new(&world, name, &request);
            let opened = World::within(&running, running.replica.subscribe(request)).await;
            let stream = opened.map_err(lost)??;
            let (sender, receiver) = mpsc::channel(4);
            let line = Line {
                node,
                witness,
                to: (slot.place, place),
                sender,
            };
            tokio::spawn(line.carry(running, stream));
            Ok(ReceiverStream::new(receiver).boxed() as Messages)
        })
    }

    fn report(&self, report: ReportStatusRequest) -> BoxFuture<'static, Result<(), Status>> {
        let node = Arc::clone(&self.0);
        Box::pin(async move {
            let world = &node.world;
            let slot = &world.learning[world.dice.below(world.learning.len())];
            let lost = |_| Status::unavailable("the connection is lost");
            world
                .travel(Place::Node(node.number), slot.place)
                .await
                .map_err(lost)?;
            let running = slot
                .running()
                .ok_or_else(|| Status::unavailable("nobody listens"))?;
            World::within(&running, running.replica.report(report))
                .await
                .map_err(lost)?
        })
    }
}

/// One connection, with room for a few messages.
struct Line {
    node: Arc<Node>,
    witness: Witness,
    to: (Place, Place),
    sender: mpsc::Sender<Result<Frame, Status>>,
}

impl Line {
    async fn carry(mut self, running: Running<learning_svc::simulation::Replica>, mut stream: Messages) {
        let world = Arc::clone(&self.node.world);
        while let Ok(Some(next)) = World::within(&running, stream.next()).await {
            let sent = match next {
                Ok(frame) => match world.sabotage {
                    Some(Sabotage::Stream(defect)) => defect.spoil(frame),
                    _ => vec![frame],
                },
                Err(status) => {
                    // The node may be gone.
                    let _ = self.sender.send(Err(status)).await;
                    return;
                }
            };
            for frame in sent {
                self.witness.observe(&frame);
                if world.travel(self.to.0, self.to.1).await.is_err() {
                    return;
                }
                for frame in self.tampered(frame) {
                    if self.sender.send(Ok(frame)).await.is_err() {
                        return;
                    }
                }
            }
        }
        // A connection whose other end is gone may be silent for a while.
        sleep(world.some_millis(100)).await;
    }

    /// What arrives of a message: nearly always the message.
    fn tampered(&self, frame: Frame) -> Vec<Frame> {
        let world = &self.node.world;
        if !world.dice.chance(world.weather.rates().tamper) {
            return vec![frame];
        }
        let decoded = wire::SubscribeResponse::decode(frame.0.clone());
        let mut message = decoded.expect("it was encoded here").message.expect("a message");
        let number = self.node.number;
        match &mut message {
            Message::Update(update) if !update.changes.is_empty() && world.dice.chance(0.5) => {
                update.changes.pop();
                world.trace.note(format_args!(
                    "node {number} gets an update without its last change"
                ));
                self.node.misled.store(true, Ordering::SeqCst);
                vec![encoded(message)]
            }
            Message::Update(_) if world.dice.chance(0.5) => {
                world
                    .trace
                    .note(format_args!("node {number} gets an update twice"));
                vec![frame.clone(), frame]
            }
            Message::Update(_) | Message::SnapshotChunk(_) => {
                world.trace.note(format_args!("node {number} misses a message"));
                self.node.misled.store(true, Ordering::SeqCst);
                Vec::new()
            }
            _ => vec![frame],
        }
    }
}
