//! Sessions of the revisions that have them: in memory, so many at most, each bound to the token that opened it. One whose client
//! said nothing for half an hour ends.
//!
//! They are counted by caller, so that nobody's fill the table. Once it is full, a caller that has its share of it gives up a session
//! of its own, and one that has less gets the place of a session of whoever has most.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use emend_base::{Entropy, bearer::Token};
use futures::Stream;
use ring::digest::{SHA256, digest};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager},
};

use super::{
    metrics::McpMetrics,
    session::{Activity, Session, SessionTransport},
};

/// Tells tokens apart without keeping them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner([u8; 32]);

impl Owner {
    /// Who calls with this token; all who call without one are the same.
    pub(super) fn of(token: Option<&Token>) -> Self {
        let mut owner = [0; 32];
        if let Some(token) = token {
            owner.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        }
        Self(owner)
    }
}

/// A session and whose it is.
#[derive(Debug)]
struct Opened {
    /// Whose token it needs.
    owner: Owner,
    /// Whose it counts as.
    caller: Arc<str>,
    session: Arc<Session>,
}

/// All sessions, and whose they are.
#[derive(Debug)]
pub(super) struct Sessions {
    open: Mutex<HashMap<SessionId, Opened>>,
    /// The most at once.
    most: usize,
    entropy: Entropy,
    metrics: McpMetrics,
}

impl Sessions {
    pub(super) fn new(most: usize, entropy: Entropy, metrics: McpMetrics) -> Self {
        Self {
            open: Mutex::default(),
            most,
            entropy,
            metrics,
        }
    }

    /// A place for a new session, unless there is none for this caller.
    pub(super) fn place(self: &Arc<Self>, owner: Owner, caller: &Arc<str>) -> Result<Place, NoSession> {
        let mut open = self.open();
        if open.len() >= self.most {
            let Some(id) = least_active(&open, self.most, caller) else {
                self.metrics.turned_away("sessions");
                return Err(NoSession::Full(self.most));
            };
            if let Some(displaced) = open.remove(&id) {
                displaced.session.close();
            }
            self.metrics.displaced();
        }
        let id = SessionId::from(self.entropy.uuid_v4().to_string());
        let session = Session::new();
        let opened = Opened {
            owner,
            caller: Arc::clone(caller),
            session: Arc::clone(&session),
        };
        open.insert(SessionId::clone(&id), opened);
        self.metrics.sessions(open.len());
        drop(open);
        Ok(Place {
            all: Arc::clone(self),
            id,
            session: Some(session),
        })
    }

    /// Whether a session is open for this owner.
    pub(super) fn is_open_for(&self, id: &str, owner: Owner) -> bool {
        self.of(id, owner).is_some()
    }

    fn of(&self, id: &str, owner: Owner) -> Option<Arc<Session>> {
        let open = self.open();
        let opened = open.get(id).filter(|opened| opened.owner == owner)?;
        Some(Arc::clone(&opened.session))
    }

    /// A session, whose ever it is.
    #[cfg(test)]
    pub(super) fn session(&self, id: &str) -> Option<Arc<Session>> {
        Some(Arc::clone(&self.open().get(id)?.session))
    }

    fn end(&self, id: &SessionId) {
        let mut open = self.open();
        if let Some(ended) = open.remove(id) {
            ended.session.close();
        }
        self.metrics.sessions(open.len());
    }

    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, Opened>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session that makes room for one of this caller: its own, if it has its share, and then none in which a call is under way;
/// otherwise one of whoever has most. Of those the one in which least goes on, and the oldest of these.
fn least_active(open: &HashMap<SessionId, Opened>, most: usize, caller: &Arc<str>) -> Option<SessionId> {
    let mut counts: HashMap<&str, usize> = HashMap::from([(&**caller, 0)]);
    for opened in open.values() {
        *counts.entry(&opened.caller).or_default() += 1;
    }
    let share = most / counts.len();
    let has_its_share = counts.get(&**caller).is_some_and(|count| *count >= share);
    let whose = if has_its_share {
        &**caller
    } else {
        counts
            .iter()
            .max_by_key(|(_, count)| **count)
            .map(|(whose, _)| *whose)?
    };
    let of_whom = open.iter().filter(|(_, opened)| *opened.caller == *whose);
    let active = of_whom.map(|(id, opened)| (opened.session.activity(), id));
    let may_end = |activity: &Activity| !has_its_share || !activity.has_calls;
    let candidates = active.filter(|(activity, _)| may_end(activity));
    candidates
        .min_by_key(|(activity, _)| *activity)
        .map(|(_, id)| SessionId::clone(id))
}

/// The place of a session that is about to begin; free again if it does not.
#[derive(Debug)]
pub(super) struct Place {
    all: Arc<Sessions>,
    id: SessionId,
    session: Option<Arc<Session>>,
}

impl Place {
    /// Begins the session.
    fn take(mut self) -> Option<(SessionId, SessionTransport)> {
        let session = self.session.take()?;
        Some((SessionId::clone(&self.id), SessionTransport(session)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.session.is_some() {
            self.all.end(&self.id);
        }
    }
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSession {
    /// There is no place for it.
    #[error(
        "{0} sessions are open, which is the most, and calls are under way in all of yours: end one, or try again later"
    )]
    Full(usize),
    /// None with this id is open for this owner.
    #[error("no session of yours has this id")]
    Unknown,
    /// What served it ended before it answered.
    #[error("the session ended before it began")]
    Ended,
    /// Streams are not told again what they missed.
    #[error("a stream can't be taken up again")]
    NotResumable,
}

/// The sessions as one owner sees them: its own.
#[derive(Debug)]
pub(super) struct OwnSessions {
    all: Arc<Sessions>,
    owner: Owner,
    /// For the one that is about to begin.
    place: Mutex<Option<Place>>,
}

impl OwnSessions {
    pub(super) fn new(all: Arc<Sessions>, owner: Owner, place: Option<Place>) -> Self {
        Self {
            all,
            owner,
            place: Mutex::new(place),
        }
    }

    fn own(&self, id: &SessionId) -> Result<Arc<Session>, NoSession> {
        self.all.of(id, self.owner).ok_or(NoSession::Unknown)
    }
}

impl SessionManager for OwnSessions {
    type Error = NoSession;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, SessionTransport), NoSession> {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        place.and_then(Place::take).ok_or(NoSession::Full(self.all.most))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, NoSession> {
        let answer = self.own(id)?.greet(message);
        answer.await.map_err(|_| NoSession::Ended)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, NoSession> {
        Ok(self.all.is_open_for(id, self.owner))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), NoSession> {
        self.all.end(id);
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, NoSession> {
        Ok(self.own(id)?.call(message))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), NoSession> {
        self.own(id)?.take(message);
        Ok(())
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, NoSession> {
        Ok(self.own(id)?.listen())
    }

    async fn resume(
        &self,
        _id: &SessionId,
        _last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, NoSession> {
        Err::<futures::stream::Empty<_>, _>(NoSession::NotResumable)
    }
}
