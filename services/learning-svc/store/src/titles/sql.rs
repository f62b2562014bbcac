//! Titles in SQL.

use async_trait::async_trait;
use emend_core::Namespace;
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::{
    rows::At,
    titles::{Title, TitleRepository},
    work::Work,
};

#[async_trait]
impl TitleRepository for Work {
    async fn title(&mut self, namespace: &Namespace) -> Result<Option<Title>, StoreError> {
        let mut query = Statement::new("SELECT title, updated_at FROM namespace_titles WHERE namespace = ");
        query.push_bind(namespace.as_str());
        let found = self.rows::<(String, i64)>(query).await?.pop();
        let at = At {
            table: "namespace_titles",
            id: namespace,
        };
        let title = found.map(|(text, updated_at)| {
            Ok(Title {
                text,
                updated_at: at.time("updated_at", updated_at)?,
            })
        });
        title.transpose()
    }

    async fn save_title(&mut self, namespace: &Namespace, text: &str) -> Result<(), StoreError> {
        let mut query =
            Statement::new("INSERT INTO namespace_titles (namespace, title, updated_at) VALUES (");
        query.push_bind(namespace.as_str()).push(", ");
        query.push_bind(text.to_owned());
        query.push(
            ", (SELECT now FROM database_clock)) ON CONFLICT (namespace) \
             DO UPDATE SET title = excluded.title, updated_at = excluded.updated_at",
        );
        self.run(query).await?;
        Ok(())
    }
}
