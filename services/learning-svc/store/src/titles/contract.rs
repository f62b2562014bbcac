//! The contract of titles on both databases.

use emend_core::Namespace;

use crate::{
    Database as _,
    testing::{TestDatabase, on_both},
};

async fn a_title_replaces_the_one_before_and_is_its_namespaces_own(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    let [one, other] = ["one", "other"].map(|name| Namespace::parse(name).unwrap());
    let mut since = None;
    for text in ["Research", "Résumés"] {
        let mut tx = store.begin_whole().await.unwrap();
        tx.titles().save_title(&one, text).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = store.begin_whole().await.unwrap();
        let title = tx.titles().title(&one).await.unwrap().unwrap();
        assert_eq!(title.text, text);
        assert!(since < Some(title.updated_at), "it was given later");
        since = Some(title.updated_at);
        assert_eq!(tx.titles().title(&other).await.unwrap(), None);
    }
}

on_both! {
    a_title_replaces_the_one_before_and_is_its_namespaces_own,
}
