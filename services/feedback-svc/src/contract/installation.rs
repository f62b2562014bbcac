//! What every store must remember of installations.

use emend_core::InstallationId;
use feedback_store::{ports::InstallationState, testing::TestStore};
use uuid::Uuid;

contract! {
    a_database_is_empty_until_it_is_initialised
    the_first_installation_is_remembered_until_another_is_accepted
}

async fn a_database_is_empty_until_it_is_initialised(database: &TestStore) {
    assert_eq!(database.store.installation().await.unwrap(), None);
    for _ in 0..2 {
        database.store.begin().await.unwrap();
        let begun = database.store.installation().await.unwrap();
        assert_eq!(begun, Some(InstallationState { delivers_to: None }));
    }
}

async fn the_first_installation_is_remembered_until_another_is_accepted(database: &TestStore) {
    let [first, other] = [1, 2].map(|number| InstallationId(Uuid::from_u128(number)));
    database.store.begin().await.unwrap();
    let replica = database.replica().await;
    for (store, answering) in [(&database.store, first), (&replica, other), (&replica, first)] {
        assert_eq!(store.deliver_to(answering).await.unwrap(), first);
    }
    // Starting again changes nothing.
    database.store.begin().await.unwrap();
    let known = |delivers_to| Some(InstallationState { delivers_to });
    assert_eq!(database.store.installation().await.unwrap(), known(Some(first)));

    replica.accept(other).await.unwrap();
    assert_eq!(database.store.installation().await.unwrap(), known(Some(other)));
    assert_eq!(database.store.deliver_to(first).await.unwrap(), other);
    replica.close().await;
}
