//! Hot paths, each a fixed amount of work, to count the instructions it takes: `cargo xtask instructions` runs each
//! under callgrind and compares what it counts with benches/instructions.toml.

use std::{borrow::Cow, hint::black_box};

use anyhow::{Context as _, Result, bail};
use emend_base::{Clock as _, Entropy, ManualClock};
use emend_client::{ExpandMode, LearnedView, LookupKey, Revision};
use emend_core::{
    Ballots, ContestState, Epoch, Event, InstallationId, Kind, Learned, Namespace, NormalizedKey, Policy,
    ResourceValue, Roles, decide, digest::value_checksum,
};
use emend_stream::{
    encode,
    filter::Filter,
    log::{Head, Loaded, LoggedChange, LoggedRevision},
    state::Restored,
};
use emend_wire::value;

use uuid::Uuid;

use crate::{
    contest::{ballot, cast, proposal},
    expand,
    lookup::{
        phrase,
        subjects::{NAMESPACE, fact},
    },
};

/// Votes in the contest, and phrases that are learned.
const THERE: u32 = 10_000;
/// Events decided, and changes encoded and applied.
const NEW: u32 = 200;
/// Changes of one update.
const OF_UPDATE: usize = 10;
/// Phrases looked up, half of them unknown.
const ASKED: u32 = 4_000;
/// Room in a message, in bytes.
const MESSAGE: usize = 256 * 1024;

/// Queries expanded with synonyms.
const EXPANDED: u32 = 200;

/// One hot path, to be run under callgrind.
#[derive(Debug, clap::Args)]
pub(crate) struct Instructions {
    /// decide, encode, apply, look-up, expand or expand-words
    path: String,
}

pub(crate) fn run(options: &Instructions) -> Result<()> {
    match options.path.as_str() {
        "decide" => decided(),
        "encode" => encoded(),
        "apply" => {
            applied();
            Ok(())
        }
        "look-up" => looked_up(),
        "expand" => expanded("フォロー"),
        "expand-words" => expanded("盤面"),
        other => bail!(
            "there is no path {other}; there are decide, encode, apply, look-up, expand and expand-words"
        ),
    }
}

/// Runs what is to be counted: callgrind counts while this function, and nothing else of that name, is being called.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
}

/// Votes and retractions in turn, in a contest that has many votes.
fn decided() -> Result<()> {
    let proposal = proposal()?;
    let policy = Policy::default_for(proposal.key.kind);
    let now = ManualClock::default().now();
    let there = (0..THERE).map(|number| ballot(number, &proposal));
    let mut contest = ContestState::new(proposal.key.clone());
    contest.ballots = Ballots::new(there.collect::<Result<Vec<_>>>()?, true);
    let mut events = Vec::new();
    for number in THERE..THERE + NEW / 2 {
        let (event, ballot) = cast(number, &proposal)?;
        let sender = Roles::default();
        events.extend([event, Event::Retracted { ballot, sender }]);
    }
    let mut state = Some(contest);
    let mut play = |events: &[Event]| {
        for event in events {
            let decided = state.take().map(|state| decide(state, event, &policy, now));
            state = decided.and_then(Result::ok).map(|decided| decided.after);
        }
    };
    // The first event counts all votes.
    let (first, events) = events.split_at(2);
    play(first);
    counted(&mut || play(events));
    state.context("an event was refused")?;
    Ok(())
}

/// An update and a part of a snapshot, as each audience of subscribers gets them.
fn encoded() -> Result<()> {
    let (epoch, installation) = (Epoch(Uuid::from_u128(1)), InstallationId(Uuid::from_u128(2)));
    let mut restored = Restored::default();
    restored.add((0..THERE).map(|number| change(number, 1)).collect());
    let revision = 1;
    let horizon = 0;
    let head = Head {
        epoch,
        installation,
        revision,
        horizon,
    };
    let mut state = restored.finish(Loaded {
        head,
        committed_at: 0,
    });
    state.apply(LoggedRevision {
        revision: 2,
        committed_at: 0,
        changes: (0..NEW).map(|number| change(number * 7, 2)).collect(),
    });
    let filter = Filter::new(&[Namespace::parse(NAMESPACE).context("a namespace")?], &[], false);
    counted(&mut || {
        black_box(encode::update_part(&state, &filter, revision, None, MESSAGE));
        black_box(encode::snapshot_chunk(&state, &filter, None, MESSAGE));
    });
    Ok(())
}

fn change(number: u32, revision: i64) -> LoggedChange {
    let value = value::encode(&verb(number));
    LoggedChange {
        revision,
        committed_at: 0,
        cause: 1,
        namespace: NAMESPACE.to_owned(),
        kind: Kind::InvocationPhrase.number(),
        key: learned(number),
        qualifier: String::new(),
        user_id: String::new(),
        checksum: value_checksum(&value),
        value: Some(value),
        feedback_received_at: 0,
        traceparent: String::new(),
    }
}

/// Updates of ten changes each, in the view of a node that knows many phrases.
fn applied() {
    let (mut publisher, _view) = view();
    let changes: Vec<_> = (0..NEW)
        .map(|number| (learned(number * 7), verb(number + 1)))
        .collect();
    counted(&mut || {
        for (update, changes) in (2..).zip(changes.chunks(OF_UPDATE)) {
            let facts = changes
                .iter()
                .map(|(phrase, verb)| fact(phrase, Cow::Borrowed(verb), update));
            publisher.apply(facts, Revision(update));
        }
    });
}

/// Phrases that are known and such that are not, in turn.
fn looked_up() -> Result<()> {
    let (_publisher, view) = view();
    let namespace = Namespace::parse(NAMESPACE).context("a namespace")?;
    let asked = (0..ASKED).map(|number| {
        let known = number % 2 == 0;
        NormalizedKey::parse(&if known {
            learned(number)
        } else {
            phrase(number as usize, "unheard")
        })
    });
    let asked: Vec<NormalizedKey> = asked.collect::<Result<_, _>>().context("a phrase")?;
    let mut found = 0;
    let mut reader = view.reader();
    counted(&mut || {
        for phrase in &asked {
            let namespace = &namespace;
            let key = LookupKey { namespace, phrase };
            let reading = reader.read();
            found += usize::from(
                reading
                    .lookup(key, Kind::InvocationPhrase, None)
                    .found()
                    .is_some(),
            );
        }
    });
    anyhow::ensure!(found == asked.len() / 2, "half of them are known");
    Ok(())
}

/// Queries of some thirty characters with one term each. Where it is one of kanji, the words of the query are told by the
/// dictionary; that is counted apart.
fn expanded(term: &str) -> Result<()> {
    let (mut publisher, view) = LearnedView::new(&Entropy::seeded(1), ManualClock::default().shared());
    let words = (0..THERE).flat_map(|number| [format!("ボード{number}"), format!("盤{number}面")]);
    let terms: Vec<String> = ["フォロー", "フォロワー", "フォロワ", "盤面", "フィールド", "場"]
        .map(str::to_owned)
        .into_iter()
        .chain(words)
        .collect();
    expand::publish(&mut publisher, &terms, Revision(1));
    let namespace = Namespace::parse(expand::NAMESPACE).context("a namespace")?;
    let queries: Vec<String> = (0..EXPANDED)
        .map(|number| format!("相手の{term}を{number}体まで手札に戻すFanfareのカードはどれですか"))
        .collect();
    let mut reader = view.reader();
    // Whatever is made once is made now.
    reader
        .read()
        .expand(&namespace, "盤面", ExpandMode::Keyword, None);
    let mut groups = 0;
    counted(&mut || {
        for query in &queries {
            let expanded = reader.read().expand(&namespace, query, ExpandMode::Keyword, None);
            groups += expanded.groups.len();
        }
    });
    anyhow::ensure!(groups == queries.len(), "one term of each is found");
    Ok(())
}

fn view() -> (emend_client::view::Publisher, LearnedView) {
    let (mut publisher, view) = LearnedView::new(&Entropy::seeded(1), ManualClock::default().shared());
    let phrases: Vec<_> = (0..THERE).map(|number| (learned(number), verb(number))).collect();
    let facts = phrases
        .iter()
        .map(|(phrase, verb)| fact(phrase, Cow::Borrowed(verb), 1));
    publisher.replace(phrases.len(), facts, Revision(1));
    (publisher, view)
}

fn learned(number: u32) -> String {
    phrase(number as usize, "learned")
}

fn verb(number: u32) -> ResourceValue {
    ResourceValue::of(Learned::Verb(format!("verb_of_the_application_{}", number % 500)))
}
