//! The file formats of import and export: CSV, JSON lines, YAML; and, for import only, synonyms and domains as others keep them.
//!
//! A row is a phrase mapping, an alias, a prohibition or a synonym ([`Record`]). The first three formats have the same
//! fields, and their rows are streamed one at a time; of synonym files the pairs are held in memory. A bad row is reported
//! with its line, and reading continues unless nothing more can be read. The evidence graph has a format of its own,
//! [`materials`], and so have recorded queries, read by [`ubi`]. Beneath all of them, and
//! whatever else a person gives to a command, is [`source`].

mod csv;
mod domain_list;
pub mod few_shot;
mod json_tree;
mod jsonl;
pub mod materials;
mod record;
mod solr;
pub mod source;
mod sudachi;
mod synonym_json;
mod synonyms;
pub mod trust_levels;
pub mod ubi;
mod yaml;

use std::{
    io::{BufRead, Write},
    path::Path,
};

use clap::ValueEnum;

pub use record::{COLUMNS, Record, RowError};

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header line
    Csv,
    /// One JSON object per line
    #[value(alias = "ndjson")]
    Jsonl,
    /// A list of mappings
    #[value(alias = "yml")]
    Yaml,
    /// A synonym file of Solr or Elasticsearch; for import only
    #[value(alias = "elasticsearch")]
    Solr,
    /// Sudachi's synonym dictionary, synonyms.txt; for import only
    Sudachi,
    /// Synonyms in JSON as Typesense, Meilisearch, Algolia or Elasticsearch exports them; for import only
    #[value(aliases = ["json", "typesense", "meilisearch", "algolia"])]
    SynonymsJson,
    /// A list of domains to block.
    #[value(
        aliases = ["hosts", "adguard", "ublacklist"],
        help = "Domains to block: plain, a hosts file, AdGuard, uBlacklist; for import only"
    )]
    Domains,
}

impl Format {
    /// The format for a file's extension.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::SynonymsJson),
            _ => None,
        }
    }

    /// Reads rows one by one and passes each to `take` with its line, until there are no more or `take` returns false.
    pub fn read(self, from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
        match self {
            Self::Csv => csv::read(from, take),
            Self::Jsonl => jsonl::read(from, take),
            Self::Yaml => yaml::read(from, take),
            Self::Solr => solr::read(from, take),
            Self::Sudachi => sudachi::read(from, take),
            Self::SynonymsJson => synonym_json::read(from, take),
            Self::Domains => domain_list::read(from, take),
        }
    }

    /// Whether rows can be written in it.
    pub const fn is_for_export(self) -> bool {
        matches!(self, Self::Csv | Self::Jsonl | Self::Yaml)
    }

    /// Writes rows one by one.
    pub fn writer<'w>(self, to: Box<dyn Write + Send + 'w>) -> anyhow::Result<Writer<'w>> {
        Ok(match self {
            Self::Csv => Writer::Csv(Box::new(csv::Writer::new(to)?)),
            Self::Jsonl => Writer::Jsonl(to),
            Self::Yaml => Writer::Yaml(to),
            Self::Solr | Self::Sudachi | Self::SynonymsJson | Self::Domains => {
                anyhow::bail!("this format is for import only; export as csv, jsonl or yaml")
            }
        })
    }
}

/// Writes rows one by one.
pub enum Writer<'w> {
    /// As comma-separated values.
    Csv(Box<csv::Writer<'w>>),
    /// As JSON lines.
    Jsonl(Box<dyn Write + Send + 'w>),
    /// As a YAML list.
    Yaml(Box<dyn Write + Send + 'w>),
}

impl Writer<'_> {
    /// Writes one row.
    pub fn write(&mut self, record: &Record) -> anyhow::Result<()> {
        match self {
            Self::Csv(writer) => writer.write(record),
            Self::Jsonl(to) => jsonl::write(to, record),
            Self::Yaml(to) => yaml::write(to, record),
        }
    }

    /// Flushes what is buffered.
    pub fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Csv(writer) => writer.finish(),
            Self::Jsonl(mut to) | Self::Yaml(mut to) => Ok(to.flush()?),
        }
    }
}

impl std::fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Csv(_) => "Writer::Csv",
            Self::Jsonl(_) => "Writer::Jsonl",
            Self::Yaml(_) => "Writer::Yaml",
        })
    }
}

#[cfg(test)]
mod tests {
    use emend_core::{Kind, Relation};

    use super::*;

    type Rows = Vec<(u64, Result<Record, RowError>)>;

    fn read(format: Format, text: &str) -> Rows {
        let mut rows = Rows::new();
        format.read(text.as_bytes(), &mut |line, row| {
            rows.push((line, row));
            true
        });
        rows
    }

    fn records() -> Vec<Record> {
        let record = |kind, input: &str, choice: &str, user_id: &str| Record {
            kind,
            relation: (kind == Kind::Synonym).then_some(Relation::Typo),
            input: input.into(),
            choice: choice.into(),
            system_choice: String::new(),
            user_id: user_id.into(),
        };
        vec![
            record(Kind::InvocationPhrase, "set up a CSA", "create_isda", ""),
            record(Kind::EntityAlias, "J. \"Jay\" Smith, jr.", "person:jane", ""),
            record(Kind::Prohibition, "wind: down\nthe fund", "delete_fund", ""),
            record(Kind::InvocationPhrase, "- yes # no", "null", "mia"),
            record(Kind::InvocationPhrase, "007", "1.50", ""),
            record(Kind::EntityAlias, "カードを手札に戻す", "true", ""),
            record(Kind::Synonym, "ボード", "フィールド", ""),
        ]
    }

    #[test]
    fn written_rows_are_read_back_unchanged() {
        for format in [Format::Csv, Format::Jsonl, Format::Yaml] {
            let mut bytes = Vec::new();
            let mut writer = format.writer(Box::new(&mut bytes)).unwrap();
            for record in records() {
                writer.write(&record).unwrap();
            }
            writer.finish().unwrap();
            let text = String::from_utf8(bytes).unwrap();
            let back: Vec<_> = read(format, &text)
                .into_iter()
                .map(|(line, row)| row.unwrap_or_else(|error| panic!("{format:?} {line}: {error}\n{text}")))
                .collect();
            assert_eq!(back, records(), "{format:?}\n{text}");
        }
    }

    #[test]
    fn an_empty_file_has_no_rows() {
        for (format, nothing) in [
            (Format::Csv, "type,input,choice\n"),
            (Format::Csv, ""),
            (Format::Jsonl, "\n\n"),
            (Format::Yaml, ""),
            (Format::Yaml, "[]"),
        ] {
            assert_eq!(read(format, nothing), [], "{format:?} {nothing:?}");
        }
    }

    #[test]
    fn a_bad_row_is_reported_with_its_line_and_the_others_are_read() {
        for (format, text, bad) in [
            (
                Format::Csv,
                "type,phrase,choice\nphrase,a,b\nverbs,a,b\nphrase,\"a\nb\",c\nentity,,x\n",
                [3, 6],
            ),
            (
                Format::Jsonl,
                "{\"type\":\"phrase\",\"input\":\"a\",\"choice\":\"b\"}\n\n{nonsense}\n{\"type\":\"phrase\",\"phrase\":\"a\",\"verb\":\"b\"}\n{\"type\":\"entity\",\"choice\":\"x\"}\n",
                [3, 5],
            ),
            (
                Format::Yaml,
                "- type: phrase\n  phrase: a\n  verb: b\n- type: verbs\n  input: a\n  choice: b\n- {type: phrase, input: a, choice: b}\n- type: entity\n  choice: x\n",
                [4, 8],
            ),
        ] {
            let rows = read(format, text);
            let lines: Vec<_> = rows
                .iter()
                .filter(|(_, row)| row.is_err())
                .map(|(line, _)| *line)
                .collect();
            assert_eq!(lines, bad, "{format:?}: {rows:?}");
            assert_eq!(
                rows.iter().filter(|(_, row)| row.is_ok()).count(),
                2,
                "{format:?}: {rows:?}"
            );
        }
    }

    #[test]
    fn a_byte_order_mark_in_a_read_of_its_own_hides_no_rows() {
        let text = "\u{FEFF}type,input,choice\nphrase,a,b\n";
        for buffer in [1, 3, 100] {
            let mut rows = Rows::new();
            let from = std::io::BufReader::with_capacity(buffer, text.as_bytes());
            Format::Csv.read(from, &mut |line, row| {
                rows.push((line, row));
                true
            });
            assert!(matches!(&rows[..], [(2, Ok(_))]), "{buffer}: {rows:?}");
        }
    }

    #[test]
    fn a_broken_file_is_reported_with_the_line_where_it_breaks() {
        let rows = read(
            Format::Yaml,
            "- type: phrase\n  input: a\n  choice: b\n- type: [\n",
        );
        assert!(rows[0].1.is_ok());
        assert!(matches!(&rows[1], (line, Err(_)) if *line >= 4), "{rows:?}");
        let ends = |rows: &Rows| matches!(&rows[..], [(_, Err(error))] if error.ends_file());
        assert!(ends(&read(Format::Yaml, "just: a mapping\n")));
        assert!(ends(&read(Format::Csv, "type;input;choice\nphrase;a;b\n")));
        let rows = read(Format::Csv, "type,input,chioce\nphrase,a,b\n");
        assert!(
            matches!(&rows[..], [(1, Err(error))] if error.to_string().contains("chioce")),
            "{rows:?}"
        );
    }

    #[test]
    fn a_name_that_is_empty_is_said_to_be_empty() {
        for (format, text, says) in [
            (Format::Csv, "phrase,,verb\na,b,c\n", "column 2 has no name"),
            (
                Format::Csv,
                "phrase,verb,\" \",user\na,b,,c\n",
                "column 3 has no name",
            ),
            (Format::Jsonl, "{\"\":\"a\",\"verb\":\"b\"}\n", "a key is empty"),
            (Format::Yaml, "- \"\": a\n  verb: b\n", "a key is empty"),
        ] {
            let rows = read(format, text);
            assert!(
                matches!(&rows[..], [(1, Err(error))] if error.to_string() == says),
                "{text}: {rows:?}"
            );
        }
    }

    #[test]
    fn names_of_columns_say_the_type_where_there_is_none() {
        for (header, kind) in [
            ("phrase,verb", Kind::InvocationPhrase),
            ("alias,choice", Kind::EntityAlias),
            ("phrase,entity_id", Kind::EntityAlias),
            ("phrase,forbidden_choice", Kind::Prohibition),
            ("term,representative", Kind::Synonym),
        ] {
            let rows = read(Format::Csv, &format!("{header}\na,b\n"));
            assert!(
                matches!(&rows[..], [(2, Ok(record))] if record.kind == kind),
                "{header}: {rows:?}"
            );
        }
        // A type wins; names that contradict each other or say nothing need one.
        let rows = read(Format::Csv, "type,phrase,verb\nentity_alias,a,b\n");
        assert!(matches!(&rows[..], [(_, Ok(record))] if record.kind == Kind::EntityAlias));
        for header in ["alias,verb", "phrase,choice"] {
            let rows = read(Format::Csv, &format!("{header}\na,b\n"));
            assert!(
                matches!(&rows[..], [(2, Err(error))] if error.field == "type"),
                "{header}: {rows:?}"
            );
        }
        let rows = read(Format::Jsonl, "{\"phrase\":\"a\",\"verb\":\"b\"}\n");
        assert!(rows[0].1.is_ok(), "{rows:?}");
    }

    #[test]
    fn a_format_is_recognised_by_the_extension() {
        assert_eq!(Format::of_path(Path::new("a/b.CSV")), Some(Format::Csv));
        assert_eq!(Format::of_path(Path::new("b.ndjson")), Some(Format::Jsonl));
        assert_eq!(Format::of_path(Path::new("b.yml")), Some(Format::Yaml));
        assert_eq!(Format::of_path(Path::new("b.json")), Some(Format::SynonymsJson));
        assert_eq!(Format::of_path(Path::new("b.txt")), None);
        assert_eq!(Format::of_path(Path::new("-")), None);
    }
}
