use super::{on_both_databases, world::World};
use crate::app::queue::IngestQueue;
on_both_databases!(speed);
async fn speed(world: &World) {
    let app = world.instance().await;
    let lifecycle = emend_runtime::Lifecycle::new();
    let workers = if matches!(world.url, emend_runtime::database::DatabaseUrl::Sqlite(_)) { 1 } else { 4 };
    let queue = IngestQueue::start(&app, workers, &lifecycle);
    let total = 6000;
    let events: Vec<_> = (0..total).map(|n| world.phrase(&format!("r{}", n / 600), &format!("phrase {}", n % 600), "v")).collect();
    let start = tokio::time::Instant::now();
    let tasks: Vec<_> = events.chunks(64).map(|c| { let (q, c) = (queue.clone(), c.to_vec()); tokio::spawn(async move { q.submit(c).await.into_iter().for_each(|r| { r.unwrap(); }) }) }).collect();
    for t in tasks { t.await.unwrap(); }
    let took = start.elapsed();
    eprintln!("{} events in {took:?}: {:.0}/s", total, total as f64 / took.as_secs_f64());
    let start = tokio::time::Instant::now();
    for n in 0..100 { queue.submit(vec![world.phrase(&format!("x{n}"), &format!("single {}", n % 10), "v")]).await.pop().unwrap().unwrap(); }
    eprintln!("single: {:?} each", start.elapsed() / 100);
    let start = tokio::time::Instant::now();
    let hot: Vec<_> = (0..2000).map(|n| world.phrase(&format!("h{n}"), "hot", "v")).collect();
    queue.submit(hot).await.into_iter().for_each(|r| { r.unwrap(); });
    eprintln!("hot: 2000 in {:?}", start.elapsed());
    super::world::assert_sound(&app).await;
}
