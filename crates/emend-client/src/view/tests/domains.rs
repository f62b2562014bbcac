//! How far a node trusts the sources of domains.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use emend_base::Entropy;
use emend_core::{
    DomainDecision, DomainRule, Layer,
    evidence::{Covering, RulesOfName, deciding},
};

use super::*;

/// Rules in force, by pattern and layer, each with the revision that applied it.
type Rules = BTreeMap<(String, Layer), (&'static str, i64)>;

/// The level of a host, whether it is blocked, and what decided that.
type Answer = (
    TrustLevel,
    bool,
    Option<(Layer, String, DomainDecision, Revision)>,
);

/// What learning-svc answers: it finds the levels that its RPCs report (`levels` in `evidence/store/levels_sql.rs`) with
/// [`deciding`], by the rules of each name, which it reads from its database.
struct Service<'r>(HashMap<&'r str, RulesOfName<Revision>>);

impl<'r> Service<'r> {
    fn with(rules: &'r Rules) -> Self {
        let mut by_name: HashMap<&str, RulesOfName<Revision>> = HashMap::new();
        for ((pattern, layer), (decision, revision)) in rules {
            let rule = DomainRule::parse(decision).unwrap();
            let of_name = by_name.entry(Covering::of(pattern).name).or_default();
            of_name.set(pattern, *layer, Some((rule, Revision(*revision))));
        }
        Self(by_name)
    }

    fn answer(&self, host: &str) -> Answer {
        let decided = deciding(host, Layers::All, |name| self.0.get(name));
        let level = decided.as_ref().map(|rule| rule.level).unwrap_or_default();
        let by = decided.map(|rule| {
            (
                rule.layer,
                rule.covering.pattern(),
                rule.rule.decision(),
                rule.with,
            )
        });
        (level, level == TrustLevel::Blocked, by)
    }
}

/// What a node answers.
fn answer_of(view: &LearnedView, host: &str) -> Answer {
    let reading = view.read();
    let trust = reading.trust(&namespace(), host);
    let by = trust.decided_by;
    let by = by.map(|by| (by.layer, by.pattern, by.decision, by.revision));
    (trust.level, reading.is_blocked(&namespace(), host), by)
}

/// Draws a name of `least` to five labels.
fn name(draw: &mut impl FnMut(usize) -> usize, least: usize) -> String {
    let labels = (0..least + draw(6 - least)).map(|_| ["a", "b", "c", "d", "e", "f", "g", "h"][draw(8)]);
    labels.collect::<Vec<_>>().join(".")
}

#[test]
fn a_node_answers_as_the_service_does_for_a_hundred_thousand_hosts() {
    const DECISIONS: [&str; 6] = ["block", "unblock", "unblock:low", "primary", "academic", "low"];
    let seed = std::env::var("EMEND_TEST_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok());
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
    let mut rules = Rules::new();
    for revision in 1..=600 {
        let below = ["", "*."][draw(2)];
        let pattern = format!("{below}{}", name(&mut draw, 2));
        let layer = Layer::ALL[draw(3)];
        rules.insert((pattern, layer), (DECISIONS[draw(6)], revision));
    }
    let (mut publisher, view) = view();
    let facts = rules.iter().map(|((pattern, layer), (decision, revision))| {
        layer_fact(*layer, pattern, Some(decision), *revision)
    });
    publisher.replace(rules.len(), facts, Revision(600));
    let service = Service::with(&rules);
    let mut decided_by = BTreeSet::new();
    for _ in 0..100_000 {
        let host = name(&mut draw, 1);
        let (found, expected) = (answer_of(&view, &host), service.answer(&host));
        assert_eq!(found, expected, "EMEND_TEST_SEED={seed}, {host}");
        decided_by.insert(found.2.map(|(layer, pattern, ..)| {
            let inherits = Covering::of(&pattern).name.len() < host.len();
            (layer, inherits, pattern.starts_with("*."))
        }));
    }
    let three_ways =
        Layer::ALL.map(|layer| [(layer, false, false), (layer, true, false), (layer, true, true)]);
    let mut ways: BTreeSet<_> = three_ways.into_iter().flatten().map(Some).collect();
    ways.insert(None);
    assert_eq!(
        decided_by, ways,
        "every layer decided in every way, and the default did"
    );
}

pub(super) fn domain_fact(pattern: &str, decision: Option<&str>, revision: i64) -> Fact<'static> {
    layer_fact(Layer::Human, pattern, decision, revision)
}

fn layer_fact(layer: Layer, pattern: &str, decision: Option<&str>, revision: i64) -> Fact<'static> {
    Fact {
        namespace: "fund-admin",
        kind: Kind::DomainRule,
        key: Box::leak(pattern.to_owned().into_boxed_str()),
        qualifier: layer.name(),
        user_id: "",
        revision: Revision(revision),
        value: decision.map(|decision| {
            let rule = Learned::of(Kind::DomainRule, decision.to_owned()).unwrap();
            Cow::Owned(ResourceValue::new(pattern, rule))
        }),
    }
}

#[test]
fn a_domain_and_a_phrase_of_one_name_do_not_disturb_each_other() {
    let (mut publisher, view) = view();
    let facts = [
        fact("example.org", Kind::InvocationPhrase, "", "open_site", 1),
        domain_fact("example.org", Some("block"), 1),
        domain_fact("*.example.org", Some("academic"), 1),
    ];
    publisher.replace(3, facts, Revision(1));
    let namespace = namespace();
    assert!(view.is_blocked(&namespace, "Example.org.").unwrap());
    assert_eq!(
        view.trust(&namespace, "www.example.org").unwrap().level,
        TrustLevel::Academic
    );
    publisher.apply([domain_fact("example.org", None, 2)], Revision(2));
    assert!(!view.is_blocked(&namespace, "example.org").unwrap());
    let found = resolved(&view, "example.org", None).found.unwrap();
    assert_eq!(found.value, "open_site");
    assert!(view.trust(&namespace, "a b").is_err());
}

proptest::proptest! {
    #[test]
    fn a_node_trusts_a_host_as_the_service_does(
        steps in proptest::collection::vec(
            ("(\\*\\.)?[ab](\\.[ab]){0,2}", 0..3usize, proptest::option::of(0..4usize)), 1..40,
        ),
        hosts in proptest::collection::vec("[ab](\\.[ab]){0,3}", 1..8),
        merge in proptest::prelude::any::<bool>(),
    ) {
        const DECISIONS: [&str; 4] = ["block", "unblock", "unblock:low", "primary"];
        let (mut publisher, view) = view();
        let mut rules = Rules::new();
        for (revision, (pattern, layer, decision)) in (1..).zip(&steps) {
            let (layer, decision) = (Layer::ALL[*layer], decision.map(|at| DECISIONS[at]));
            publisher.apply([layer_fact(layer, pattern, decision, revision)], Revision(revision));
            match decision {
                Some(decision) => rules.insert((pattern.clone(), layer), (decision, revision)),
                None => rules.remove(&(pattern.clone(), layer)),
            };
        }
        if merge {
            let facts = rules.iter().map(|((pattern, layer), (decision, revision))| {
                layer_fact(*layer, pattern, Some(decision), *revision)
            });
            publisher.replace(rules.len(), facts, Revision(99));
        }
        let service = Service::with(&rules);
        for host in &hosts {
            let (found, expected) = (answer_of(&view, host), service.answer(host));
            proptest::prop_assert_eq!(found, expected, "{}", host);
        }
    }
}
