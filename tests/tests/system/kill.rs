//! Either service killed without warning under load, a few times: every acknowledged feedback is stored and evaluated
//! exactly once, and nodes equal the database.

use emend_tests::harness::{Dice, Subscriber, deployment::Deployment, load::Load, node::Node};

const ROUNDS: usize = 6;
const WRITERS: usize = 8;

async fn killed_under_load(mut deployment: Deployment, seed: u64) {
    let dice = Dice::seeded(seed);
    let node = Node::start(deployment.learning.front.address(), "search-1").await;
    let load = Load::start((0..WRITERS).map(|_| deployment.feedback()));
    for _ in 0..ROUNDS {
        load.goes_on_by(1 + dice.below(150)).await;
        if dice.chance(0.5) {
            deployment.feedback.kill().await;
            deployment.start_feedback().await;
        } else {
            deployment.learning.kill().await;
            deployment.start_learning().await;
        }
    }
    load.goes_on_by(1 + dice.below(150)).await;
    deployment.feedback.kill().await;
    deployment.learning.kill().await;
    deployment.start_learning().await;
    deployment.start_feedback().await;
    load.goes_on_by(1).await;

    let learning = deployment.learning();
    let head = load
        .ends_with_all_counted_once(&deployment.feedback(), &learning)
        .await;
    let database = deployment.stored().resources().await;
    let mut subscriber = Subscriber::of_everything("late");
    subscriber.begin(&learning.channel).await;
    subscriber.until(head).await;
    assert_eq!(*subscriber.held(), database);
    node.until(head).await;
    node.assert_answers_by(&database, &[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_counted_twice_on_sqlite() {
    killed_under_load(Deployment::sqlite().await, 11).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_counted_twice_on_postgresql() {
    if let Some(deployment) = Deployment::postgres().await {
        killed_under_load(deployment, 12).await;
    }
}
