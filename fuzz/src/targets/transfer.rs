//! Files to import, and tool calls.

use std::io::{BufRead, BufReader, Read};

use emend_cli::transfer::{
    Format, Record, RowError,
    ubi::{self, Document},
};
use emend_client::prompt_files::{FileError, PromptFile};
use emend_core::{DomainRule, Learned};
use learning_svc::evidence::trust_file::{self, ReadTrustFile};

pub(super) fn csv(bytes: &[u8]) -> usize {
    import(Format::Csv, bytes)
}

pub(super) fn jsonl(bytes: &[u8]) -> usize {
    import(Format::Jsonl, bytes)
}

pub(super) fn yaml(bytes: &[u8]) -> usize {
    import(Format::Yaml, bytes)
}

pub(super) fn ubi_jsonl(bytes: &[u8]) -> usize {
    of_users(bytes, |from, take| ubi::read_jsonl(from, take))
}

pub(super) fn ubi_csv(bytes: &[u8]) -> usize {
    of_users(bytes, |from, take| ubi::read_csv(from, take))
}

/// What a trust file says is checked whole, and the same however often it is read.
pub(super) fn trust_files(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    for format in [trust_file::Format::Yaml, trust_file::Format::Toml] {
        let read = ReadTrustFile::read(&text, format);
        assert_eq!(ReadTrustFile::read(&text, format), read);
        let Ok(ReadTrustFile { file, .. }) = read else {
            continue;
        };
        assert!(!file.namespaces.is_empty());
        assert!(i64::try_from(file.version).is_ok_and(|version| version > 0));
        for (pattern, rule) in &file.rules {
            assert!(!pattern.is_empty() && !pattern.contains(char::is_whitespace));
            let learned = Learned::DomainRule((*rule).into());
            assert_eq!(DomainRule::parse(learned.maps_to()), Ok(*rule), "{pattern}");
        }
    }
    bytes.len()
}

/// A prompt that was read from a file is the same once it is written and read again, and an error is about one of its lines.
pub(super) fn prompt_files(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    match PromptFile::parse(&text) {
        Ok(file) => {
            if let Ok(prompt) = file.prompt() {
                let written = PromptFile::of("T", &prompt).to_string();
                let again = PromptFile::parse(&written).and_then(|file| file.prompt());
                assert_eq!(again, Ok(prompt), "{written:?}");
            }
        }
        Err(FileError::Header { line, .. }) => assert!((1..=text.lines().count()).contains(&line)),
        Err(other) => panic!("only its header can be wrong: {other}"),
    }
    bytes.len()
}

pub(super) fn tool_calls(bytes: &[u8]) -> usize {
    emend_cli::fuzzing::tool_call(bytes);
    bytes.len()
}

/// Takes a document with its line; false: no more.
type Take<'t> = &'t mut dyn FnMut(u64, Result<Document, RowError>) -> bool;
type Documents = Vec<(u64, Result<Document, RowError>)>;

/// The documents do not depend on how the file is chunked, line numbers never decrease, reading stops when asked to, and a
/// document that is about a query or a result names it.
fn of_users(bytes: &[u8], read: for<'t> fn(&mut dyn BufRead, Take<'t>)) -> usize {
    let first = |from: &mut dyn BufRead, most: usize| {
        let mut documents = Documents::new();
        read(from, &mut |line, document| {
            documents.push((line, document));
            documents.len() < most
        });
        documents
    };
    let documents = first(&mut &*bytes, usize::MAX);
    assert!(documents.iter().all(|(line, _)| *line >= 1));
    assert!(documents.is_sorted_by_key(|(line, _)| *line), "{documents:?}");
    let mut one_by_one = BufReader::with_capacity(1, OneByOne(bytes));
    assert_eq!(first(&mut one_by_one, usize::MAX), documents);
    let some = documents.len() / 2;
    assert_eq!(first(&mut &*bytes, some).get(..some), documents.get(..some));

    let is_said = |texts: &[&String]| texts.iter().all(|text| !text.trim().is_empty());
    let mut handed = 0;
    for (_, document) in &documents {
        handed += size_of::<(u64, Result<Document, RowError>)>();
        match document {
            Ok(Document::Query(query)) => {
                assert!(is_said(&[&query.query_id, &query.query_text]), "{query:?}");
                let counted = match query.hit_count.map(usize::try_from) {
                    Some(count) => count.is_ok_and(|count| count >= query.top_results.len()),
                    None => query.top_results.is_empty(),
                };
                assert!(counted && query.top_results.len() <= 100, "{query:?}");
                let ids = query
                    .top_results
                    .iter()
                    .map(|result| size_of_val(result) + result.object_id.len());
                handed += size_of_val(&**query) + query.query_text.len() + ids.sum::<usize>();
            }
            Ok(Document::Interaction(what)) => {
                assert!(
                    is_said(&[&what.query_id, &what.object_id, &what.action]),
                    "{what:?}"
                );
                handed += what.object_id.len() + what.action.len();
            }
            Ok(Document::Browsing | Document::Other) => {}
            Err(error) => handed += error.field.len() + error.description.len(),
        }
    }
    handed.max(bytes.len())
}

type Rows = Vec<(u64, Result<Record, RowError>)>;

/// The rows do not depend on how the file is chunked, line numbers never decrease, reading stops when asked to, and
/// good rows survive a round trip in the same format.
fn import(format: Format, bytes: &[u8]) -> usize {
    let rows = read(format, bytes, usize::MAX);
    assert!(rows.iter().all(|(line, _)| *line >= 1));
    assert!(rows.is_sorted_by_key(|(line, _)| *line), "{rows:?}");
    // This target holds the rows in memory three times; a command only counts them or sends them on.
    let handed: usize = rows.iter().map(|(_, row)| size(row)).sum();
    let bit_by_bit = read(format, BufReader::with_capacity(1, OneByOne(bytes)), usize::MAX);
    assert_eq!(bit_by_bit, rows);
    let some = rows.len() / 2;
    let first = read(format, bytes, some);
    assert!(first.len() <= rows.len());
    assert_eq!(first.get(..some), rows.get(..some));

    let good: Vec<Record> = rows
        .into_iter()
        .filter_map(|(_, row)| row.ok())
        .map(|record| Record {
            system_choice: String::new(),
            ..record
        })
        .collect();
    let mut written = Vec::new();
    let mut writer = format.writer(Box::new(&mut written)).expect("memory takes it");
    for record in &good {
        writer.write(record).expect("memory takes it");
    }
    writer.finish().expect("memory takes it");
    let again: Vec<_> = read(format, &written[..], usize::MAX)
        .into_iter()
        .map(|(line, row)| row.unwrap_or_else(|error| panic!("line {line}: {error}")))
        .collect();
    assert_eq!(again, good);
    written.len().max(bytes.len()).max(handed)
}

fn size(row: &Result<Record, RowError>) -> usize {
    let texts = match row {
        Ok(record) => {
            record.input.len() + record.choice.len() + record.system_choice.len() + record.user_id.len()
        }
        Err(error) => error.field.len() + error.description.len(),
    };
    size_of::<(u64, Result<Record, RowError>)>() + texts
}

/// Reads rows until `most` have been read.
fn read(format: Format, from: impl BufRead, most: usize) -> Rows {
    let mut rows = Rows::new();
    format.read(from, &mut |line, row| {
        rows.push((line, row));
        rows.len() < most
    });
    rows
}

/// A reader that yields one byte at a time.
struct OneByOne<'b>(&'b [u8]);

impl Read for OneByOne<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = into.len().min(1);
        self.0.read(&mut into[..most])
    }
}
