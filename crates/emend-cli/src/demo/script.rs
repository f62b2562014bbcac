//! What happens on the day, and the expected answers. The data is made up; any resemblance is coincidence.

use emend_core::{EdgeRelation, Kind};
use emend_proto::common::v1::OutcomeState;

/// The search application.
pub(super) const NAMESPACE: &str = "fund-admin";

/// Something that happens, and what both nodes must answer afterwards.
#[derive(Debug)]
pub(super) struct Step {
    /// When, by the story's clock.
    pub at: &'static str,
    /// What happens, in words.
    pub story: &'static str,
    /// What is done.
    pub action: Action,
    /// What both nodes are asked before and after.
    pub ask: Question,
    /// What they must answer after it.
    pub expect: Answer,
}

/// What somebody does.
#[derive(Debug)]
pub(super) enum Action {
    /// Reporters submit the same correction, one after the other; the last one gets this outcome.
    Submit {
        reporters: &'static [&'static str],
        correction: Correction,
        outcome: OutcomeState,
    },
    /// A reporter retracts their correction of the question's phrase.
    Retract { reporter: &'static str },
    /// An operator approves a choice for the question's phrase.
    Approve { choice: &'static str },
    /// An operator sets a choice for the question's phrase by hand.
    Put { choice: &'static str },
    /// An operator reverts the newest revision.
    RevertNewest,
    /// Reporters rate outputs of the question's target, and a better prompt is proposed.
    RateAndPropose(BadSummaries),
    /// An operator approves what was proposed.
    ApproveProposal,
}

/// Outputs that people find bad for one reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct BadSummaries {
    pub reporters: &'static [&'static str],
    /// The version of the prompt that made them.
    pub version: &'static str,
    pub input: &'static str,
    pub output: &'static str,
    pub issue: &'static str,
    pub corrected: &'static str,
}

/// A correction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Correction {
    /// Another verb is right for the phrase.
    Verb {
        phrase: &'static str,
        choice: &'static str,
        instead_of: &'static str,
    },
    /// Another entity is right for the phrase.
    Entity {
        phrase: &'static str,
        choice: &'static str,
        instead_of: &'static str,
    },
    /// This choice must never be offered for the phrase.
    Never {
        phrase: &'static str,
        choice: &'static str,
    },
    /// The phrase means a verb, for the reporter alone.
    ForMe {
        phrase: &'static str,
        choice: &'static str,
    },
    /// One term stands for another.
    StandsFor {
        term: &'static str,
        representative: &'static str,
    },
    /// An edge of the evidence should have this label.
    Label { edge: &'static str, label: EdgeRelation },
    /// The sources that a pattern of domains covers must not be shown.
    Block {
        pattern: &'static str,
        reason: &'static str,
    },
}

/// What a node is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    pub kind: Kind,
    pub phrase: &'static str,
    /// Who asks; empty for anybody.
    pub user: &'static str,
}

/// What a node answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub choice: String,
    /// Whether it is learned or the backend's own.
    pub learned: bool,
}

/// A question that anybody may ask.
const fn question(kind: Kind, phrase: &'static str) -> Question {
    Question {
        kind,
        phrase,
        user: "",
    }
}

const CSA: Question = question(Kind::InvocationPhrase, "set up a CSA");
const SMITH: Question = question(Kind::EntityAlias, "J. Smith");
const WIND_DOWN: Question = question(Kind::InvocationPhrase, "wind down the fund");
const PACK: Question = Question {
    kind: Kind::InvocationPhrase,
    phrase: "send my usual pack",
    user: "mia",
};
const LUX: Question = question(Kind::EntityAlias, "the Lux fund");

/// Queries that are searched for in titles, whatever language they are in.
const NAV: Question = question(Kind::Synonym, "NAV Q3");
const CHARGES: Question = question(Kind::Synonym, "手数料の一覧");
/// What the paper says of the claim.
pub(super) const PAPER: Question = question(Kind::EdgeLabel, "edge:paper");
/// Which version of the prompt an AI is asked with.
pub(super) const SUMMARY: Question = question(Kind::Prompt, "SUMMARIZE_DAILY");
/// Which source comes first.
const FEES: Question = question(Kind::DomainRule, "does the fund pay fees");

/// Another verb is right for a phrase.
const fn verb(phrase: &'static str, choice: &'static str, instead_of: &'static str) -> Correction {
    Correction::Verb {
        phrase,
        choice,
        instead_of,
    }
}

const ISDA: Correction = verb("set up a CSA", "create_isda", "create_csa");
/// The same phrase in full-width letters and with more spaces.
const ISDA_WIDE: Correction = verb("  Ｓｅｔ up　a  CSA ", "create_isda", "create_csa");

/// The titles that queries are searched for in.
const TITLES: &[(&str, f64)] = &[("asset value Q3", 1.0), ("信託報酬一覧", 1.0)];

/// What the search backend answers by itself, best first, and for a query the titles that there are: (choice, score).
pub(super) fn backend(question: Question) -> &'static [(&'static str, f64)] {
    match question.phrase {
        "set up a CSA" => &[("create_csa", 0.83), ("create_isda", 0.61)],
        "J. Smith" => &[("john.smith", 0.74), ("jane.smith", 0.73)],
        "wind down the fund" => &[("delete_fund", 0.70), ("liquidate_fund", 0.66)],
        "send my usual pack" => &[("send_courier", 0.42), ("send_nav_pack", 0.40)],
        "the Lux fund" => &[("fund:lux-1", 0.66), ("fund:lux-2", 0.64)],
        "NAV Q3" | "手数料の一覧" => TITLES,
        "edge:paper" => &[("neutral", 0.88)],
        "SUMMARIZE_DAILY" => &[("no prompt", 1.0)],
        "does the fund pay fees" => &[("gossip.example", 0.9), ("papers.example", 0.7)],
        _ => &[],
    }
}

fn learned(choice: &str) -> Answer {
    Answer {
        choice: choice.into(),
        learned: true,
    }
}

fn own(choice: &str) -> Answer {
    Answer {
        choice: choice.into(),
        learned: false,
    }
}

/// The day.
pub(super) fn day() -> Vec<Step> {
    let submit = |reporters, correction, outcome| Action::Submit {
        reporters,
        correction,
        outcome,
    };
    let stands_for = |term, representative| Correction::StandsFor { term, representative };
    vec![
        Step {
            at: "09:02",
            story: "Ana: “set up a CSA” means ISDA. One vote of three: noted.",
            action: submit(&["ana"], ISDA, OutcomeState::Pending),
            ask: CSA,
            expect: own("create_csa"),
        },
        Step {
            at: "09:20",
            story: "Ben and Chloé agree. Three votes of three: learned.",
            action: submit(&["ben", "chloe"], ISDA_WIDE, OutcomeState::Applied),
            ask: CSA,
            expect: learned("create_isda"),
        },
        Step {
            at: "10:05",
            story: "Dev disagrees: one vote against three changes nothing.",
            action: submit(
                &["dev"],
                verb("set up a CSA", "create_csa", "create_isda"),
                OutcomeState::Pending,
            ),
            ask: CSA,
            expect: learned("create_isda"),
        },
        Step {
            at: "10:40",
            story: "Ana: the other “J. Smith”. Aliases are low risk: at once.",
            action: submit(
                &["ana"],
                Correction::Entity {
                    phrase: "J. Smith",
                    choice: "jane.smith",
                    instead_of: "john.smith",
                },
                OutcomeState::Applied,
            ),
            ask: SMITH,
            expect: learned("jane.smith"),
        },
        Step {
            at: "11:30",
            story: "Three votes: never “delete_fund” for “wind down the fund”.",
            action: submit(
                &["ana", "ben", "eve"],
                Correction::Never {
                    phrase: "wind down the fund",
                    choice: "delete_fund",
                },
                OutcomeState::Applied,
            ),
            ask: WIND_DOWN,
            expect: own("liquidate_fund"),
        },
        Step {
            at: "13:15",
            story: "Mia, for herself: “send my usual pack” is the NAV pack.",
            action: submit(
                &["mia"],
                Correction::ForMe {
                    phrase: "send my usual pack",
                    choice: "send_nav_pack",
                },
                OutcomeState::Applied,
            ),
            ask: PACK,
            expect: learned("send_nav_pack"),
        },
        Step {
            at: "14:00",
            story: "Ben retracts his vote. Two are too few: withdrawn.",
            action: Action::Retract { reporter: "ben" },
            ask: CSA,
            expect: own("create_csa"),
        },
        Step {
            at: "14:30",
            story: "Dana, an operator, approves the ISDA: pinned.",
            action: Action::Approve {
                choice: "create_isda",
            },
            ask: CSA,
            expect: learned("create_isda"),
        },
        Step {
            at: "15:10",
            story: "Four want the CSA. It awaits review: Dana decided before.",
            action: submit(
                &["eve", "finn", "gus", "hal"],
                verb("set up a CSA", "create_csa", "create_isda"),
                OutcomeState::AwaitingReview,
            ),
            ask: CSA,
            expect: learned("create_isda"),
        },
        Step {
            at: "16:00",
            story: "Dana sets “the Lux fund” to the wrong one of two.",
            action: Action::Put { choice: "fund:lux-2" },
            ask: LUX,
            expect: learned("fund:lux-2"),
        },
        Step {
            at: "16:05",
            story: "Dana reverts that revision.",
            action: Action::RevertNewest,
            ask: LUX,
            expect: own("fund:lux-1"),
        },
        Step {
            at: "16:40",
            story: "Three votes: who searches for “NAV” finds “asset value”.",
            action: submit(
                &["ana", "ben", "eve"],
                stands_for("NAV", "asset value"),
                OutcomeState::Applied,
            ),
            ask: NAV,
            expect: learned("asset value Q3"),
        },
        Step {
            at: "16:50",
            story: "“手数料の一覧” (fee list): three votes, and it finds 信託報酬.",
            action: submit(
                &["ana", "ben", "eve"],
                stands_for("手数料", "信託報酬"),
                OutcomeState::Applied,
            ),
            ask: CHARGES,
            expect: learned("信託報酬一覧"),
        },
        Step {
            at: "17:05",
            story: "Ana: the paper refutes a claim; the model missed that.",
            action: submit(
                &["ana"],
                Correction::Label {
                    edge: PAPER.phrase,
                    label: EdgeRelation::Refutes,
                },
                OutcomeState::Applied,
            ),
            ask: PAPER,
            expect: learned("refutes"),
        },
        Step {
            at: "17:10",
            story: "Eve blocks a blog of gossip: the ranking leaves it out.",
            action: submit(
                &["eve"],
                Correction::Block {
                    pattern: "gossip.example",
                    reason: "makes up prices",
                },
                OutcomeState::Applied,
            ),
            ask: FEES,
            expect: learned("papers.example"),
        },
        Step {
            at: "17:20",
            story: "Dana puts the prompt with which an AI writes the summary.",
            action: Action::Put {
                choice: "Summarise the day for the fund's board.\n",
            },
            ask: SUMMARY,
            expect: learned("version 1"),
        },
        Step {
            at: "17:30",
            story: "Three rate summaries as bad; a better prompt is proposed:",
            action: Action::RateAndPropose(BadSummaries {
                reporters: &["ana", "ben", "eve"],
                version: "1",
                input: "NAV 101.2, up 0.4 %. Two subscriptions, no redemptions.",
                output: "It was a day on which many things happened to the fund, all of them of interest.",
                issue: "has no figures",
                corrected: "NAV 101.2 (+0.4 %); two subscriptions.",
            }),
            ask: SUMMARY,
            expect: learned("version 1"),
        },
        Step {
            at: "17:40",
            story: "Dana has read the diff and approves: all nodes render it.",
            action: Action::ApproveProposal,
            ask: SUMMARY,
            expect: learned("version 2"),
        },
    ]
}
