//! A synonym filter of an OpenSearch index.
//!
//! Its synonyms are in the index's settings, which can be changed only while the index is closed: searches fail meanwhile, so that it
//! is done in a window that the operator allows. That the index was closed is noted on disk before it is, and whoever finds
//! the note opens it again. Or they are in a file that the engine reads again when its search analyzers are refreshed, by a plugin
//! that closes nothing.

mod analysis;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use emend_base::http_client::{Client, ErrorKind, ServiceError};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use self::analysis::Filter;
use super::{
    config::{Format, OpenSearchConfig},
    content::{Entries, Seen, Stamp, Wanted},
    error::SinkError,
    fail_points,
    file::{TextFile, blocking},
    http::{PATIENCE, part},
    selection::{Selection, What},
    synonyms::{self, PROBE},
    target::Target,
};

/// What the engine refuses of a rule.
#[derive(Debug, Clone)]
struct Refusal {
    /// What would be searched for in the term's place; `None`: the term.
    other: Option<String>,
    words: String,
}

/// A synonym filter.
pub(super) struct OpenSearch {
    config: OpenSearchConfig,
    /// There while the index may be closed by this sink.
    note: Option<PathBuf>,
    /// What the engine says of each rule.
    judged: BTreeMap<String, Vec<Refusal>>,
}

impl OpenSearch {
    pub(super) fn new(config: OpenSearchConfig, note: Option<PathBuf>) -> Self {
        Self {
            config,
            note,
            judged: BTreeMap::new(),
        }
    }

    fn client(&self) -> Result<Client<'static>, SinkError> {
        self.config.access.client("OpenSearch", PATIENCE)
    }

    fn path(&self, what: &str) -> String {
        format!("/{}/{what}", part(&self.config.index))
    }

    fn file(&self) -> Option<TextFile> {
        Some(TextFile {
            path: self.config.file.clone()?,
            format: Format::Solr,
        })
    }

    /// The filter as the index's settings have it.
    async fn filter(&self, client: &Client<'static>) -> Result<Filter, SinkError> {
        let index = &self.config.index;
        let settings = client.get::<Value>(&self.path("_settings")).await;
        let settings = settings.map_err(|error| match error.kind {
            ErrorKind::NotFound => SinkError::refused(format!(
                "OpenSearch has no index {index:?}: make it, or see index and address of the sink"
            )),
            _ => error.into(),
        })?;
        Filter::of(&settings, &self.config.index, &self.config.filter)
    }

    /// Opens the index if this sink closed it.
    async fn reopen(&self, client: &Client<'static>) -> Result<(), SinkError> {
        let Some(note) = self.note.clone().filter(|note| note.exists()) else {
            return Ok(());
        };
        let _: Value = client
            .send(Method::POST, &self.path("_open?wait_for_active_shards=1"), None)
            .await?;
        blocking(&note.clone(), move || remove(&note)).await
    }

    /// Closes the index, changes its settings, and opens it again, whether or not they are taken.
    async fn change(&self, client: &Client<'static>, settings: Option<&Value>) -> Result<(), SinkError> {
        let Some(note) = self.note.clone() else {
            return Err(SinkError::refused(
                "the index would have to be closed, for which window must be given",
            ));
        };
        let index = self.config.index.clone();
        blocking(&note.clone(), move || {
            fs::write(&note, format!("{index} was closed to change its synonyms\n"))?;
            fs::File::open(&note)?.sync_all()
        })
        .await?;
        fail_points::NOTED.pass();
        let changed = async {
            let _: Value = client.send(Method::POST, &self.path("_close"), None).await?;
            fail_points::CLOSED.pass();
            if let Some(settings) = settings {
                let _: Value = client
                    .send(Method::PUT, &self.path("_settings"), Some(settings))
                    .await?;
            }
            fail_points::WRITTEN.pass();
            Ok(())
        }
        .await;
        self.reopen(client).await?;
        fail_points::LOADED.pass();
        changed
    }

    /// Has the engine read the file again: by the plugin that does so, or by closing the index where that may be.
    async fn refresh(&self, client: &Client<'static>) -> Result<(), SinkError> {
        let path = format!("/_plugins/_refresh_search_analyzers/{}", part(&self.config.index));
        let refreshed = client.send::<Value>(Method::POST, &path, None).await;
        match refreshed {
            Ok(_) => {
                fail_points::LOADED.pass();
                Ok(())
            }
            Err(error) if self.note.is_some() && knows_no_refresh(&error) => self.change(client, None).await,
            Err(error) => Err(error.into()),
        }
    }
}

impl Target for OpenSearch {
    fn selection(&self, namespaces: &[String]) -> Selection {
        Selection {
            namespaces: namespaces.to_owned(),
            what: What::Synonyms,
        }
    }

    /// Has the engine read each new rule as it will read all of them: while the index is closed is no time to learn that it refuses
    /// one.
    async fn accept(&mut self, wanted: &mut Wanted) -> Result<(), SinkError> {
        let entries = wanted.synonyms().clone();
        let rules: BTreeMap<String, &String> = entries
            .iter()
            .map(|(term, all)| (synonyms::rule(term, all), term))
            .collect();
        self.judged.retain(|rule, _| rules.contains_key(rule));
        let new: Vec<(&str, &str)> = rules
            .iter()
            .filter(|(rule, _)| !self.judged.contains_key(*rule))
            .map(|(rule, term)| (rule.as_str(), term.as_str()))
            .collect();
        if !new.is_empty() {
            let client = self.client()?;
            self.reopen(&client).await?;
            let reading = Reading {
                filter: self.filter(&client).await?,
                path: self.path("_analyze"),
                client,
            };
            let refused = reading.refused(&new, &entries, &wanted.stamp()).await?;
            for (rule, _) in new {
                self.judged.insert(rule.to_owned(), Vec::new());
            }
            self.judged.extend(refused);
            fail_points::ACCEPTED.pass();
        }
        for (rule, refusals) in &self.judged {
            let Some(term) = rules.get(rule) else { continue };
            for Refusal { other, words } in refusals {
                match other {
                    Some(other) => wanted.refuse_in(term, other, words),
                    None => wanted.refuse(term, words),
                }
            }
        }
        Ok(())
    }

    async fn read(&mut self, _wanted: &Wanted) -> Result<Seen, SinkError> {
        let client = self.client()?;
        self.reopen(&client).await?;
        if let Some(file) = self.file() {
            return file.seen().await;
        }
        let filter = self.filter(&client).await?;
        Ok(filter.seen())
    }

    fn wait(&self, now: Timestamp) -> Option<Duration> {
        self.config.window?.wait(now)
    }

    async fn write(&mut self, wanted: &Wanted) -> Result<(), SinkError> {
        let client = self.client()?;
        if let Some(file) = self.file() {
            file.write(wanted).await?;
            return self.refresh(&client).await;
        }
        let name = format!("index.analysis.filter.{}.synonyms", self.config.filter);
        let rules = synonyms::rules(wanted.synonyms(), &wanted.stamp());
        let changed = self.change(&client, Some(&json!({name: rules}))).await;
        if changed.is_err() {
            // The index may be another than the one that read the rules: the next one reads all of them.
            self.judged.clear();
        }
        changed
    }

    async fn load(&mut self, _wanted: &Wanted) -> Result<(), SinkError> {
        let client = self.client()?;
        if self.file().is_some() {
            return self.refresh(&client).await;
        }
        // An index that is open answers by its settings.
        self.change(&client, None).await
    }

    /// Every shard tells into what it parses a query, and a search for it fails on none.
    async fn probe(&mut self, wanted: &Wanted) -> Result<bool, SinkError> {
        let client = self.client()?;
        let query = json!({"query": {"match": {&self.config.field: {"query": PROBE}}}});
        let path = self.path("_validate/query?explain=true&all_shards=true");
        let told: Value = client.post(&path, &query).await?;
        let explained = told.get("explanations").and_then(Value::as_array);
        let is_right = explained.is_some_and(|shards| {
            !shards.is_empty()
                && shards.iter().all(|shard| {
                    let text = shard.get("explanation").and_then(Value::as_str);
                    text.is_some_and(|text| text.contains(wanted.mark.as_str()))
                })
        });
        if !is_right {
            return Ok(false);
        }
        let found: Value = client.post(&self.path("_search?size=0"), &query).await?;
        Ok(found.pointer("/_shards/failed").and_then(Value::as_i64) == Some(0))
    }
}

/// Has the engine read rules that are not in the index yet.
struct Reading {
    client: Client<'static>,
    filter: Filter,
    path: String,
}

/// What the engine makes of rules that it reads.
enum Judged {
    /// It takes them.
    Taken,
    /// It can build no synonyms of them, in its words.
    Refused(String),
    /// They are too many for one request.
    TooMany(ServiceError),
}

impl Reading {
    /// Whether the engine takes these rules. Only its own word on them counts: whatever else it answers says nothing of a rule.
    async fn judge(&self, rules: &[&str]) -> Result<Judged, SinkError> {
        let read = self
            .client
            .post::<Value>(&self.path, &self.filter.reading(rules))
            .await;
        match read {
            Ok(_) => Ok(Judged::Taken),
            Err(error) if is_of_rules(&error) => Ok(Judged::Refused(error.to_string())),
            Err(error) if error.kind == ErrorKind::Refused(413) => Ok(Judged::TooMany(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Why the engine refuses one rule; `None`: it takes it.
    async fn refusal(&self, rule: &str) -> Result<Option<String>, SinkError> {
        match self.judge(&[rule]).await? {
            Judged::Taken => Ok(None),
            Judged::Refused(words) => Ok(Some(words)),
            Judged::TooMany(error) => Err(error.into()),
        }
    }

    /// What it refuses of these rules, each with its term. They are halved wherever they are refused, until it is known which.
    async fn refused(
        &self,
        rules: &[(&str, &str)],
        entries: &Entries,
        stamp: &Stamp,
    ) -> Result<BTreeMap<String, Vec<Refusal>>, SinkError> {
        let mut refused = BTreeMap::new();
        let mut due = vec![rules];
        let mut takes_any = false;
        while let Some(part) = due.pop() {
            let texts: Vec<&str> = part.iter().map(|(rule, _)| *rule).collect();
            let words = match (self.judge(&texts).await?, part.len()) {
                (Judged::Taken, _) => continue,
                (Judged::TooMany(error), 1) => return Err(error.into()),
                (Judged::TooMany(_), _) => None,
                (Judged::Refused(words), _) => Some(words),
            };
            if let Some(words) = &words
                && !takes_any
            {
                // A filter that takes not even the probe's rule is at fault, and no rule.
                let (term, all) = synonyms::probe(stamp);
                if self.refusal(&synonyms::rule(&term, &all)).await?.is_some() {
                    return Err(SinkError::refused(format!(
                        "the filter takes no synonyms at all, not even {term:?}: {words}"
                    )));
                }
                takes_any = true;
            }
            if let ([(rule, term)], Some(words)) = (part, words) {
                let refusals = match entries.get(*term) {
                    Some(all) => self.refused_of(term, all, words).await?,
                    None => Vec::new(),
                };
                refused.insert((*rule).to_owned(), refusals);
            } else {
                let (one, other) = part.split_at(part.len() / 2);
                due.extend([one, other]);
            }
        }
        Ok(refused)
    }

    /// What it refuses of one rule: the term, or some of what would be searched for in its place.
    async fn refused_of(
        &self,
        term: &str,
        all: &BTreeSet<String>,
        words: String,
    ) -> Result<Vec<Refusal>, SinkError> {
        let of = |other: &str| synonyms::rule(term, &BTreeSet::from([other.to_owned()]));
        let whole = |words| Ok(vec![Refusal { other: None, words }]);
        if let Some(words) = self.refusal(&of(term)).await? {
            return whole(words);
        }
        let mut refusals = Vec::new();
        for other in all.iter().filter(|other| *other != term) {
            if let Some(words) = self.refusal(&of(other)).await? {
                refusals.push(Refusal {
                    other: Some(other.clone()),
                    words,
                });
            }
        }
        if refusals.is_empty() {
            return whole(words);
        }
        Ok(refusals)
    }
}

/// Whether the engine says that it can build no synonyms of the rules that it was sent.
fn is_of_rules(error: &ServiceError) -> bool {
    let says_so = |answer: &Value| {
        [
            "/error/reason",
            "/error/root_cause/0/reason",
            "/error/caused_by/reason",
        ]
        .iter()
        .filter_map(|place| answer.pointer(place)?.as_str())
        .any(|reason| reason.eq_ignore_ascii_case("failed to build synonyms"))
    };
    error.kind == ErrorKind::Refused(400) && error.answer.as_deref().is_some_and(says_so)
}

/// Whether the engine says that it knows no refresh of search analyzers: the plugin is missing.
fn knows_no_refresh(error: &ServiceError) -> bool {
    let says_so = |answer: &Value| {
        let words = answer.get("error").and_then(Value::as_str);
        words.is_some_and(|words| words.starts_with("no handler found"))
    };
    match error.kind {
        ErrorKind::Refused(405) => true,
        ErrorKind::Refused(400) => error.answer.as_deref().is_some_and(says_so),
        _ => false,
    }
}

fn remove(note: &Path) -> io::Result<()> {
    match fs::remove_file(note) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
