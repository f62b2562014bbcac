//! feedback-svc's outbox, read past the service: who holds which event until when. The only place of the fault runs that
//! knows a table.

use std::{collections::BTreeMap, str::FromStr as _};

use sqlx::{ConnectOptions as _, Connection as _, postgres::PgConnectOptions, sqlite::SqliteConnectOptions};

use super::fleet::Fleet;
use crate::harness::system::Service;

const HELD: &str = "SELECT event_id, lease_token, due_at_us, now_us FROM outbox, database_clock
                    WHERE state = 1 AND lease_token IS NOT NULL";
const SCHEMA: &str = "emend_feedback";

type Row = (Vec<u8>, Vec<u8>, i64, i64);

/// One replica's hold on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Unlike that of every other lease but those that were taken with it.
    pub token: Vec<u8>,
    /// Its end, in microseconds since 1970 by the database's clock.
    pub until_us: i64,
    /// When it was read, likewise; where the database's clock is its process's: by the clock of who read it.
    pub read_at_us: i64,
}

impl Fleet {
    /// Every event that somebody holds, by its id.
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
