//! The results of a replay as JSON.

use serde_json::{Value, json};

use super::{Report, TestSet, share};
use crate::replay::Settings;

impl Report {
    /// The report as one JSON document.
    pub fn to_json(&self) -> Value {
        let days: Vec<_> = self
            .days
            .iter()
            .map(|day| {
                json!({
                    "day": day.number,
                    "queries": day.queries,
                    "hits": day.hits,
                    "hitRate": share(day.hits, day.queries),
                    "baseHits": day.base_hits,
                    "baseHitRate": share(day.base_hits, day.queries),
                    "learned": day.learned,
                    "learnedShare": share(day.learned, day.queries),
                    "learnedHits": day.learned_hits,
                    "correctionsNeeded": day.corrections_needed(),
                    "correctionsSubmitted": day.corrections,
                    "confirmationsSubmitted": day.confirmations,
                    "promotions": day.promotions,
                    "wrongPromotions": day.wrong_promotions,
                    "phrasesLearned": day.phrases,
                    "trafficCovered": day.covered,
                    "near": day.near,
                    "nearShare": share(day.near, day.queries),
                    "nearHits": day.near_hits,
                    "nearHitRate": share(day.near_hits, day.near),
                    "hitsWithNear": day.hits_with_near,
                    "hitRateWithNear": share(day.hits_with_near, day.queries),
                    "test": test_set(&day.test),
                })
            })
            .collect();
        let (promotions, wrong) = self.promotions();
        let Settings {
            namespace,
            days: _,
            queries_per_day,
            reporters,
            noise,
            colluders,
            habits,
            zipf_exponent,
            threshold,
            near,
            seed,
        } = &self.settings;
        json!({
            "settings": {
                "namespace": namespace,
                "days": self.settings.days,
                "queriesPerDay": queries_per_day,
                "reporters": reporters,
                "noise": noise,
                "colluders": colluders,
                "attackRightAnswers": habits.attack_right_answers,
                "confirmations": habits.confirmations,
                "zipfExponent": zipf_exponent,
                "threshold": threshold,
                "nearMinConfidence": near.min_confidence,
                "nearAnswered": near.answered,
                "seed": seed,
            },
            "people": {
                "honest": self.people.honest,
                "erring": self.people.erring,
                "colluding": self.people.colluding,
                "colludersPush": self.people.target,
            },
            "dataset": {"labels": self.labels, "utterances": self.utterances, "leftOut": self.left_out},
            "days": days,
            "promotions": promotions,
            "wrongPromotions": wrong,
            "wrongPromotionShare": share(wrong, promotions),
            "test": test_set(&self.test),
            "audit": {
                "submitted": self.audit.submitted,
                "stored": self.audit.stored,
                "evaluated": self.audit.evaluated,
                "counted": self.audit.counted,
                "deadLetters": self.audit.dead_letters,
                "awaitingReview": self.audit.awaiting_review,
                "revisions": self.audit.revisions,
                "resources": self.audit.resources,
                "wrongResources": self.audit.wrong_resources,
                "onTheNode": self.audit.on_the_node,
                "problems": self.audit.problems,
            },
            "seconds": self.seconds,
        })
    }
}

fn test_set(test: &TestSet) -> Value {
    json!({
        "queries": test.queries,
        "hits": test.hits,
        "hitRate": share(test.hits, test.queries),
        "baseHits": test.base_hits,
        "baseHitRate": share(test.base_hits, test.queries),
        "learned": test.learned,
        "near": test.near,
        "nearShare": share(test.near, test.queries),
        "nearHits": test.near_hits,
        "nearHitRate": share(test.near_hits, test.near),
        "hitsAtAnyConfidence": test.hits_at_any_confidence,
        "hitRateAtAnyConfidence": share(test.hits_at_any_confidence, test.queries),
    })
}
