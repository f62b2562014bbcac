//! The rules of learning as the use cases keep them, on both databases.

mod arrival;
mod cached_ballots;
mod concurrency;
mod effects;
pub(crate) mod erasure;
mod events;
mod evidence;
mod evidence_citations;
mod evidence_deletes;
mod evidence_exports;
mod evidence_levels;
mod evidence_reads;
mod evidence_trust;
mod evidence_works;
mod imports;
mod leases;
mod logged;
mod mined;
mod people;
mod policies;
mod profile_bounds;
mod profiles;
mod prompts;
mod queue_stats;
mod rulings;
mod second_reviewers;
mod standings;
mod store_contract;
mod undo;
mod votes;
mod watching;
mod windows;
pub(crate) mod world;

/// Runs each of these tests on SQLite and on PostgreSQL.
macro_rules! on_both_databases {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::$test(&crate::tests::world::World::sqlite()).await;
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    if let Some(world) = crate::tests::world::World::postgres().await {
                        super::$test(&world).await;
                    }
                }
            )+
        }
    };
}
pub(crate) use on_both_databases;
