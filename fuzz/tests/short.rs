//! The short run: every target reads its stored corpus and a seeded number of mutations of it.
//!
//! `EMEND_TEST_SEED` selects other mutations, `EMEND_TEST_LONG=1` runs fifty times as many.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::{collections::BTreeSet, env, fs, path::Path};

use emend_fuzz::{
    TARGETS, Target, corpus,
    mutate::Shape,
    run::{self, Finding, LastInput},
    targets,
};

/// Mutations per target.
const MUTATIONS: u64 = 2_000;

fn seed() -> u64 {
    let given = env::var("EMEND_TEST_SEED").ok();
    given.map_or(1, |seed| seed.parse().expect("EMEND_TEST_SEED is a number"))
}

fn mutations() -> u64 {
    match env::var("EMEND_TEST_LONG").as_deref() {
        Ok("1") => 50 * MUTATIONS,
        _ => MUTATIONS,
    }
}

fn scratch(name: &str) -> std::path::PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    fs::create_dir_all(&directory).unwrap();
    directory.join(name)
}

fn holds(name: &str) {
    let target = targets::named(name).unwrap();
    let kept = corpus::read(name).unwrap_or_else(|error| panic!("the corpus of {name}: {error}"));
    assert!(!kept.is_empty(), "{name} has no corpus");
    let last = LastInput::at(&scratch(&format!("{name}.last"))).unwrap();
    match run::short(target, &kept, seed(), mutations(), &last) {
        Ok(report) => println!("{name}: {report:?}"),
        Err(failure) => {
            let file = scratch(&format!("{name}.failure"));
            fs::write(&file, &failure.input).unwrap();
            panic!(
                "{name} reads {} wrongly: {}\nthe input is in {}: keep it in fuzz/corpus/{name} with what mends it",
                failure.origin,
                failure.finding,
                file.display()
            );
        }
    }
}

macro_rules! targets_hold {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                holds(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_run_and_has_its_own_corpus() {
            let run = BTreeSet::from([$(stringify!($name)),*]);
            let targets: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(run, targets);
            let kept: BTreeSet<String> = fs::read_dir(corpus::directory(""))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            assert!(kept.iter().map(String::as_str).eq(targets), "{kept:?}");
        }
    };
}

targets_hold!(
    feedback_requests,
    learning_requests,
    search_requests,
    events,
    import_stream,
    page_tokens,
    feedback_rows,
    learning_rows,
    values,
    disk_copy,
    stream_messages,
    stream,
    normalisation,
    personal_data,
    examples,
    headers,
    addresses,
    statuses,
    import_csv,
    import_jsonl,
    import_yaml,
    ubi_jsonl,
    ubi_csv,
    trust_files,
    prompt_files,
    edge_queries,
    tool_calls,
);

/// A target with a planted bug, to check that bugs are found.
fn planted(name: &'static str, read: fn(&[u8]) -> usize) -> Target {
    Target {
        name,
        read,
        shape: Shape::Bytes,
        ..*targets::named("values").unwrap()
    }
}

/// What the run finds when it starts from one harmless input.
fn found(target: &Target, harmless: &[u8]) -> run::Failure {
    let kept = [corpus::Kept {
        name: "harmless".into(),
        bytes: harmless.to_vec(),
    }];
    assert!(run::check(target, harmless).is_ok(), "it is harmless");
    let last = LastInput::at(&scratch(&format!("{}.last", target.name))).unwrap();
    let failure = run::short(target, &kept, 1, 50_000, &last).unwrap_err();
    assert!(failure.origin.starts_with("mutation"), "{}", failure.origin);
    assert_eq!(
        run::short(target, &kept, 1, 50_000, &last).unwrap_err().origin,
        failure.origin,
        "equal seeds find equal inputs"
    );
    failure
}

#[test]
fn a_planted_panic_is_found_and_minimised() {
    let target = planted("planted_panic", |bytes| {
        assert!(bytes.first() != Some(&0xff) || bytes.len() < 4, "planted");
        bytes.len()
    });
    let failure = found(&target, b"a harmless input");
    assert_eq!(failure.finding, Finding::Panic("planted".into()));
    assert_eq!(failure.input.len(), 4, "{:?}", failure.input);
}

#[test]
fn a_planted_unchecked_length_is_found() {
    let target = planted("planted_allocation", |bytes| {
        let length = bytes
            .first_chunk()
            .map_or(0, |length| u16::from_le_bytes(*length));
        drop(Vec::<u128>::with_capacity(usize::from(length)));
        bytes.len()
    });
    let failure = found(&target, &[1, 0, 7]);
    assert!(matches!(failure.finding, Finding::Memory { peak, allowed } if peak > allowed));
}

#[test]
fn a_planted_temporary_allocation_is_found() {
    let target = planted("planted_growth", |bytes| {
        let text = b"lol".repeat(1 << bytes.split(|byte| *byte == b'&').count().min(20));
        text.len().min(bytes.len())
    });
    let failure = found(&target, b"&&&&&&&&");
    assert!(matches!(failure.finding, Finding::Memory { .. }));
}

#[test]
fn memory_held_before_a_run_does_not_count() {
    let target = planted("planted_nothing", <[u8]>::len);
    let before = vec![0_u8; 1 << 20];
    assert_eq!(run::check(&target, &before), Ok(0));
}
