//! `emend evidence trust convert`: a trust file of what others keep about domains.

use std::{fmt::Write as _, path::PathBuf};

use clap::ValueEnum;
use emend_core::{DomainRule, TrustLevel, text::escaped};
use emend_proto::learning::v1::ImportError;
use serde_json::json;

use super::MAX_BYTES;
use crate::{
    commands::import::{import_error, report_bad_rows, report_passed_over},
    context::Context,
    failure::{Failure, Result},
    output::{Output, counted, on_standard_error},
    transfer::{
        Format, RowError,
        source::{self, Source},
        trust_levels::{Entry, Levels},
    },
};

/// Which file to convert.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The file; - for standard input
    file: PathBuf,
    /// The version of the trust file
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=i64::MAX.cast_unsigned()))]
    file_version: u64,
    /// How the file is written [default: levels for .yaml and .yml, otherwise domains]
    #[arg(long, value_enum)]
    format: Option<From>,
}

/// How a file about domains is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum From {
    #[value(help = "A list of domains to block: plain, a hosts file, AdGuard, uBlacklist")]
    Domains,
    #[value(help = "YAML with domains and user_overrides: domain, trust_level, reason, added_at")]
    Levels,
}

/// What a file says, and what of it is not taken.
#[derive(Default)]
struct Converted {
    entries: Vec<Entry>,
    not_taken: Vec<(u64, RowError)>,
    ignored: Vec<String>,
}

/// Prints the trust file, and on standard error what is not in it.
pub(super) fn run(args: &Args, context: &Context, output: &mut Output<'_>) -> Result {
    let from = args.format.unwrap_or_else(|| match Format::of_path(&args.file) {
        Some(Format::Yaml) => From::Levels,
        _ => From::Domains,
    });
    let name = args.file.display().to_string();
    let converted = match from {
        From::Domains => domains(&Source::open(&args.file)?)?,
        From::Levels => levels(&source::text(&args.file, MAX_BYTES)?),
    };
    let (passed_over, bad): (Vec<_>, Vec<_>) = converted
        .not_taken
        .into_iter()
        .partition(|(_, error)| error.is_passed_over());
    let reported = |rows: Vec<(u64, _)>| -> Vec<ImportError> {
        rows.into_iter()
            .map(|(line, error)| import_error(line, error))
            .collect()
    };
    let (passed_over, bad) = (reported(passed_over), reported(bad));
    report_passed_over(&name, &passed_over, passed_over.len() as u64);
    for ignored in &converted.ignored {
        eprintln!("{}", on_standard_error(&format!("{name}: {ignored}")));
    }
    if !bad.is_empty() {
        report_bad_rows(&name, &bad);
        return Err(Failure::usage(format!(
            "{}; no trust file was written",
            counted(bad.len(), "bad entry", "bad entries")
        )));
    }
    let text = trust_file(&context.namespace(), args.file_version, &converted.entries);
    let json = json!({
        "content": text,
        "entries": converted.entries.len(),
        "passed_over": passed_over.iter().map(|row| json!({"line": row.line, "description": row.description})).collect::<Vec<_>>(),
        "ignored": converted.ignored,
    });
    output.result(&json, || text.trim_end().to_owned())
}

fn domains(source: &Source) -> Result<Converted> {
    let mut converted = Converted::default();
    Format::Domains.read(source.reader()?, &mut |line, row| {
        match row {
            Ok(record) if record.choice == DomainRule::Block.decision().name() => {
                converted.entries.push(Entry {
                    pattern: record.input,
                    level: TrustLevel::Blocked,
                    remark: String::new(),
                });
            }
            Ok(record) => {
                let why = format!(
                    "{} is an exception, which a trust file does not have: emend evidence domains unblock",
                    record.input
                );
                converted.not_taken.push((line, RowError::passed_over(why)));
            }
            Err(error) => converted.not_taken.push((line, error)),
        }
        true
    });
    Ok(converted)
}

fn levels(text: &str) -> Converted {
    let levels = match Levels::read(text) {
        Ok(levels) => levels,
        Err(error) => {
            return Converted {
                not_taken: vec![error],
                ..Converted::default()
            };
        }
    };
    let ignored = levels.ignored.into_iter().map(|(key, (count, line))| match line {
        0 => format!("the key {key} is ignored"),
        line => format!(
            "the key {key} is ignored ({}, the first on line {line})",
            counted(count as u64, "entry", "entries")
        ),
    });
    Converted {
        entries: levels.entries.into_iter().map(|(_, entry)| entry).collect(),
        not_taken: levels.not_taken,
        ignored: ignored.collect(),
    }
}

/// A trust file in YAML. Texts are quoted as JSON, which YAML reads alike.
fn trust_file(namespace: &str, version: u64, entries: &[Entry]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!("namespaces: [{}]\nversion: {version}\n", quoted(namespace));
    let (blocked, trusted): (Vec<&Entry>, Vec<&Entry>) = entries
        .iter()
        .partition(|entry| entry.level == TrustLevel::Blocked);
    let mut section = |name: &str, entries: Vec<&Entry>, item: &dyn Fn(&Entry) -> String| {
        if entries.is_empty() {
            return;
        }
        let _ = writeln!(text, "{name}:");
        for entry in entries {
            let words: Vec<&str> = entry.remark.split_whitespace().collect();
            let remark = match words.as_slice() {
                [] => String::new(),
                words => format!("  # {}", escaped(&words.join(" "))),
            };
            let _ = writeln!(text, "  - {}{remark}", item(entry));
        }
    };
    section("domains", trusted, &|entry| {
        format!("{{pattern: {}, level: {}}}", quoted(&entry.pattern), entry.level)
    });
    section("blocked", blocked, &|entry| quoted(&entry.pattern));
    text
}
