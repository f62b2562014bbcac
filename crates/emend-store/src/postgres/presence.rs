//! Which processes are alive, as the database knows it: each holds an advisory lock on a connection of its own. The
//! server releases it when the connection ends, however the process ended.

use std::{collections::BTreeSet, time::Duration};

use sqlx::{ConnectOptions as _, PgConnection};
use tokio::time::timeout;

use super::ACQUIRE_TIMEOUT;
use crate::{PostgresUrl, StoreError};

/// How long the server may take to answer. The caller asks again later if it takes longer, and the lock stays.
const PATIENCE: Duration = Duration::from_secs(2);
/// After how many questions in a row without an answer the connection counts as lost.
const MOST_UNANSWERED: u32 = 5;

/// When a host is gone without a word, the server notices after some ten seconds rather than after hours. The settings
/// have no effect on sockets other than TCP's.
const NOTICE: &str = "SELECT set_config('tcp_keepalives_idle', '5', false),
    set_config('tcp_keepalives_interval', '2', false), set_config('tcp_keepalives_count', '3', false)";

/// The locks of one class that are held in this database. `objid` is the unsigned second half of a lock's name.
const PRESENT: &str = "SELECT objid::BIGINT FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid = $1::BIGINT::OID
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// This process's presence among those that use the same database for the same purpose.
#[derive(Debug)]
pub struct Presence {
    url: PostgresUrl,
    class: u32,
    member: u32,
    session: Option<PgConnection>,
    /// Questions in a row that the session did not answer.
    unanswered: u32,
}

impl Presence {
    /// Of `member`, among all that use `class`. The two name an advisory lock of the database. It is taken by the first
    /// [`members`](Self::members).
    pub fn new(url: PostgresUrl, class: u32, member: u32) -> Self {
        Self {
            url,
            class,
            member,
            session: None,
            unanswered: 0,
        }
    }

    /// All members whose connections the server holds; makes this one present, again if its connection was lost.
    pub async fn members(&mut self) -> Result<BTreeSet<u32>, StoreError> {
        if let Some(session) = self.session.take() {
            let answer = self.ask(session).await;
            if answer.is_ok() || self.session.is_some() {
                return answer;
            }
            // Others must not miss this one.
        }
        let session = self.connect().await?;
        self.ask(session).await
    }

    /// Asks over a session, and drops it if it is lost.
    async fn ask(&mut self, session: PgConnection) -> Result<BTreeSet<u32>, StoreError> {
        let (class, member) = (self.class, self.member);
        // Kept if the caller goes away: the lock outlives the question.
        let session = self.session.insert(session);
        let answer = timeout(PATIENCE, ask(session, class, member)).await;
        self.unanswered = if answer.is_err() { self.unanswered + 1 } else { 0 };
        let is_lost = matches!(answer, Ok(Err(_))) || self.unanswered >= MOST_UNANSWERED;
        if is_lost {
            (self.session, self.unanswered) = (None, 0);
        }
        Ok(answer.unwrap_or(Err(sqlx::Error::PoolTimedOut))?)
    }

    async fn connect(&mut self) -> Result<PgConnection, StoreError> {
        // A password may have been rotated, or the database moved; who uses the pool is told if the file is unreadable.
        if let Ok(Some(url)) = self.url.reread().await {
            self.url = url;
        }
        let options = self.url.options().application_name("emend presence");
        let connecting = async {
            let mut session = options.connect().await?;
            sqlx::query(NOTICE).execute(&mut session).await?;
            Ok(session)
        };
        let connected = timeout(ACQUIRE_TIMEOUT, connecting).await;
        connected
            .unwrap_or(Err(sqlx::Error::PoolTimedOut))
            .map_err(StoreError::connecting)
    }
}

async fn ask(session: &mut PgConnection, class: u32, member: u32) -> Result<BTreeSet<u32>, sqlx::Error> {
    let mut members = present(session, class).await?;
    if !members.contains(&member) {
        let locked: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock($1, $2)")
            .bind(class.cast_signed())
            .bind(member.cast_signed())
            .fetch_one(session)
            .await?;
        if locked {
            members.insert(member);
        }
    }
    Ok(members)
}

async fn present(session: &mut PgConnection, class: u32) -> Result<BTreeSet<u32>, sqlx::Error> {
    let members: Vec<i64> = sqlx::query_scalar(PRESENT)
        .bind(i64::from(class))
        .fetch_all(session)
        .await?;
    Ok(members
        .into_iter()
        .filter_map(|member| u32::try_from(member).ok())
        .collect())
}
