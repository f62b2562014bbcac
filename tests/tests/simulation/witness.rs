//! Reads every message that a replica puts on a stream, and checks the stream against the promises of docs/stream.md.

use std::sync::Arc;

use emend_proto::{
    frame::Frame,
    learning::v1::{Cursor, SnapshotReason, SubscribeRequest},
    wire::{self, ChangeKind, Message},
};
use prost::Message as _;

use crate::{
    history::{Filter, Held, key_of},
    world::{World, lock},
};

/// The witness of one stream.
#[derive(Debug)]
pub(crate) struct Witness {
    world: Arc<World>,
    name: String,
    filter: Filter,
    asked_from: Option<Cursor>,
    /// The cursor last handed out.
    at: Option<Cursor>,
    snapshot: Option<(i64, i64, Held)>,
    update: Option<(i64, i64, Held)>,
    drained: bool,
}

type Checked = Result<(), String>;

fn require(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

impl Witness {
    pub(crate) fn new(world: &Arc<World>, name: String, request: &SubscribeRequest) -> Self {
        Self {
            world: Arc::clone(world),
            name,
            filter: Filter::of(request),
            asked_from: request.cursor.clone(),
            at: None,
            snapshot: None,
            update: None,
            drained: false,
        }
    }

    /// Checks the next message.
    pub(crate) fn observe(&mut self, frame: &Frame) {
        let message = wire::SubscribeResponse::decode(frame.0.clone()).map(|decoded| decoded.message);
        let checked = match message {
            Ok(Some(message)) => {
                self.world
                    .trace
                    .note(format_args!("{}: {}", self.name, in_short(&message)));
                self.check(message)
            }
            Ok(None) => Err("a message without content".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(broken) = checked {
            self.world.violation(format!("{}: {broken}", self.name));
        }
    }

    fn revision(&self) -> Option<i64> {
        self.at.as_ref().map(|cursor| cursor.revision)
    }

    fn check(&mut self, message: Message) -> Checked {
        require(!self.drained, || "something follows Drain".to_owned())?;
        match message {
            Message::Resumed(resumed) => {
                require(self.at.is_none() && resumed.cursor == self.asked_from, || {
                    format!(
                        "Resumed at {:?}, asked from {:?}",
                        resumed.cursor, self.asked_from
                    )
                })?;
                self.at = resumed.cursor;
                Ok(())
            }
            Message::SnapshotBegin(begin) => {
                require(self.update.is_none(), || "a snapshot within an update".to_owned())?;
                let of_new_node = begin.reason() == SnapshotReason::NoCursor;
                require(
                    of_new_node == self.asked_from.is_none() || self.at.is_some(),
                    || format!("a snapshot for {:?}", begin.reason()),
                )?;
                self.snapshot = Some((begin.revision, begin.resource_count, Held::new()));
                Ok(())
            }
            Message::SnapshotChunk(chunk) => {
                let (_, _, held) = self.snapshot.as_mut().ok_or("a chunk outside of a snapshot")?;
                for resource in chunk.into_resources() {
                    let key = key_of(&resource.key.unwrap_or_default());
                    let value = (resource.revision, Some(resource.value.to_vec()));
                    require(held.insert(key.clone(), value).is_none(), || {
                        format!("{key:?} comes twice")
                    })?;
                }
                Ok(())
            }
            Message::SnapshotEnd(end) => self.installed(end.cursor.unwrap_or_default()),
            Message::Update(update) => self.updated(update),
            Message::Bookmark(bookmark) => self.bookmarked(bookmark.cursor.unwrap_or_default()),
            Message::Drain(_) => {
                self.drained = true;
                Ok(())
            }
        }
    }

    fn installed(&mut self, cursor: Cursor) -> Checked {
        let (revision, count, held) = self.snapshot.take().ok_or("a snapshot ends that never began")?;
        require(cursor.revision == revision, || {
            format!("a snapshot of {revision} ends at {}", cursor.revision)
        })?;
        require(usize::try_from(count) == Ok(held.len()), || {
            format!("{} resources of {count}", held.len())
        })?;
        if let Some(at) = self.at.as_ref().filter(|at| at.epoch == cursor.epoch) {
            require(revision >= at.revision, || {
                format!("back from {} to {revision}", at.revision)
            })?;
        }
        self.at = Some(cursor);
        lock(&self.world.history).explains_all(&self.filter, revision, &held)
    }

    fn updated(&mut self, part: wire::Update) -> Checked {
        let at = self.revision().ok_or("an update before anything else")?;
        require(self.snapshot.is_none(), || {
            "an update within a snapshot".to_owned()
        })?;
        let (from, to) = (part.from_revision, part.to_revision);
        require(from == at && to > from, || format!("({from}, {to}] follows {at}"))?;
        let (first_from, first_to, mut changes) = self.update.take().unwrap_or((from, to, Held::new()));
        require((from, to) == (first_from, first_to), || {
            "parts of two updates".to_owned()
        })?;
        for change in part.changes {
            let (key, value) = match change.change.ok_or("a change of nothing")? {
                ChangeKind::Put(resource) => {
                    require(resource.revision == change.revision, || {
                        "a resource of another revision".to_owned()
                    })?;
                    (resource.key.unwrap_or_default(), Some(resource.value.to_vec()))
                }
                ChangeKind::Deleted(key) => (key, None),
            };
            let before = changes.insert(key_of(&key), (change.revision, value));
            require(before.is_none(), || format!("{key:?} changes twice"))?;
        }
        if !part.last {
            self.update = Some((from, to, changes));
            return Ok(());
        }
        let cursor = part.cursor.unwrap_or_default();
        let epoch = self.at.as_ref().map(|at| at.epoch.clone());
        require(
            cursor.revision == to && Some(&cursor.epoch) == epoch.as_ref(),
            || format!("({from}, {to}] leads to {cursor:?}"),
        )?;
        self.at = Some(cursor);
        lock(&self.world.history).explains(&self.filter, from, to, &changes)
    }

    fn bookmarked(&mut self, cursor: Cursor) -> Checked {
        let at = self.revision().ok_or("a bookmark before anything else")?;
        require(self.snapshot.is_none() && self.update.is_none(), || {
            "a bookmark before all has come".to_owned()
        })?;
        let epoch = self.at.as_ref().map(|at| at.epoch.clone());
        require(Some(&cursor.epoch) == epoch.as_ref(), || {
            "a bookmark of another life of the log".to_owned()
        })?;
        let revision = cursor.revision;
        require(revision >= at, || format!("back from {at} to {revision}"))?;
        self.at = Some(cursor);
        lock(&self.world.history).explains(&self.filter, at, revision, &Held::new())
    }
}

fn in_short(message: &Message) -> String {
    match message {
        Message::Resumed(resumed) => {
            format!("Resumed at {}", resumed.cursor.as_ref().map_or(0, |c| c.revision))
        }
        Message::SnapshotBegin(begin) => {
            format!("SnapshotBegin of {}, {:?}", begin.revision, begin.reason())
        }
        Message::SnapshotChunk(chunk) => format!("SnapshotChunk of {}", chunk.resources.len()),
        Message::SnapshotEnd(_) => "SnapshotEnd".to_owned(),
        Message::Update(update) => format!(
            "Update ({}, {}] of {}",
            update.from_revision,
            update.to_revision,
            update.changes.len()
        ),
        Message::Bookmark(bookmark) => {
            format!(
                "Bookmark at {}",
                bookmark.cursor.as_ref().map_or(0, |c| c.revision)
            )
        }
        Message::Drain(drain) => format!("Drain, {}", drain.reason),
    }
}
