//! The order of delivery: whatever arrives when, what is in force and every ruling are the same in the end, for each kind of
//! thing that people correct.

use std::collections::HashMap;

use emend_base::Entropy;
use emend_core::{
    AcceptOrder, CandidateId, ClaimState, ContestId, Correction, EdgeRelation, Key, Kind, Learned,
    ResourceKey, ResourceValue, Status, correction::Proposal, evidence::EvidenceId, kinds::HUMAN,
};
use emend_proto::learning::v1 as pb;
use learning_store::{
    contests::{CandidateFilter, CandidateRecord},
    evidence::{EdgeFilter, EdgePosition},
};

use crate::{
    capabilities::Capabilities,
    decisions::review::Verdict,
    ingest::event::{FeedbackChange, IngestEvent},
    resources::{
        import::{ImportAs, Mode, Row},
        write::{Delete, Put},
    },
    tests::{
        erasure::assert_audited,
        evidence::{claim, correction, support, upsert},
        on_both_databases,
        rulings::{self, REPORTER, REVIEWER, retraction, revert, roles, ruling},
        world::{
            World, apply, approval, assert_sound, head, namespace, one, operator, rejection, review, still,
        },
    },
};

on_both_databases!(
    every_permutation_of_delivery_ends_in_one_state,
    every_order_of_arrival_gives_equal_resources_and_rulings,
);

const KINDS: [Kind; 3] = [Kind::DomainRule, Kind::ClaimState, Kind::EdgeLabel];

/// Something that people correct.
#[derive(Debug, Clone)]
struct Subject {
    kind: Kind,
    /// The pattern, the claim's id or the edge's.
    name: String,
}

impl Subject {
    fn new(kind: Kind, name: &str) -> Self {
        let name = match kind {
            Kind::DomainRule => format!("{name}.example"),
            _ => name.to_owned(),
        };
        Self { kind, name }
    }

    fn needs_target(&self) -> bool {
        self.kind.rules().rule.needs_target()
    }

    /// What people may say of it.
    fn words(kind: Kind) -> &'static [&'static str] {
        match kind {
            Kind::DomainRule => &["block", "unblock", "academic", "unblock:low", "primary", "clear"],
            Kind::ClaimState => &["rejected", "restored", "rejected:SPAM"],
            _ => &["supports", "refutes", "neutral"],
        }
    }

    /// What operators write: one of two words, and another one that is neither.
    fn operators_words(kind: Kind) -> ([&'static str; 2], &'static str) {
        match kind {
            Kind::DomainRule => (["block", "low"], "primary"),
            Kind::ClaimState => (["rejected", "restored"], "rejected:OTHER"),
            _ => (["supports", "refutes"], "neutral"),
        }
    }

    fn correction(&self, word: &str) -> Correction {
        let name = self.name.as_str();
        let parsed = match self.kind {
            Kind::DomainRule => return rulings::correction(name, word),
            Kind::ClaimState => {
                let state = ClaimState::parse(word).unwrap();
                match &state {
                    ClaimState::Rejected(_) => Correction::parse_claim_reject(name, state.reason_code(), ""),
                    ClaimState::Restored => Correction::parse_claim_restore(name, ""),
                }
            }
            _ => Correction::parse_edge(name, EdgeRelation::parse_label(word), ""),
        };
        parsed.unwrap()
    }

    fn proposal(&self, word: &str) -> Proposal {
        self.correction(word).effects(&namespace(), None).remove(0)
    }

    fn said(&self, world: &World, words: &str, sender: &str) -> IngestEvent {
        let mut event = correction(world, &self.correction(words));
        if let FeedbackChange::Recorded(recorded) = &mut event.change {
            recorded.sender = roles(sender);
        }
        event
    }

    fn key(&self) -> ResourceKey {
        let qualifier = if self.kind == Kind::DomainRule { HUMAN } else { "" };
        ResourceKey::parse("fund-admin", Some(self.kind), &self.name, qualifier, "").unwrap()
    }

    fn put(&self, word: &str) -> Put {
        let value = ResourceValue::new(&self.name, Learned::of(self.kind, word.to_owned()).unwrap());
        Put {
            key: self.key(),
            value,
            etag: None,
            reason: None,
            actor: operator(),
        }
    }

    /// The claim or edge, with what it needs, by a number of its own.
    fn target(&self, number: usize) -> pb::UpsertEvidenceRequest {
        let is_claim = self.kind == Kind::ClaimState;
        let claim = if is_claim {
            self.name.clone()
        } else {
            format!("of {}", self.name)
        };
        let mut request = support(number, "blog.example.org", &claim, 1, 0.9);
        if !is_claim {
            request.edges[0].edge_id.clone_from(&self.name);
        }
        request
    }

    async fn rulings(&self, app: &Capabilities) -> Vec<CandidateRecord> {
        let filter = CandidateFilter {
            reviewed: learning_store::contests::Involvement::default(),
            namespace: namespace(),
            kinds: vec![self.kind],
            statuses: Vec::new(),
            keys: vec![Key::parse(self.kind.rules().key, &self.name).unwrap()],
            user: None,
        };
        app.contests.list_candidates(&filter, None, 500).await.unwrap().0
    }

    /// The accept order of the newest ruling, which an operator has just written.
    async fn newest_order(&self, app: &Capabilities) -> i64 {
        let all = self.rulings(app).await;
        let orders = all.iter().filter_map(|record| record.candidate.ruling.as_ref());
        orders.map(|ruling| ruling.accept_order.0).max().unwrap()
    }

    /// How it stands in the evidence graph.
    async fn in_graph(&self, app: &Capabilities) -> String {
        match self.kind {
            Kind::DomainRule => String::new(),
            Kind::ClaimState => {
                let claim = claim(app, &self.name).await;
                format!("{:?} {:?}", claim.ruled, claim.status)
            }
            _ => {
                let filter = EdgeFilter {
                    namespace: namespace(),
                    claim: Some(EvidenceId::parse(&format!("of {}", self.name)).unwrap()),
                    relations: Vec::new(),
                    levels: Vec::new(),
                    reviewed: None,
                    corrected: None,
                    task: None,
                    edge: None,
                };
                let (edges, _) = app
                    .evidence
                    .edges(&filter, EdgePosition::default(), 2)
                    .await
                    .unwrap();
                let [(_, edge)] = &edges[..] else {
                    panic!("{} has one edge", self.name)
                };
                format!("{} {:?} {}", edge.relation, edge.ruled, edge.is_corrected())
            }
        }
    }
}

/// How something ended: what is in force, how it stands in the graph, and every ruling in the order of accept orders, each with its
/// status, whether it is effective, and whether it was approved.
type Ending = (Option<String>, String, Vec<(String, Status, bool, bool)>);

/// All that is in force, each as one word.
async fn in_force(app: &Capabilities) -> HashMap<ContestId, String> {
    let contents = app.store.contents().await.unwrap();
    let words = contents.resources.iter().map(|(contest, _, value)| {
        let value = emend_wire::value::decode(value).unwrap();
        (*contest, value.learned.maps_to().to_owned())
    });
    words.collect()
}

async fn ending(app: &Capabilities, subject: &Subject, in_force: &HashMap<ContestId, String>) -> Ending {
    let mut figures = Vec::new();
    for record in subject.rulings(app).await {
        let kept = record.candidate.ruling.clone().unwrap();
        figures.push((
            kept.accept_order,
            (
                record.candidate.value.learned.maps_to().to_owned(),
                record.candidate.status,
                record.candidate.is_effective(),
                kept.approved,
            ),
        ));
    }
    figures.sort_by_key(|(order, _)| *order);
    let figures = figures.into_iter().map(|(_, figures)| figures).collect();
    let word = in_force.get(&subject.key().contest_id()).cloned();
    (word, subject.in_graph(app).await, figures)
}

/// Something that is delivered.
#[derive(Debug, Clone)]
enum Delivery {
    Event(Box<IngestEvent>),
    /// The upsert of the claim or edge.
    Target,
}

/// A set of corrections of one thing: three, of which somebody entitled takes back the newest, and somebody who is not the one that
/// waits for review; and the upsert of what they are about, where they need it.
fn set_of_corrections(world: &World, subject: &Subject) -> Vec<Delivery> {
    let words = Subject::words(subject.kind);
    let mut events = Vec::new();
    for (place, (sender, taken_back_by)) in [
        (REVIEWER, None),
        (REPORTER, Some(REPORTER)),
        (REVIEWER, Some(REVIEWER)),
    ]
    .into_iter()
    .enumerate()
    {
        let mut event = subject.said(world, words[place], sender);
        event.accept_order = AcceptOrder(1 + i64::try_from(place).unwrap());
        events.extend(taken_back_by.map(|by| retraction(world, &event, by)));
        events.push(event);
    }
    let events = events.into_iter().map(|event| Delivery::Event(Box::new(event)));
    events
        .chain(subject.needs_target().then_some(Delivery::Target))
        .collect()
}

/// All orders of the numbers below this one.
fn permutations(of: usize) -> Vec<Vec<usize>> {
    let Some(last) = of.checked_sub(1) else {
        return vec![Vec::new()];
    };
    let shorter = permutations(last).into_iter();
    let longer = shorter.flat_map(|order| {
        (0..of).map(move |place| {
            let mut order = order.clone();
            order.insert(place, last);
            order
        })
    });
    longer.collect()
}

async fn every_permutation_of_delivery_ends_in_one_state(world: &World) {
    let app = world.instance().await;
    for kind in KINDS {
        let size = set_of_corrections(world, &Subject::new(kind, "none")).len();
        let told: Vec<_> = permutations(size)
            .into_iter()
            .enumerate()
            .map(|(number, order)| {
                let subject = Subject::new(kind, &format!("{}{number}", kind.name().replace('_', "-")));
                let set = set_of_corrections(world, &subject);
                let delivered: Vec<_> = order.iter().map(|place| set[*place].clone()).collect();
                (subject, order, delivered)
            })
            .collect();
        // All subjects' first deliveries, then all second ones: each subject sees its own order.
        for place in 0..size {
            let mut events = Vec::new();
            let mut targets = Vec::new();
            for (number, (subject, _, delivered)) in told.iter().enumerate() {
                match &delivered[place] {
                    Delivery::Event(event) => events.push((**event).clone()),
                    Delivery::Target => {
                        targets.push(subject.target(number + 1_000 * kind as usize));
                    }
                }
            }
            for events in events.chunks(100) {
                apply(&app, events).await;
            }
            for targets in targets.chunks(200) {
                upsert(&app, &together(targets)).await;
            }
        }
        let in_force = in_force(&app).await;
        let mut expected = None;
        for (subject, order, _) in &told {
            let found = ending(&app, subject, &in_force).await;
            assert_eq!(
                found.0.as_deref(),
                Some(Subject::words(kind)[0]),
                "{order:?}: only the first one is not taken back"
            );
            let expected = expected.get_or_insert_with(|| found.clone());
            assert_eq!(&found, expected, "{kind:?} in the order {order:?}");
        }
    }
    assert_sound(&app).await;
    assert_audited(world).await;
}

fn together(requests: &[pb::UpsertEvidenceRequest]) -> pb::UpsertEvidenceRequest {
    let mut all = pb::UpsertEvidenceRequest {
        namespace: "fund-admin".into(),
        ..pb::UpsertEvidenceRequest::default()
    };
    for request in requests {
        all.pages.extend(request.pages.iter().cloned());
        all.fragments.extend(request.fragments.iter().cloned());
        all.claims.extend(request.claims.iter().cloned());
        all.edges.extend(request.edges.iter().cloned());
    }
    all
}

/// One thing that happens to a subject, in the order of accept orders.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A correction: what it decides, by whom, and who takes it back, if anybody.
    Said(&'static str, &'static str, Option<&'static str>),
    /// An operator sets this.
    Put(&'static str),
    /// An operator deletes what is in force.
    Delete,
    /// An operator imports this.
    Import(&'static str),
    /// An operator sets this, and reverts it.
    PutAndRevert(&'static str),
    /// A reviewer decides.
    Review(Verdicts),
}

/// What a reviewer does with the correction of this number, if it waits.
#[derive(Debug, Clone, Copy)]
enum Verdicts {
    Approve(usize),
    Reject(usize),
}

impl Verdicts {
    const fn number(self) -> usize {
        match self {
            Self::Approve(number) | Self::Reject(number) => number,
        }
    }
}

/// Draws a random story about something of a kind.
fn story(kind: Kind, draw: &mut impl FnMut(usize) -> usize) -> (Vec<Step>, Vec<Verdicts>) {
    const SENDERS: [&str; 3] = [REPORTER, REVIEWER, "operator"];
    let words = Subject::words(kind);
    let (written, _) = Subject::operators_words(kind);
    let verdict = |draw: &mut dyn FnMut(usize) -> usize| match draw(2) {
        0 => Verdicts::Approve(draw(8)),
        _ => Verdicts::Reject(draw(8)),
    };
    let steps = (0..3 + draw(8)).map(|_| match draw(9) {
        0 => Step::Put(written[draw(2)]),
        1 => Step::Delete,
        2 => Step::Import(written[draw(2)]),
        3 => Step::PutAndRevert(written[draw(2)]),
        4 => Step::Review(verdict(draw)),
        _ => {
            let by = [None, None, Some(REPORTER), Some(REVIEWER)][draw(4)];
            Step::Said(words[draw(words.len())], SENDERS[draw(3)], by)
        }
    });
    let steps: Vec<_> = steps.collect();
    let verdicts = (0..draw(3)).map(|_| verdict(draw));
    (steps, verdicts.collect())
}

/// Tells a story: each correction and each retraction arrives after `delay` further steps, and before a reviewer decides about
/// it; so does the target, and before operators write, who name only what is known. What operators do happens in its place; before
/// it, whatever was said before it has an older accept order, and after it a newer one. What they write must not depend on what has
/// arrived, so something else is in force each time.
async fn tell(
    world: &World,
    app: &Capabilities,
    (subject, number): (&Subject, usize),
    (steps, verdicts): &(Vec<Step>, Vec<Verdicts>),
    mut delay: impl FnMut() -> usize,
) -> Ending {
    let (_, other) = Subject::operators_words(subject.kind);
    let mut waiting: Vec<(usize, IngestEvent)> = Vec::new();
    let mut said: Vec<Option<IngestEvent>> = Vec::new();
    let mut newest = 1;
    let arrives = delay();
    let mut target = subject.needs_target().then(|| subject.target(number));
    for (place, step) in steps.iter().enumerate() {
        let is_due = arrives <= place || !matches!(step, Step::Said(..) | Step::Review(_));
        if let Some(target) = target.take_if(|_| is_due) {
            upsert(app, &target).await;
        }
        match step {
            Step::Said(what, sender, by) => {
                let mut event = subject.said(world, what, sender);
                newest += 1;
                event.accept_order = AcceptOrder(newest);
                if let Some(by) = by {
                    let mut taken_back = retraction(world, &event, by);
                    taken_back.accept_order = event.accept_order;
                    waiting.push((place + delay(), taken_back));
                }
                waiting.push((place + delay(), event.clone()));
                said.push(Some(event));
            }
            Step::Review(verdict) => {
                let number = verdict.number();
                if let Some(Some(about)) = said.get(number).cloned() {
                    let (now, later): (Vec<_>, Vec<_>) = waiting
                        .into_iter()
                        .partition(|(_, event)| event.feedback == about.feedback);
                    waiting = later;
                    for (_, event) in now {
                        one(app, &event).await;
                    }
                    decide(app, &about, *verdict).await;
                }
                said.push(None);
            }
            written => {
                write(app, subject, other, *written).await;
                newest = subject.newest_order(app).await;
                said.push(None);
            }
        }
        let (now, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(at, _)| *at <= place);
        waiting = later;
        for (_, event) in now {
            one(app, &event).await;
        }
    }
    for (_, event) in waiting {
        one(app, &event).await;
    }
    if let Some(target) = target {
        upsert(app, &target).await;
    }
    for verdict in verdicts {
        if let Some(Some(event)) = said.get(verdict.number()) {
            decide(app, event, *verdict).await;
        }
    }
    ending(app, subject, &in_force(app).await).await
}

/// What an operator does.
async fn write(app: &Capabilities, subject: &Subject, other: &str, step: Step) {
    let put = async |word: &str| app.resources.put(&subject.put(word)).await.unwrap();
    match step {
        Step::Put(word) => {
            put(word).await;
        }
        Step::Import(word) => {
            put(other).await;
            let import = super::imports::import(Mode::AllOrNothing, ImportAs::Decision);
            let row = Row {
                line: 1,
                proposal: subject.proposal(word),
            };
            let imported = app.imports.import(&import, vec![row], &still).await;
            assert_eq!(imported.unwrap().applied, 1);
        }
        Step::PutAndRevert(word) => {
            put(other).await;
            put(word).await;
            revert(app, head(app).await).await;
        }
        Step::Delete => {
            put(other).await;
            let delete = Delete {
                key: subject.key(),
                etag: None,
                reason: None,
                actor: operator(),
            };
            app.resources.delete(&delete).await.unwrap();
        }
        Step::Said(..) | Step::Review(_) => {}
    }
}

/// Refused where it is in force or decided already, in every order alike.
async fn decide(app: &Capabilities, about: &IngestEvent, verdict: Verdicts) {
    let verdict: Verdict = match verdict {
        Verdicts::Approve(_) => approval(),
        Verdicts::Reject(_) => rejection(),
    };
    let candidate: CandidateId = ruling(about);
    let _ = review(app, candidate, None, verdict).await;
}

async fn every_order_of_arrival_gives_equal_resources_and_rulings(world: &World) {
    let app = world.instance().await;
    let seed = std::env::var("EMEND_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| Entropy::system().uuid_v4().as_u64_pair().0);
    let dice = Entropy::seeded(seed);
    let mut draw = |sides: usize| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "0 <= fraction < 1, and few sides"
        )]
        let drawn = (dice.fraction() * sides as f64) as usize;
        drawn
    };
    let mut told = 0;
    let mut subject = |kind: Kind| {
        told += 1;
        (Subject::new(kind, &format!("story{told}")), told)
    };
    for kind in KINDS {
        for _ in 0..12 {
            let story = story(kind, &mut draw);
            let (of, number) = subject(kind);
            let at_once = tell(world, &app, (&of, number), &story, || 0).await;
            for _ in 0..2 {
                let (of, number) = subject(kind);
                let late = tell(world, &app, (&of, number), &story, || draw(4)).await;
                assert_eq!(at_once, late, "EMEND_TEST_SEED={seed}, {kind:?}: {story:?}");
            }
        }
    }
    assert_sound(&app).await;
    assert_audited(world).await;
}
