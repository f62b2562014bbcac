//! Reading the log of revisions.

use std::time::Duration;

use emend_binding::{Client, Error};
use emend_client::proto::common::v1::ResourceKey;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::sinks::{
    content::Mark,
    error::{Problem, SinkError},
};

/// How many revisions are read at once.
const PAGE: u32 = 50;
const DEADLINE: Duration = Duration::from_mins(1);
const METHOD: &str = "ResourceService/ListRevisions";

/// The log, as learning-svc lists it: the newest revision first.
pub(super) struct Log(pub(super) Client);

/// A page of the list.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    pub(super) revisions: Vec<Listed>,
    #[serde(default)]
    pub(super) next_page_token: String,
    /// The token that it was read with.
    #[serde(skip)]
    pub(super) token: String,
}

/// A revision.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Listed {
    pub(super) revision: i64,
    pub(super) committed_at: String,
    continues: bool,
    value: Value,
}

/// A revision, or a part of one whose changes are too many for one message.
#[derive(Debug)]
pub(super) struct Part(pub(super) Value);

impl TryFrom<Value> for Listed {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let revision = value.get("revision").and_then(number);
        let committed_at = value.get("committed_at").and_then(Value::as_str);
        Ok(Self {
            revision: revision.ok_or("a revision without its number")?,
            committed_at: committed_at.unwrap_or_default().to_owned(),
            continues: value.get("changes_continue") == Some(&Value::Bool(true)),
            value,
        })
    }
}

/// A number of 64 bits, which JSON may have as a text.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

impl Page {
    /// When the revision of this number was committed, if it is on the page.
    pub(super) fn committed_at(&self, revision: i64) -> Option<String> {
        let listed = self.revisions.iter().find(|listed| listed.revision == revision);
        listed.map(|listed| listed.committed_at.clone())
    }

    /// The token of the next page, if that may have revisions above this one.
    pub(super) fn next_above(&self, revision: i64) -> Option<String> {
        let last = self.revisions.last()?;
        let has_more = !self.next_page_token.is_empty() && last.revision > revision;
        has_more.then(|| self.next_page_token.clone())
    }
}

impl Part {
    /// The same of a revision as it is listed, without what depends on when that is: a repeat says the same.
    fn of(listed: Listed) -> Self {
        let mut value = listed.value;
        let changes = value.get_mut("changes").and_then(Value::as_array_mut);
        for change in changes.into_iter().flatten() {
            if let Some(change) = change.as_object_mut() {
                change.remove("changed_since");
            }
        }
        Self(value)
    }

    /// What it is, as one word: of which revision, which changes and to which values. The same where the log no longer keeps a
    /// value, another where anything else differs.
    pub(super) fn content(&self) -> Mark {
        let text = |value: Option<&Value>| value.map(ToString::to_string).unwrap_or_default();
        let mut lines = vec![text(self.0.get("revision")), text(self.0.get("committed_at"))];
        let changes = self.0.get("changes").and_then(Value::as_array);
        for change in changes.into_iter().flatten() {
            lines.push(text(change.get("key")));
            lines.push(text(change.get("after_checksum")));
        }
        Mark::of(lines.iter().map(String::as_str))
    }

    /// The key of its first change.
    pub(super) fn first_key(&self, namespace: &str) -> ResourceKey {
        let text = |name: &str| {
            let field = self.0.pointer(&format!("/changes/0/key/{name}"));
            field.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let kind = emend_client::proto::common::v1::ResourceKind::from_str_name(&text("kind"));
        ResourceKey {
            namespace: namespace.to_owned(),
            kind: kind.map_or(0, |kind| kind as i32),
            key: text("key"),
            qualifier: text("qualifier"),
            user_id: text("user_id"),
        }
    }
}

impl Log {
    /// A page of a search application's revisions.
    pub(super) async fn page(&self, namespace: &str, token: &str) -> Result<Page, SinkError> {
        self.read(
            json!({"namespace": namespace, "page_size": PAGE, "page_token": token}),
            token,
        )
        .await
    }

    /// A revision of a page, in parts where it is too large for one message. The first of a page may be the rest of one that
    /// began on the page before.
    pub(super) async fn parts(
        &self,
        namespace: &str,
        page: &Page,
        listed: &Listed,
    ) -> Result<Vec<Part>, SinkError> {
        let is_first = page
            .revisions
            .first()
            .is_some_and(|first| first.revision == listed.revision);
        let is_whole = !listed.continues && (page.token.is_empty() || !is_first);
        if is_whole {
            return Ok(vec![Part::of(listed.clone())]);
        }
        let mut parts = Vec::new();
        let mut token = String::new();
        loop {
            let request = json!({
                "namespace": namespace,
                "revision": listed.revision,
                "page_token": token,
            });
            let page = self.read(request, &token).await?;
            parts.extend(page.revisions.into_iter().map(Part::of));
            token = page.next_page_token;
            if token.is_empty() {
                return Ok(parts);
            }
        }
    }

    async fn read(&self, request: Value, token: &str) -> Result<Page, SinkError> {
        let answer = self.0.call(METHOD, &request.to_string(), Some(DEADLINE)).await;
        let answer = answer.map_err(|error| failure(&error))?;
        let mut page: Page = serde_json::from_str(&answer)
            .map_err(|error| SinkError::refused(format!("revisions can't be read: {error}")))?;
        token.clone_into(&mut page.token);
        Ok(page)
    }
}

fn failure(error: &Error) -> SinkError {
    let problem = match error.code {
        "UNAVAILABLE" | "DEADLINE_EXCEEDED" | "RESOURCE_EXHAUSTED" | "ABORTED" | "CANCELLED" => Problem::Away,
        _ => Problem::Refused,
    };
    SinkError {
        problem,
        ..SinkError::refused(format!("revisions can't be read: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(revision: i64, committed_at: &str, change: &Value) -> Part {
        let listed = json!({"revision": revision, "committed_at": committed_at, "changes": [change]});
        Part::of(serde_json::from_value(listed).unwrap())
    }

    #[test]
    fn a_repeat_has_the_same_word_and_no_other_content_has_it() {
        let change = |checksum: &str| json!({"key": {"key": "fund"}, "after": {"alias": {}}, "after_checksum": checksum});
        let first = part(7, "noon", &change("1"));
        let mut later = change("1");
        later["changed_since"] = json!(true);
        let repeat = part(7, "noon", &later);
        assert_eq!((&first.0, first.content()), (&repeat.0, repeat.content()));
        let mut dropped = change("1");
        dropped["after"].take();
        dropped["value_dropped"] = json!(true);
        assert_eq!(part(7, "noon", &dropped).content(), first.content());
        let mut other_key = change("1");
        other_key["key"]["key"] = json!("bond");
        for other in [
            part(8, "noon", &change("1")),
            part(7, "midnight", &change("1")),
            part(7, "noon", &change("2")),
            part(7, "noon", &other_key),
        ] {
            assert_ne!(other.content(), first.content());
        }
    }
}
