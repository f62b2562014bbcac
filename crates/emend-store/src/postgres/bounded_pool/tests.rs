//! A network path that falls silent: connections made before get no more answers, later ones do.

use std::net::SocketAddr;

use emend_base::{entropy::Entropy, lifecycle::Lifecycle};
use sqlx::{migrate::Migrator, postgres::PgConnectOptions};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::Instant,
};

use super::{
    super::{
        ACQUIRE_TIMEOUT, PgWake, PostgresConfig, open_bounded,
        tests::{is_woken, notify},
    },
    *,
};
use crate::{
    PostgresUrl,
    testing::{TestDatabase, TestPostgres},
};

const SILENCE: Duration = Duration::from_secs(1);
/// Twice as long as anything that waits for one silence may take.
const SOON: Duration = Duration::from_secs(4);

/// A proxy to a server that forwards only for connections with this number or above.
#[derive(Debug)]
struct Road {
    address: SocketAddr,
    first: watch::Sender<usize>,
    accepted: watch::Receiver<usize>,
}

impl Road {
    async fn to(url: &PostgresUrl) -> Self {
        let options = url.options();
        let server = (options.get_host().to_owned(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (first, firsts) = watch::channel(0);
        let (counting, accepted) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let number = *counting.borrow();
                counting.send_replace(number + 1);
                let (server, mut firsts) = (server.clone(), firsts.clone());
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(server).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => return,
                        silent = firsts.wait_for(|first| *first > number) => drop(silent),
                    }
                    // Neither side notices.
                    std::future::pending::<()>().await;
                });
            }
        });
        Self {
            address,
            first,
            accepted,
        }
    }

    fn falls_silent(&self) {
        self.first.send_replace(*self.accepted.borrow());
    }
}

/// A single connection, so that anything that keeps it for ever is found out.
async fn one() -> Option<(TestDatabase, Road, BoundedPool)> {
    let database = TestPostgres::create().await?;
    let road = Road::to(database.url()).await;
    let config = PostgresConfig {
        url: database.url().at(road.address),
        schema: "emend_test",
        application_name: "emend test",
        max_connections: 1,
    };
    let pool = open_bounded(&config, &Migrator::DEFAULT, SILENCE, Duration::from_mins(30))
        .await
        .unwrap();
    Some((database, road, pool))
}

async fn is_served(pool: &BoundedPool) {
    let mut connection = timeout(SOON, pool.acquire()).await.expect("soon").unwrap();
    let one: i32 = sqlx::query_scalar("SELECT 1")
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    assert_eq!(one, 1);
}

/// Waits until the one connection is free, with the acquire timeout that services use.
async fn is_served_eventually(pool: &BoundedPool) {
    let until = Instant::now() + SOON;
    while let Err(error) = pool.acquire().await {
        assert!(Instant::now() < until, "{error}");
    }
    is_served(pool).await;
}

#[tokio::test]
async fn an_unanswered_statement_fails_and_frees_its_connection() {
    let Some((database, road, pool)) = one().await else {
        return;
    };
    for way in ["optional", "all"] {
        let mut connection = pool.acquire().await.unwrap();
        road.falls_silent();
        let query = sqlx::query("SELECT 1");
        let answer = match way {
            "optional" => timeout(SOON, query.fetch_optional(&mut *connection))
                .await
                .map(drop_ok),
            _ => timeout(SOON, query.fetch_all(&mut *connection))
                .await
                .map(drop_ok),
        };
        let error = StoreError::from(answer.expect("it does not wait for ever").unwrap_err());
        assert!(matches!(error, StoreError::Unavailable(_)), "{way}: {error}");
        drop(connection);
        is_served(&pool).await;
    }
    pool.close().await;
    database.close().await;
}

fn drop_ok<T>(result: Result<T, sqlx::Error>) -> Result<(), sqlx::Error> {
    result.map(drop)
}

#[tokio::test]
async fn a_transaction_with_an_abandoned_statement_is_rolled_back() {
    let Some((database, _road, pool)) = one().await else {
        return;
    };
    let mut transaction = pool
        .begin("BEGIN; SET LOCAL statement_timeout = '100ms'")
        .await
        .unwrap();
    let sleeping = sqlx::query("SELECT pg_sleep(30)").execute(&mut *transaction);
    assert!(timeout(Duration::from_millis(20), sleeping).await.is_err());
    drop(transaction);
    is_served_eventually(&pool).await;
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn a_dead_idle_connection_is_replaced_while_its_caller_waits() {
    let Some((database, road, pool)) = one().await else {
        return;
    };
    is_served(&pool).await;
    let idle = async {
        while pool.connections().idle == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, idle).await.expect("given back");
    road.falls_silent();
    let before = Instant::now();
    is_served(&pool).await;
    assert!(before.elapsed() < ACQUIRE_TIMEOUT);
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn abandoned_connections_are_freed_in_time() {
    let Some((database, road, pool)) = one().await else {
        return;
    };
    // A statement, then a transaction with nothing in progress.
    let mut connection = pool.acquire().await.unwrap();
    road.falls_silent();
    let left = timeout(
        Duration::from_millis(50),
        sqlx::query("SELECT 1").execute(&mut *connection),
    );
    assert!(left.await.is_err());
    drop(connection);
    is_served_eventually(&pool).await;

    let transaction = pool.begin("BEGIN").await.unwrap();
    road.falls_silent();
    drop(transaction);
    is_served_eventually(&pool).await;

    // Between the last answer and the return to the pool.
    let connection = pool.acquire().await.unwrap();
    road.falls_silent();
    drop(connection);
    is_served_eventually(&pool).await;
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn an_unanswered_commit_fails() {
    let Some((database, road, pool)) = one().await else {
        return;
    };
    let transaction = pool.begin("BEGIN").await.unwrap();
    road.falls_silent();
    let committed = timeout(SOON, transaction.commit()).await.expect("soon");
    assert!(matches!(committed, Err(sqlx::Error::Io(_))), "{committed:?}");
    is_served(&pool).await;
    pool.close().await;
    database.close().await;
}

/// Longer than this whole test may take.
const LONG: Duration = Duration::from_hours(24);

#[tokio::test]
async fn a_long_read_waits_for_its_answers_alone() {
    let Some((database, road, pool)) = one().await else {
        return;
    };
    let begin = async |statement| {
        let transaction = timeout(SOON, pool.begin_long(statement, LONG)).await;
        transaction.expect("soon")
    };
    let mut transaction = begin("BEGIN").await.unwrap();
    let slow = sqlx::raw_sql("SELECT pg_sleep(1.2)").execute(&mut *transaction);
    slow.await.expect("an answer later than the pool's silence");

    // Dropped, then ended, on a connection that has fallen silent.
    road.falls_silent();
    drop(transaction);
    is_served_eventually(&pool).await;
    let transaction = begin("BEGIN").await.unwrap();
    road.falls_silent();
    let ended = timeout(SOON, transaction.rollback()).await.expect("soon");
    assert!(matches!(ended, Err(sqlx::Error::Io(_))), "{ended:?}");

    // It does not begin in time.
    let late = begin("BEGIN; SELECT pg_sleep(30)").await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
    is_served(&pool).await;
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn only_committed_transactions_are_stored() {
    let Some((database, _road, pool)) = one().await else {
        return;
    };
    let mut connection = pool.acquire().await.unwrap();
    sqlx::query("CREATE TABLE note (text TEXT)")
        .execute(&mut *connection)
        .await
        .unwrap();
    drop(connection);
    for text in ["committed", "rolled back", "dropped"] {
        let mut transaction = pool.begin("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
        sqlx::query("INSERT INTO note VALUES ($1)")
            .bind(text)
            .execute(&mut *transaction)
            .await
            .unwrap();
        match text {
            "committed" => transaction.commit().await.unwrap(),
            "rolled back" => transaction.rollback().await.unwrap(),
            _ => drop(transaction),
        }
    }
    let notes: Vec<String> = sqlx::query_scalar("SELECT text FROM note")
        .fetch_all(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap();
    assert_eq!(notes, ["committed"]);
    assert_eq!(pool.connections().max, 1);
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn a_listener_reconnects_when_its_connection_falls_silent() {
    let Some((database, road, pool)) = one().await else {
        return;
    };
    let lifecycle = Lifecycle::new();
    let mut wake = PgWake::listen(
        &database.url().at(road.address),
        "emend_head",
        &lifecycle,
        &Entropy::system(),
    );
    let patience = Duration::from_secs(30);
    is_woken(&mut wake, patience, "listening begins").await;
    road.falls_silent();
    is_woken(&mut wake, patience, "woken after the reconnect").await;
    notify(&pool).await;
    is_woken(&mut wake, patience, "woken by a notification again").await;
    lifecycle.shutdown(SOON).await;
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn scans_take_at_most_half_of_the_connections_even_when_abandoned() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    let config = PostgresConfig {
        url: database.url().clone(),
        schema: "emend_test",
        application_name: "emend test",
        max_connections: 3,
    };
    let pool = open_bounded(&config, &Migrator::DEFAULT, SILENCE, Duration::from_mins(30))
        .await
        .unwrap();
    let mut first = pool.browse().await.unwrap();
    let mut second = Box::pin(pool.browse());
    assert!(futures::poll!(&mut second).is_pending());
    is_served(&pool).await;
    // The abandoned statement goes on, and its permit stays taken until it ends.
    let began = Instant::now();
    let mut long = Box::pin(sqlx::raw_sql("SELECT pg_sleep(0.2)").execute(&mut *first));
    assert!(futures::poll!(&mut long).is_pending());
    drop(long);
    drop(first);
    assert_eq!(pool.browsers.available_permits(), 0);
    assert!(futures::poll!(&mut second).is_pending());
    timeout(SOON, second).await.expect("soon").unwrap();
    assert!(began.elapsed() >= Duration::from_millis(200));
    is_served(&pool).await;
    pool.close().await;
    database.close().await;
}

#[tokio::test]
async fn while_the_server_is_away_what_needs_it_fails_soon_and_once_it_answers_again_it_is_served() {
    let Some((database, _road, pool)) = one().await else {
        return;
    };
    let reachable = pool.pool.connect_options();
    // Nobody listens there.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let away = PgConnectOptions::clone(&reachable).port(gone.local_addr().unwrap().port());
    drop(gone);
    pool.pool.set_connect_options(away);
    drop(
        pool.acquire()
            .await
            .unwrap()
            .0
            .connection
            .take()
            .map(PoolConnection::detach),
    );
    assert!(matches!(pool.ping().await, Err(StoreError::Unavailable(_))));
    let begun = Instant::now();
    assert!(matches!(pool.acquire().await, Err(StoreError::Unavailable(_))));
    assert!(begun.elapsed() < 2 * AWAY_PATIENCE, "{:?}", begun.elapsed());
    pool.pool.set_connect_options(PgConnectOptions::clone(&reachable));
    pool.ping().await.unwrap();
    is_served(&pool).await;
    pool.close().await;
    database.close().await;
}
