//! Things broken on purpose: the simulation must notice each of them.

use emend_proto::{
    frame::Frame,
    wire::{self, Message},
};
use feedback_svc::simulation::Defect as FeedbackDefect;
use learning_store::memory::Defect as LearningDefect;
use prost::Message as _;

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// feedback-svc's store.
    Feedback(FeedbackDefect),
    /// learning-svc's store.
    Learning(LearningDefect),
    /// What replicas put on streams.
    Stream(StreamDefect),
}

/// A defect of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamDefect {
    /// An update of several changes lacks the newest.
    DropsNewest,
    /// An update is sent again.
    RepeatsUpdates,
    /// A bookmark claims more than was sent.
    BookmarksAhead,
    /// An update is skipped.
    SkipsUpdates,
}

impl StreamDefect {
    /// What is sent instead of a message.
    pub(crate) fn spoil(self, frame: Frame) -> Vec<Frame> {
        let Ok(wire::SubscribeResponse {
            message: Some(mut message),
        }) = wire::SubscribeResponse::decode(frame.0.clone())
        else {
            return vec![frame];
        };
        let again = match (self, &mut message) {
            (Self::DropsNewest, Message::Update(update)) if update.changes.len() > 1 => {
                update.changes.pop();
                1
            }
            (Self::RepeatsUpdates, Message::Update(_)) => 2,
            (Self::SkipsUpdates, Message::Update(_)) => 0,
            (Self::BookmarksAhead, Message::Bookmark(bookmark)) => {
                if let Some(cursor) = &mut bookmark.cursor {
                    cursor.revision += 1;
                }
                1
            }
            _ => return vec![frame],
        };
        vec![encoded(message); again]
    }
}

/// A message as it is sent.
pub(crate) fn encoded(message: Message) -> Frame {
    let response = wire::SubscribeResponse {
        message: Some(message),
    };
    Frame(response.encode_to_vec().into())
}
