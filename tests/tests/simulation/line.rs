//! A node's link to learning-svc: a connection to any replica, with room for a few messages, watched by a witness.

use std::sync::{Arc, atomic::Ordering};

use emend_client::simulation::{Messages, Server};
use emend_proto::{
    frame::Frame,
    learning::v1::{ReportStatusRequest, SubscribeRequest},
    wire::{self, Message},
};
use futures::{StreamExt as _, future::BoxFuture};
use prost::Message as _;
use tokio::{sync::mpsc, time::sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::{
    node::Node,
    sabotage::{Sabotage, encoded},
    weather::Place,
    witness::Witness,
    world::{Running, World},
};

/// A node's link to learning-svc: each stream goes to any replica.
#[derive(Debug)]
pub(crate) struct Uplink(pub(crate) Arc<Node>);

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
                    // The node may have ended.
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
        // A connection whose peer is gone may stay silent for a while.
        sleep(world.some_millis(100)).await;
    }

    /// What arrives of a message: nearly always the message itself.
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
                self.node.missed.store(true, Ordering::SeqCst);
                Vec::new()
            }
            _ => vec![frame],
        }
    }
}
