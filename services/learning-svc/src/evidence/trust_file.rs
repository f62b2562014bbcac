//! Trust files: reading one, and applying it.
//!
//! A file is applied to one of its namespaces in one transaction. The version in force is locked first, so that of several
//! replicas that apply the same file one does, and the others find it done. What failed half-way is repeated as a whole:
//! namespaces that have the version already are left alone.

use std::path::Path;

use emend_base::Error;
use emend_core::{
    ContestId, Event, Invalid, Kind, Learned, Namespace, OperationId, Origin, ResourceKey, ResourceValue,
    Revision, Violations,
    evidence::{Layer, MAX_DOMAINS, RuleChanges, TrustEntryFields, TrustFile, TrustFileFields},
};
use learning_store::{
    actor::Actor,
    evidence::{TrustFileRecord, TrustFileWrite},
};
use serde::Deserialize;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    decisions::{
        numbering::RevisionChoice,
        open::{Attribution, OpenContests},
    },
    evidence::Evidence,
    failure::{Failure, refused, subject},
};

/// Bytes of a file's text at most.
pub const MAX_BYTES: usize = 16 << 20;

/// Lists, mappings, names and texts in YAML at most: five for each domain, and as many again for the rest.
const MAX_NODES: usize = 10 * MAX_DOMAINS;

/// Changes of one revision at most.
const CHANGES: usize = 1_000;

/// The UUID namespace for the operation ids of trust files (RFC 9562, version 5).
const OPERATIONS: Uuid = Uuid::from_u128(0x6c1d_7a02_83be_4f7e_9f3c_51a0_d2e7_4b15);

/// How a trust file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML.
    Toml,
}

impl Format {
    /// How a file of this name is written: in TOML if it ends in `.toml`, otherwise in YAML.
    pub fn of(path: &Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("toml") => Self::Toml,
            _ => Self::Yaml,
        }
    }
}

/// A valid trust file, and what tells its text from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTrustFile {
    /// What it says.
    pub file: TrustFile,
    /// XXH3-64 of its text.
    pub checksum: u64,
    /// The operation that it is, whoever applies it: derived from its text.
    pub operation: OperationId,
}

/// A trust file as text.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default)]
    version: u64,
    #[serde(default)]
    domains: Vec<WrittenEntry>,
    #[serde(default)]
    blocked: Vec<String>,
    #[serde(default)]
    dangerous_patterns: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEntry {
    pattern: String,
    level: String,
}

impl ReadTrustFile {
    /// Reads a file. Violations name the place in it; one without a place says that it can't be read at all, and where.
    pub fn read(text: &str, format: Format) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let written = if text.len() > MAX_BYTES {
            Err(Invalid::new(format!(
                "must have at most {MAX_BYTES} bytes, has {}",
                text.len()
            )))
        } else {
            parse(text, format)
        };
        let written = violations.check("", written);
        let fields = violations.finish(written)?.fields();
        Ok(Self {
            file: TrustFile::parse(&fields)?,
            checksum: xxh3_64(text.as_bytes()),
            operation: OperationId(Uuid::new_v5(&OPERATIONS, text.as_bytes())),
        })
    }
}

impl Written {
    fn fields(self) -> TrustFileFields {
        let domains = self
            .domains
            .into_iter()
            .map(|WrittenEntry { pattern, level }| TrustEntryFields { pattern, level });
        TrustFileFields {
            namespaces: self.namespaces,
            version: self.version,
            domains: domains.collect(),
            blocked: self.blocked,
            dangerous_patterns: self.dangerous_patterns,
        }
    }
}

fn parse(text: &str, format: Format) -> Result<Written, Invalid> {
    match format {
        Format::Yaml => {
            // A file of as many domains as one may name has more nodes than the parser allows by itself.
            let budget = serde_saphyr::budget! { max_nodes: MAX_NODES, max_events: 2 * MAX_NODES };
            let options = serde_saphyr::options! { budget: budget, with_snippet: false };
            serde_saphyr::from_str_with_options(text, options)
                .map_err(|error| Invalid::new(format!("is not the expected YAML: {error}")))
        }
        Format::Toml => toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(1, |before| before.matches('\n').count() + 1);
            Invalid::new(format!(
                "is not the expected TOML: line {line}: {}",
                error.message()
            ))
        }),
    }
}

/// What applying a trust file did in one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustFileApplied {
    /// The version in force now.
    pub version: u64,
    /// Whether this changed which file is in force.
    pub applied: bool,
    /// Whether a file of the same version and other content is in force.
    pub differs: bool,
    /// Whether a newer version than that of the file is in force.
    pub is_older: bool,
    /// How many rules were set.
    pub set: usize,
    /// How many rules ended.
    pub ended: usize,
    /// The last revision written; 0 if none was.
    pub revision: Revision,
}

impl Evidence {
    /// Applies a trust file in one of its namespaces, unless that version or a newer one is in force there.
    pub async fn apply_trust_file(
        &self,
        read: &ReadTrustFile,
        namespace: &Namespace,
        actor: &Actor,
    ) -> Result<TrustFileApplied, Error> {
        let done = self
            .decisions
            .retry(|| self.try_apply_trust_file(read, namespace, actor));
        let done = done.await?;
        if done.applied {
            self.decisions.evidence_changed.notify_one();
        }
        self.decisions.publish(done.revision).await;
        Ok(done)
    }

    async fn try_apply_trust_file(
        &self,
        read: &ReadTrustFile,
        namespace: &Namespace,
        actor: &Actor,
    ) -> Result<TrustFileApplied, Failure> {
        let mut tx = self.database.begin_whole().await?;
        let files = tx.evidence();
        let mut done = TrustFileApplied {
            version: read.file.version,
            applied: true,
            differs: false,
            is_older: false,
            set: 0,
            ended: 0,
            revision: Revision::default(),
        };
        let before = files.lock_trust_file(namespace).await?;
        if let Some(before) = before.filter(|before| before.version >= done.version) {
            return Ok(TrustFileApplied {
                version: before.version,
                applied: false,
                differs: before.version == done.version && before.checksum != read.checksum,
                is_older: before.version > done.version,
                ..done
            });
        }
        let in_force = files.file_rules(namespace).await?;
        let write = TrustFileWrite {
            record: TrustFileRecord {
                version: read.file.version,
                checksum: read.checksum,
            },
            operation: read.operation,
        };
        files.save_trust_file(namespace, &write).await?;
        let changes = RuleChanges::between(&in_force, &read.file.rules);
        if changes.is_empty() {
            tx.commit().await?;
            return Ok(done);
        }
        let reason = format!("trust file version {}", read.file.version);
        // Rules end before others are set, so that there is room for these.
        let mut events = Vec::with_capacity(changes.deletes.len() + changes.puts.len());
        for pattern in changes.deletes {
            let reason = Some(reason.clone());
            events.push((key(namespace, &pattern)?, Event::Delete { reason }));
        }
        for (pattern, rule) in changes.puts {
            let key = key(namespace, &pattern)?;
            let value = ResourceValue::new(pattern, Learned::DomainRule(rule.into())).at(key.key.as_str());
            let event = Event::Put {
                value,
                origin: Origin::Import,
                reason: Some(reason.clone()),
            };
            events.push((key, event));
        }
        let keys = events.iter().map(|(key, _)| key.clone());
        let mut unit = self.decisions.open(&mut *tx, keys).await?;
        let attribution = Attribution {
            actor: actor.clone(),
            reason,
            operation: Some(read.operation),
            trigger: None,
            task: None,
        };
        for (key, event) in &events {
            let contest = key.contest_id();
            if is_so(&unit, contest, event) {
                continue;
            }
            unit.decide(contest, event, &attribution, RevisionChoice::Shared)
                .map_err(|refusal| refused(&refusal, &subject(key)))?;
            if matches!(event, Event::Delete { .. }) {
                done.ended += 1;
            } else {
                done.set += 1;
            }
            if (done.ended + done.set).is_multiple_of(CHANGES) {
                unit.end_shared_revision();
            }
        }
        let written = self.decisions.commit(tx, &mut unit).await?;
        done.revision = written.revisions.last();
        Ok(done)
    }
}

/// Whether somebody did the same by hand since the rules were read.
fn is_so(unit: &OpenContests, contest: ContestId, event: &Event) -> bool {
    let state = unit.state(contest);
    let resource = state.and_then(|state| state.resource.as_ref());
    match (event, resource) {
        (Event::Put { value, .. }, Some(resource)) => resource.value.learned == value.learned,
        (Event::Delete { .. }, None) => true,
        _ => false,
    }
}

fn key(namespace: &Namespace, pattern: &str) -> Result<ResourceKey, Error> {
    let kind = Some(Kind::DomainRule);
    ResourceKey::parse(namespace.as_str(), kind, pattern, Layer::File.name(), "").map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "
namespaces: [research]
version: 3
domains:
  - { pattern: gov, level: government }
  - pattern: wikipedia.org
    level: LOW
blocked: [spam.example]
dangerous_patterns: [prompt_injection]
";
    const TOML: &str = r#"
namespaces = ["research"]
version = 3
blocked = ["spam.example"]
dangerous_patterns = ["prompt_injection"]
[[domains]]
pattern = "gov"
level = "government"
[[domains]]
pattern = "wikipedia.org"
level = "LOW"
"#;

    fn refused(text: &str, format: Format) -> String {
        ReadTrustFile::read(text, format).unwrap_err().to_string()
    }

    #[test]
    fn a_file_says_the_same_in_yaml_and_toml() {
        let yaml = ReadTrustFile::read(YAML, Format::Yaml).unwrap();
        let toml = ReadTrustFile::read(TOML, Format::Toml).unwrap();
        assert_eq!(yaml.file, toml.file);
        assert_eq!(yaml.file.rules.len(), 3);
        assert_ne!(
            yaml.operation, toml.operation,
            "another text is another operation"
        );
    }

    #[test]
    fn a_hundred_thousand_domains_are_read() {
        use std::fmt::Write as _;

        let mut text = "namespaces: [research]\nversion: 1\ndomains:\n".to_owned();
        for number in 0..100_000 {
            writeln!(text, "  - {{pattern: site-{number}.example, level: low}}").unwrap();
        }
        let read = ReadTrustFile::read(&text, Format::Yaml).unwrap();
        assert_eq!(read.file.rules.len(), 100_000);
    }

    #[test]
    fn what_can_not_be_read_is_told_with_its_line() {
        for (text, format, expected) in [
            (
                "namespaces: [a\nversion: 1",
                Format::Yaml,
                "is not the expected YAML: ",
            ),
            ("version: 1\nlevels: []", Format::Yaml, "levels"),
            ("version: one", Format::Yaml, "line 1"),
            ("a: &a [*a, *a]", Format::Yaml, "is not the expected YAML: "),
            (
                "version = 1\nversion = 2",
                Format::Toml,
                "is not the expected TOML: line 2: duplicate key",
            ),
            ("[[domains]]\npattern = \"a.example\"", Format::Toml, "level"),
            (&"#".repeat(MAX_BYTES + 1), Format::Toml, "at most 16777216 bytes"),
        ] {
            let found = refused(text, format);
            assert!(found.contains(expected), "{found}");
        }
        let places = refused("namespaces: [A]\nblocked: [com]", Format::Yaml);
        for place in ["version: ", "namespaces[0]: ", "blocked[0]: "] {
            assert!(places.contains(place), "{places}");
        }
    }
}
