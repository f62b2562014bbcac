//! What `edge.toml` says of a sink.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use emend_binding::Error;
use emend_client::Namespace;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::http::Access;

/// The longest time that a setting may name, in seconds: a day.
const LONGEST: f64 = 86_400.0;
/// How often what is there is read again, in seconds, unless something else is said.
const CHECK: f64 = 60.0;
const MINUTES_OF_DAY: u32 = 24 * 60;

/// What is said of every sink.
const COMMON: [&str; 7] = ["kind", "name", "namespaces", "what", "pace", "check", "on_drift"];
const ACCESS: [&str; 5] = ["address", "user", "password_file", "token_file", "ca"];

/// A sink.
#[derive(Debug, Clone)]
pub struct SinkConfig {
    pub(super) common: Common,
    pub(super) target: TargetConfig,
}

/// What every sink has.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Common {
    kind: Kind,
    name: String,
    /// The search applications whose state it keeps.
    pub(super) namespaces: Vec<String>,
    what: Option<WhatName>,
    pace: Option<f64>,
    #[serde(default = "default_check")]
    check: f64,
    /// What is done where somebody else changed the set.
    #[serde(default)]
    pub(super) on_drift: OnDrift,
}

/// Where a sink keeps something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    File,
    Solr,
    OpenSearch,
    Webhook,
}

/// What a sink keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WhatName {
    Synonyms,
    Domains,
    Prompts,
    Revisions,
}

impl FromStr for WhatName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "synonyms" => Self::Synonyms,
            "domains" => Self::Domains,
            "prompts" => Self::Prompts,
            "revisions" => Self::Revisions,
            other => {
                return Err(format!(
                    "what: must be synonyms (file, solr, opensearch), domains or prompts (file), or revisions (webhook), is {other:?}; \
                     whatever else is learned, tunings too, a webhook delivers, and the edge answers"
                ));
            }
        })
    }
}

impl<'de> Deserialize<'de> for WhatName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// What is done where somebody else changed the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnDrift {
    /// It is put right.
    #[default]
    Restore,
    /// It is left so, and reported.
    Leave,
}

/// Where a sink keeps its set.
#[derive(Debug, Clone)]
pub(super) enum TargetConfig {
    File(FileConfig),
    Solr(SolrConfig),
    OpenSearch(OpenSearchConfig),
    Webhook(WebhookConfig),
}

/// A file, or a directory of prompts.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct FileConfig {
    /// Where it is.
    pub(super) path: PathBuf,
    format: Option<Format>,
    /// The label under which prompts are current.
    #[serde(default = "production")]
    pub(super) label: String,
    /// What runs after it was written: a program and its arguments.
    #[serde(default)]
    pub(super) command: Vec<String>,
    /// The format; `None`: prompts.
    #[serde(skip)]
    pub(super) of_text: Option<Format>,
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    /// Synonyms as Solr, Lucene, OpenSearch and Elasticsearch read them.
    Solr,
    /// Synonyms as a JSON object.
    Json,
    /// Domains, one a line.
    Plain,
    /// Domains as a hosts file blocks them.
    Hosts,
    /// Domains as the extension uBlacklist reads them.
    Ublacklist,
}

/// A managed set of synonyms in Solr.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SolrConfig {
    #[serde(flatten)]
    pub(super) access: Access,
    /// The core; none: a collection.
    pub(super) core: Option<String>,
    /// The collection, of `SolrCloud`.
    pub(super) collection: Option<String>,
    /// The managed set, which is the sink's own.
    #[serde(default = "emend")]
    pub(super) set: String,
    /// The field that the probe query asks.
    pub(super) field: String,
}

/// A synonym filter in the settings of an OpenSearch index, or its file.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct OpenSearchConfig {
    #[serde(flatten)]
    pub(super) access: Access,
    /// The index.
    pub(super) index: String,
    /// The filter, whose synonyms are the sink's own.
    #[serde(default = "emend")]
    pub(super) filter: String,
    /// The field that the probe query asks.
    pub(super) field: String,
    /// When the index may be closed; none: never.
    pub(super) window: Option<Window>,
    /// The file that the filter reads, on a path shared with the engine; none: synonyms are in the settings.
    pub(super) file: Option<PathBuf>,
}

/// A receiver of revisions.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct WebhookConfig {
    #[serde(flatten)]
    pub(super) access: Access,
    /// The file with the secret that signs what is sent.
    pub(super) secret_file: PathBuf,
    /// The revision after which it begins, where nothing is known of it.
    #[serde(default)]
    pub(super) after: i64,
}

/// When an index may be closed: always, or daily from one minute of the day, in UTC, until another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Window {
    Always,
    Daily { from: u32, until: u32 },
}

fn default_check() -> f64 {
    CHECK
}

fn production() -> String {
    "production".to_owned()
}

fn emend() -> String {
    "emend".to_owned()
}

impl<'de> Deserialize<'de> for SinkConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = toml::Table::deserialize(deserializer)?;
        Self::of(&table).map_err(D::Error::custom)
    }
}

impl SinkConfig {
    fn of(table: &toml::Table) -> Result<Self, String> {
        let common: Common = read(table)?;
        let (own, has_access): (&[&str], bool) = match common.kind {
            Kind::File => (&["path", "format", "label", "command"], false),
            Kind::Solr => (&["core", "collection", "set", "field"], true),
            Kind::OpenSearch => (&["index", "filter", "field", "window", "file"], true),
            Kind::Webhook => (&["secret_file", "after"], true),
        };
        let access: &[&str] = if has_access { &ACCESS } else { &[] };
        let known = || COMMON.iter().chain(access).chain(own);
        if let Some(unknown) = table.keys().find(|key| !known().any(|known| known == key)) {
            let known: Vec<&str> = known().copied().collect();
            return Err(format!(
                "{unknown}: is no setting of this kind of sink, which has {}",
                known.join(", ")
            ));
        }
        common.check_values()?;
        let target = match common.kind {
            Kind::File => TargetConfig::File(FileConfig::checked(read(table)?, common.what)?),
            Kind::Solr => TargetConfig::Solr(SolrConfig::checked(read(table)?)?),
            Kind::OpenSearch => TargetConfig::OpenSearch(OpenSearchConfig::checked(read(table)?)?),
            Kind::Webhook => TargetConfig::Webhook(WebhookConfig::checked(read(table)?)?),
        };
        let keeps = match common.kind {
            Kind::File => None,
            Kind::Solr | Kind::OpenSearch => Some((WhatName::Synonyms, "synonyms")),
            Kind::Webhook => Some((WhatName::Revisions, "revisions")),
        };
        if let (Some(what), Some((kept, name))) = (common.what, keeps)
            && what != kept
        {
            return Err(format!("what: must be {name:?} for this kind of sink"));
        }
        Ok(Self { common, target })
    }

    /// Its id as a node.
    pub(crate) fn id(&self) -> String {
        format!("{}:{}", self.target.name(), self.common.name)
    }
}

fn read<T: for<'de> Deserialize<'de>>(table: &toml::Table) -> Result<T, String> {
    let table = toml::Value::Table(table.clone());
    table
        .try_into()
        .map_err(|error| error.to_string().trim().replace('\n', " "))
}

impl Common {
    fn check_values(&self) -> Result<(), String> {
        let is_name = (1..=64).contains(&self.name.len())
            && self
                .name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
        if !is_name {
            return Err("name: must be 1 to 64 characters of [A-Za-z0-9._-]".into());
        }
        if self.namespaces.is_empty() {
            return Err("namespaces: must have at least one search application".into());
        }
        for (place, namespace) in self.namespaces.iter().enumerate() {
            Namespace::parse(namespace).map_err(|error| format!("namespaces[{place}]: {error}"))?;
        }
        for (name, seconds) in [("pace", self.pace.unwrap_or_default()), ("check", self.check)] {
            if !(0.0..=LONGEST).contains(&seconds) || (name == "check" && seconds < 0.1) {
                return Err(format!("{name}: must be at most {LONGEST} seconds, is {seconds}"));
            }
        }
        if self.pace.is_some() && self.kind == Kind::Webhook {
            return Err("pace: a webhook has none: every revision is delivered".into());
        }
        Ok(())
    }

    /// The least time between two times that a set is written and loaded.
    pub(super) fn pace(&self) -> Duration {
        let default = match self.kind {
            Kind::File | Kind::Webhook => 1.0,
            Kind::Solr => 30.0,
            Kind::OpenSearch => 300.0,
        };
        Duration::from_secs_f64(self.pace.unwrap_or(default))
    }

    /// How often what is there is read again.
    pub(super) fn check(&self) -> Duration {
        Duration::from_secs_f64(self.check)
    }
}

impl FileConfig {
    fn checked(mut self, what: Option<WhatName>) -> Result<Self, String> {
        let what = what.ok_or("what: must be synonyms, domains or prompts")?;
        self.of_text = match (what, self.format) {
            (WhatName::Synonyms, None) => Some(Format::Solr),
            (WhatName::Domains, None) => Some(Format::Plain),
            (WhatName::Prompts, None) => None,
            (WhatName::Synonyms, Some(format @ (Format::Solr | Format::Json)))
            | (WhatName::Domains, Some(format @ (Format::Plain | Format::Hosts | Format::Ublacklist))) => {
                Some(format)
            }
            (WhatName::Synonyms, _) => return Err("format: must be solr or json for synonyms".into()),
            (WhatName::Domains, _) => {
                return Err("format: must be plain, hosts or ublacklist for domains".into());
            }
            (WhatName::Prompts, _) => return Err("format: prompts have none".into()),
            (WhatName::Revisions, _) => return Err("what: must be synonyms, domains or prompts".into()),
        };
        if self.path.file_name().is_none() {
            return Err("path: must name a file, or a directory for prompts".into());
        }
        Ok(self)
    }
}

impl SolrConfig {
    fn checked(self) -> Result<Self, String> {
        self.access.check()?;
        if self.core.is_some() == self.collection.is_some() {
            return Err("core: must be given, or collection for SolrCloud, and not both".into());
        }
        Ok(self)
    }
}

impl OpenSearchConfig {
    fn checked(self) -> Result<Self, String> {
        self.access.check()?;
        if self.window.is_none() && self.file.is_none() {
            return Err(
                "window: must say when the index may be closed, as \"02:00-04:00\" in UTC or \"always\"; or file, \
                 where the engine's refresh of search analyzers reads it"
                    .into(),
            );
        }
        Ok(self)
    }
}

impl WebhookConfig {
    fn checked(self) -> Result<Self, String> {
        self.access.check()?;
        if self.after < 0 {
            return Err(format!("after: must be a revision, 0 or more, is {}", self.after));
        }
        Ok(self)
    }
}

impl TargetConfig {
    /// The name of its kind.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Solr(_) => "solr",
            Self::OpenSearch(_) => "opensearch",
            Self::Webhook(_) => "webhook",
        }
    }

    /// The kinds of resources that it follows; none: all.
    pub(super) fn kinds(&self) -> Vec<String> {
        let kind = match self {
            Self::File(file) => match file.of_text {
                None => "prompt",
                Some(Format::Solr | Format::Json) => "synonym",
                Some(Format::Plain | Format::Hosts | Format::Ublacklist) => "domain_rule",
            },
            Self::Solr(_) | Self::OpenSearch(_) => "synonym",
            Self::Webhook(_) => return Vec::new(),
        };
        vec![kind.to_owned()]
    }

    /// The file in which it notes what it must know after a restart, in the directory of the node's copy.
    pub(super) fn note(&self, id: &str, cache_dir: Option<&Path>) -> Result<Option<PathBuf>, Error> {
        let why = match self {
            Self::OpenSearch(config) if config.window.is_some() => {
                "the sink notes there that it closed an index"
            }
            Self::Webhook(_) => "the sink keeps there which revision was delivered last",
            Self::File(_) | Self::Solr(_) | Self::OpenSearch(_) => return Ok(None),
        };
        let directory = cache_dir
            .ok_or_else(|| Error::of_field("node.cache_dir", format!("must be given for {id}: {why}")))?;
        Ok(Some(directory.join(format!("{id}.note"))))
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "always" {
            return Ok(Self::Always);
        }
        let minute = |text: &str| {
            let (hour, minute) = text.split_once(':')?;
            let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
            (hour < 24 && minute < 60).then_some(hour * 60 + minute)
        };
        text.split_once('-')
            .and_then(|(from, until)| {
                let (from, until) = (minute(from)?, minute(until)?);
                (from != until).then_some(Self::Daily { from, until })
            })
            .ok_or_else(|| format!("must be \"always\" or times in UTC as \"02:00-04:00\", is {text:?}"))
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

impl Window {
    /// How long until it opens, from this moment; none: it is open.
    pub(super) fn wait(self, now: Timestamp) -> Option<Duration> {
        let Self::Daily { from, until } = self else {
            return None;
        };
        let of_day = now.as_second().rem_euclid(i64::from(MINUTES_OF_DAY) * 60);
        let second = u32::try_from(of_day).unwrap_or_default();
        let minute = second / 60;
        let is_open = if from < until {
            (from..until).contains(&minute)
        } else {
            minute >= from || minute < until
        };
        let to_go = (from * 60 + MINUTES_OF_DAY * 60 - second) % (MINUTES_OF_DAY * 60);
        (!is_open).then(|| Duration::from_secs(to_go.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(lines: &str) -> String {
        let table = format!("name = \"a\"\nnamespaces = [\"shop\"]\n{lines}");
        SinkConfig::of(&table.parse().unwrap()).unwrap_err()
    }

    #[test]
    fn what_is_wrong_with_a_sink_is_named() {
        for (lines, named) in [
            ("kind = \"ftp\"", "ftp"),
            (
                "kind = \"file\"\nwhat = \"synonyms\"\npath = \"/a\"\ncore = \"x\"",
                "core: is no setting",
            ),
            ("kind = \"file\"\npath = \"/a\"", "what: must be"),
            (
                "kind = \"solr\"\nwhat = \"tunings\"\naddress = \"http://a\"\nfield = \"t\"\ncore = \"c\"",
                "what: must be synonyms (file, solr, opensearch), domains or prompts (file), or revisions (webhook), is \"tunings\"",
            ),
            (
                "kind = \"solr\"\nwhat = \"domains\"\naddress = \"http://a\"\nfield = \"t\"\ncore = \"c\"",
                "what: must be \"synonyms\" for this kind",
            ),
            (
                "kind = \"file\"\nwhat = \"domains\"\npath = \"/a\"\nformat = \"solr\"",
                "format: must be plain",
            ),
            (
                "kind = \"solr\"\naddress = \"http://a\"\nfield = \"t\"",
                "core: must be given",
            ),
            (
                "kind = \"solr\"\naddress = \"a\"\nfield = \"t\"\ncore = \"c\"",
                "http://HOST:PORT",
            ),
            (
                "kind = \"solr\"\naddress = \"http://u:p@a\"\nfield = \"t\"\ncore = \"c\"",
                "without a user",
            ),
            (
                "kind = \"solr\"\naddress = \"http://a\"\nuser = \"u\"\nfield = \"t\"\ncore = \"c\"",
                "user and password_file",
            ),
            (
                "kind = \"opensearch\"\naddress = \"http://a\"\nindex = \"i\"\nfield = \"t\"",
                "window: must say",
            ),
            (
                "kind = \"opensearch\"\naddress = \"http://a\"\nindex = \"i\"\nfield = \"t\"\nwindow = \"2-4\"",
                "is \"2-4\"",
            ),
            (
                "kind = \"webhook\"\naddress = \"http://a\"\nsecret_file = \"s\"\npace = 1",
                "pace: a webhook has none",
            ),
            (
                "kind = \"file\"\nwhat = \"synonyms\"\npath = \"/a\"\ncheck = 0",
                "check: must be",
            ),
        ] {
            let why = refused(lines);
            assert!(why.contains(named), "{lines}: {why}");
        }
    }

    #[test]
    fn a_window_is_open_from_one_time_of_the_day_until_another() {
        let at = |time: &str| format!("2026-03-01T{time}Z").parse::<Timestamp>().unwrap();
        let night: Window = "23:30-04:00".parse().unwrap();
        assert_eq!(night.wait(at("23:30:00")), None);
        assert_eq!(night.wait(at("03:59:59")), None);
        assert_eq!(
            night.wait(at("04:00:00")),
            Some(Duration::from_mins(19 * 60 + 30))
        );
        let day: Window = "02:00-04:00".parse().unwrap();
        assert_eq!(day.wait(at("01:59:30")), Some(Duration::from_secs(30)));
        assert_eq!(day.wait(at("02:00:00")), None);
        assert_eq!(day.wait(at("04:00:00")), Some(Duration::from_hours(22)));
        assert_eq!(Window::Always.wait(at("12:00:00")), None);
    }
}
