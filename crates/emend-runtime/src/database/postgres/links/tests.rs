//! Links over a network path that falls silent: connections made before get no more answers, later ones do.

use std::net::SocketAddr;

use sqlx::migrate::Migrator;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::Instant,
};

use super::{
    super::{ACQUIRE_TIMEOUT, PgWake, PostgresConfig, open_links},
    *,
};
use crate::{
    database::PostgresUrl,
    entropy::Entropy,
    lifecycle::Lifecycle,
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
async fn one() -> Option<(TestDatabase, Road, Links)> {
    let database = TestPostgres::create().await?;
    let road = Road::to(database.url()).await;
    let config = PostgresConfig {
        url: database.url().at(road.address),
        schema: "emend_test",
        application_name: "emend test",
        max_connections: 1,
    };
    let links = open_links(&config, &Migrator::DEFAULT, SILENCE, Duration::from_mins(30))
        .await
        .unwrap();
    Some((database, road, links))
}

async fn is_served(links: &Links) {
    let mut link = timeout(SOON, links.acquire()).await.expect("soon").unwrap();
    let one: i32 = sqlx::query_scalar("SELECT 1")
        .fetch_one(&mut *link)
        .await
        .unwrap();
    assert_eq!(one, 1);
}

/// Waits until the one connection is free, with the acquire timeout that services use.
async fn is_served_at_last(links: &Links) {
    let until = Instant::now() + SOON;
    while let Err(error) = links.acquire().await {
        assert!(Instant::now() < until, "{error}");
    }
    is_served(links).await;
}

#[tokio::test]
async fn a_statement_that_nobody_answers_fails_and_its_connection_makes_room() {
    let Some((database, road, links)) = one().await else {
        return;
    };
    for way in ["optional", "all"] {
        let mut link = links.acquire().await.unwrap();
        road.falls_silent();
        let query = sqlx::query("SELECT 1");
        let answer = match way {
            "optional" => timeout(SOON, query.fetch_optional(&mut *link)).await.map(drop_ok),
            _ => timeout(SOON, query.fetch_all(&mut *link)).await.map(drop_ok),
        };
        let error = StoreError::from(answer.expect("it does not wait for ever").unwrap_err());
        assert!(matches!(error, StoreError::Unavailable(_)), "{way}: {error}");
        drop(link);
        is_served(&links).await;
    }
    links.close().await;
    database.close().await;
}

fn drop_ok<T>(result: Result<T, sqlx::Error>) -> Result<(), sqlx::Error> {
    result.map(drop)
}

#[tokio::test]
async fn a_transaction_whose_statement_was_given_up_and_then_failed_is_rolled_back() {
    let Some((database, _road, links)) = one().await else {
        return;
    };
    let mut transaction = links
        .begin("BEGIN; SET LOCAL statement_timeout = '100ms'")
        .await
        .unwrap();
    let sleeping = sqlx::query("SELECT pg_sleep(30)").execute(&mut *transaction);
    assert!(timeout(Duration::from_millis(20), sleeping).await.is_err());
    drop(transaction);
    is_served_at_last(&links).await;
    links.close().await;
    database.close().await;
}

#[tokio::test]
async fn a_connection_that_lay_idle_is_replaced_while_its_taker_waits() {
    let Some((database, road, links)) = one().await else {
        return;
    };
    is_served(&links).await;
    let idle = async {
        while links.connections().idle == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, idle).await.expect("given back");
    road.falls_silent();
    let before = Instant::now();
    is_served(&links).await;
    assert!(before.elapsed() < ACQUIRE_TIMEOUT);
    links.close().await;
    database.close().await;
}

#[tokio::test]
async fn what_its_callers_left_in_the_middle_makes_room_in_time() {
    let Some((database, road, links)) = one().await else {
        return;
    };
    // A statement, then a transaction with nothing in progress.
    let mut link = links.acquire().await.unwrap();
    road.falls_silent();
    let left = timeout(
        Duration::from_millis(50),
        sqlx::query("SELECT 1").execute(&mut *link),
    );
    assert!(left.await.is_err());
    drop(link);
    is_served_at_last(&links).await;

    let transaction = links.begin("BEGIN").await.unwrap();
    road.falls_silent();
    drop(transaction);
    is_served_at_last(&links).await;

    // Between the last answer and the return to the pool.
    let link = links.acquire().await.unwrap();
    road.falls_silent();
    drop(link);
    is_served_at_last(&links).await;
    links.close().await;
    database.close().await;
}

#[tokio::test]
async fn a_commit_that_nobody_answers_fails() {
    let Some((database, road, links)) = one().await else {
        return;
    };
    let transaction = links.begin("BEGIN").await.unwrap();
    road.falls_silent();
    let committed = timeout(SOON, transaction.commit()).await.expect("soon");
    assert!(matches!(committed, Err(sqlx::Error::Io(_))), "{committed:?}");
    is_served(&links).await;
    links.close().await;
    database.close().await;
}

#[tokio::test]
async fn what_is_committed_stays_and_what_is_dropped_or_rolled_back_does_not() {
    let Some((database, _road, links)) = one().await else {
        return;
    };
    let mut link = links.acquire().await.unwrap();
    sqlx::query("CREATE TABLE note (text TEXT)")
        .execute(&mut *link)
        .await
        .unwrap();
    drop(link);
    for text in ["committed", "rolled back", "dropped"] {
        let mut transaction = links
            .begin("BEGIN ISOLATION LEVEL REPEATABLE READ")
            .await
            .unwrap();
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
        .fetch_all(&mut *links.acquire().await.unwrap())
        .await
        .unwrap();
    assert_eq!(notes, ["committed"]);
    assert_eq!(links.connections().max, 1);
    links.close().await;
    database.close().await;
}

#[tokio::test]
async fn who_listens_finds_out_that_nobody_speaks_any_more() {
    let Some((database, road, links)) = one().await else {
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
    timeout(patience, wake.woken()).await.expect("listening begins");
    road.falls_silent();
    timeout(patience, wake.woken())
        .await
        .expect("woken after the reconnect");
    sqlx::query("NOTIFY emend_head")
        .execute(&mut *links.acquire().await.unwrap())
        .await
        .unwrap();
    timeout(patience, wake.woken())
        .await
        .expect("woken by a notification again");
    lifecycle.shutdown(SOON).await;
    links.close().await;
    database.close().await;
}

#[tokio::test]
async fn who_browses_leaves_half_of_the_connections_to_others_also_when_he_has_gone() {
    let Some(database) = TestPostgres::create().await else {
        return;
    };
    let config = PostgresConfig {
        url: database.url().clone(),
        schema: "emend_test",
        application_name: "emend test",
        max_connections: 3,
    };
    let links = open_links(&config, &Migrator::DEFAULT, SILENCE, Duration::from_mins(30))
        .await
        .unwrap();
    let mut first = links.browse().await.unwrap();
    let mut second = Box::pin(links.browse());
    assert!(futures::poll!(&mut second).is_pending());
    is_served(&links).await;
    // The abandoned statement goes on, and its permit stays taken until it ends.
    let began = Instant::now();
    let mut long = Box::pin(sqlx::raw_sql("SELECT pg_sleep(0.2)").execute(&mut *first));
    assert!(futures::poll!(&mut long).is_pending());
    drop(long);
    drop(first);
    assert_eq!(links.browsers.available_permits(), 0);
    assert!(futures::poll!(&mut second).is_pending());
    timeout(SOON, second).await.expect("soon").unwrap();
    assert!(began.elapsed() >= Duration::from_millis(200));
    is_served(&links).await;
    links.close().await;
    database.close().await;
}
