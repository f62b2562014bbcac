//! feedback-svc's outbox, read directly: which replica holds which event, and until when. Of the fault runs, only this
//! module knows a table.

use std::{collections::BTreeMap, str::FromStr as _};

use sqlx::{ConnectOptions as _, Connection as _, postgres::PgConnectOptions, sqlite::SqliteConnectOptions};

use super::fleet::Fleet;
use crate::harness::system::Service;

const HELD: &str = "SELECT event_id, lease_token, due_at, now FROM outbox, database_clock
                    WHERE state = 1 AND lease_token IS NOT NULL";
const SCHEMA: &str = "emend_feedback";

type Row = (Vec<u8>, Vec<u8>, i64, i64);

/// A replica's lease on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Unique to this lease and those taken together with it.
    pub token: Vec<u8>,
    /// Its expiry, in microseconds since 1970 by the database's clock.
    pub until_us: i64,
    /// When it was read, likewise. Where the database uses its process's clock (SQLite), that is the reader's clock.
    pub read_at_us: i64,
}

impl Fleet {
    /// Every leased event, by its id.
    ///
    /// # Panics
    /// If the database can't be read.
    pub async fn leases(&self) -> BTreeMap<Vec<u8>, Lease> {
        let url = self.storage.url(Service::Feedback);
        let rows: Vec<Row> = if let Some(path) = url.strip_prefix("sqlite:") {
            let options = SqliteConnectOptions::new().filename(path).read_only(true);
            let mut connection = options.connect().await.expect("the database can be read");
            let rows = sqlx::query_as(HELD).fetch_all(&mut connection).await;
            rows.expect("the outbox can be read")
        } else {
            let options = PgConnectOptions::from_str(&url).expect("a PostgreSQL URL");
            let options = options.options([("search_path", SCHEMA)]);
            let mut connection = options.connect().await.expect("the database can be read");
            let rows = sqlx::query_as(HELD).fetch_all(&mut connection).await;
            connection.close().await.expect("a connection closes");
            rows.expect("the outbox can be read")
        };
        rows.into_iter()
            .map(|(event, token, until_us, read_at_us)| {
                let lease = Lease {
                    token,
                    until_us,
                    read_at_us,
                };
                (event, lease)
            })
            .collect()
    }
}
