//! What happens on the day, and the expected answers. The data is made up; any resemblance is coincidence.
//!
//! It must know nothing of how it is played.

use emend_proto::common::v1::OutcomeState;

use crate::words::Kind;

/// The search application.
pub(super) const NAMESPACE: &str = "fund-admin";

/// Something that happens, and what both nodes must answer afterwards.
#[derive(Debug)]
pub(super) struct Step {
    /// When, by the story's clock.
    pub at: &'static str,
    /// In words.
    pub told: &'static str,
    /// What is done.
    pub act: Act,
    /// What both nodes are asked before and after.
    pub ask: Question,
    /// What they must answer after it.
    pub expect: Answer,
}

/// What somebody does.
#[derive(Debug)]
pub(super) enum Act {
    /// Reporters say the same, one after the other; the last one gets this outcome.
    Say {
        reporters: &'static [&'static str],
        what: Said,
        outcome: OutcomeState,
    },
    /// A reporter retracts what they said about the question's phrase.
    Retract { reporter: &'static str },
    /// An operator approves a choice for the question's phrase.
    Approve { choice: &'static str },
    /// An operator sets a choice for the question's phrase by hand.
    Put { choice: &'static str },
    /// An operator reverts the newest revision.
    RevertNewest,
}

/// What is said.
#[derive(Debug, Clone, Copy)]
pub(super) enum Said {
    /// Another verb is right for these words.
    Verb {
        words: &'static str,
        is: &'static str,
        instead_of: &'static str,
    },
    /// Another entity is right for these words.
    Entity {
        words: &'static str,
        is: &'static str,
        instead_of: &'static str,
    },
    /// Never this choice.
    Never {
        words: &'static str,
        choice: &'static str,
    },
    /// For me alone, these words mean a verb.
    ForMe { words: &'static str, is: &'static str },
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

const CSA: Question = Question {
    kind: Kind::InvocationPhrase,
    phrase: "set up a CSA",
    user: "",
};
const SMITH: Question = Question {
    kind: Kind::EntityAlias,
    phrase: "J. Smith",
    user: "",
};
const WIND_DOWN: Question = Question {
    kind: Kind::InvocationPhrase,
    phrase: "wind down the fund",
    user: "",
};
const PACK: Question = Question {
    kind: Kind::InvocationPhrase,
    phrase: "send my usual pack",
    user: "mia",
};
const LUX: Question = Question {
    kind: Kind::EntityAlias,
    phrase: "the Lux fund",
    user: "",
};

const ISDA: Said = Said::Verb {
    words: "set up a CSA",
    is: "create_isda",
    instead_of: "create_csa",
};
/// The same words in full-width letters and with more spaces.
const ISDA_WIDE: Said = Said::Verb {
    words: "  Ｓｅｔ up　a  CSA ",
    is: "create_isda",
    instead_of: "create_csa",
};

/// What the search backend answers by itself, best first: (choice, score).
pub(super) fn backend(question: Question) -> &'static [(&'static str, f64)] {
    match question.phrase {
        "set up a CSA" => &[("create_csa", 0.83), ("create_isda", 0.61)],
        "J. Smith" => &[("john.smith", 0.74), ("jane.smith", 0.73)],
        "wind down the fund" => &[("delete_fund", 0.70), ("liquidate_fund", 0.66)],
        "send my usual pack" => &[("send_courier", 0.42), ("send_nav_pack", 0.40)],
        "the Lux fund" => &[("fund:lux-1", 0.66), ("fund:lux-2", 0.64)],
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
    let say = |reporters, what, outcome| Act::Say {
        reporters,
        what,
        outcome,
    };
    vec![
        Step {
            at: "09:02",
            told: "Ana: “set up a CSA” meant an ISDA. One of three: noted.",
            act: say(&["ana"], ISDA, OutcomeState::Pending),
            ask: CSA,
            expect: own("create_csa"),
        },
        Step {
            at: "09:20",
            told: "Ben and Chloé say so too. Three of three: learned.",
            act: say(&["ben", "chloe"], ISDA_WIDE, OutcomeState::Applied),
            ask: CSA,
            expect: learned("create_isda"),
        },
        Step {
            at: "10:05",
            told: "Dev disagrees: one rival against three changes nothing.",
            act: say(
                &["dev"],
                Said::Verb {
                    words: "set up a CSA",
                    is: "create_csa",
                    instead_of: "create_isda",
                },
                OutcomeState::Pending,
            ),
            ask: CSA,
            expect: learned("create_isda"),
        },
        Step {
            at: "10:40",
            told: "Ana: the other “J. Smith”. An alias is low risk: at once.",
            act: say(
                &["ana"],
                Said::Entity {
                    words: "J. Smith",
                    is: "jane.smith",
                    instead_of: "john.smith",
                },
                OutcomeState::Applied,
            ),
            ask: SMITH,
            expect: learned("jane.smith"),
        },
        Step {
            at: "11:30",
            told: "Three: never “delete_fund” for “wind down the fund”.",
            act: say(
                &["ana", "ben", "eve"],
                Said::Never {
                    words: "wind down the fund",
                    choice: "delete_fund",
                },
                OutcomeState::Applied,
            ),
            ask: WIND_DOWN,
            expect: own("liquidate_fund"),
        },
        Step {
            at: "13:15",
            told: "Mia, for herself: “send my usual pack” is the NAV pack.",
            act: say(
                &["mia"],
                Said::ForMe {
                    words: "send my usual pack",
                    is: "send_nav_pack",
                },
                OutcomeState::Applied,
            ),
            ask: PACK,
            expect: learned("send_nav_pack"),
        },
        Step {
            at: "14:00",
            told: "Ben takes his back. Two are too few: withdrawn.",
            act: Act::Retract { reporter: "ben" },
            ask: CSA,
            expect: own("create_csa"),
        },
        Step {
            at: "14:30",
            told: "Dana, an operator, approves the ISDA: pinned.",
            act: Act::Approve {
                choice: "create_isda",
            },
            ask: CSA,
            expect: learned("create_isda"),
        },
        Step {
            at: "15:10",
            told: "Four more want the CSA. It awaits review: Dana decided.",
            act: say(
                &["eve", "finn", "gus", "hal"],
                Said::Verb {
                    words: "set up a CSA",
                    is: "create_csa",
                    instead_of: "create_isda",
                },
                OutcomeState::AwaitingReview,
            ),
            ask: CSA,
            expect: learned("create_isda"),
        },
        Step {
            at: "16:00",
            told: "Dana sets “the Lux fund” to the wrong one of two.",
            act: Act::Put { choice: "fund:lux-2" },
            ask: LUX,
            expect: learned("fund:lux-2"),
        },
        Step {
            at: "16:05",
            told: "Dana takes that back, by one revert.",
            act: Act::RevertNewest,
            ask: LUX,
            expect: own("fund:lux-1"),
        },
    ]
}
