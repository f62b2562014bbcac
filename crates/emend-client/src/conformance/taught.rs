//! What was learned of a small application, enough for a model of near answers.

use super::logs::{forbidden, log, own_verb};
use crate::server_log::ServerLog;

/// A verb, and what people say for it.
type Verb = (&'static str, [&'static str; 8]);

const VERBS: [Verb; 6] = [
    (
        "report_lost_card",
        [
            "i lost my card",
            "my card is lost",
            "i can not find my card",
            "someone stole my card",
            "my card was stolen yesterday",
            "please block my lost card",
            "i have lost my bank card",
            "card lost or stolen",
        ],
    ),
    (
        "show_balance",
        [
            "what is my balance",
            "show my balance",
            "how much money do i have",
            "balance of my account",
            "tell me my account balance",
            "current balance please",
            "how much is left in my account",
            "check the balance",
        ],
    ),
    (
        "transfer_money",
        [
            "transfer money to anna",
            "send money to a friend",
            "make a transfer",
            "i want to transfer funds",
            "send 20 euros to my sister",
            "transfer funds to another bank",
            "wire money abroad",
            "how do i send a transfer",
        ],
    ),
    (
        "change_pin",
        [
            "change my pin",
            "i want a new pin",
            "set another pin code",
            "how can i change the pin code",
            "reset the pin of my account",
            "my pin must be changed",
            "choose a different pin",
            "update my pin number",
        ],
    ),
    (
        "close_account",
        [
            "close my account",
            "i want to close the account",
            "delete my bank account",
            "cancel the account for good",
            "how do i close an account",
            "terminate my account",
            "please shut down my account",
            "end my account with you",
        ],
    ),
    (
        "exchange_rate",
        [
            "what is the exchange rate",
            "exchange rate for dollars",
            "how many yen for a euro",
            "rate of the pound today",
            "show exchange rates",
            "current rate for swiss francs",
            "currency rates please",
            "what rate do you use for currencies",
        ],
    ),
];

/// Each phrase and its verb.
pub(super) fn phrases() -> Vec<(&'static str, &'static str)> {
    let phrases = VERBS
        .iter()
        .flat_map(|(verb, phrases)| phrases.iter().map(|phrase| (*phrase, *verb)));
    phrases.collect()
}

/// A choice that is prohibited for a phrase, and for whom; empty: for everybody.
pub(super) const PROHIBITED: [[&str; 3]; 2] = [
    ["the card that i lost", "report_lost_card", ""],
    ["tell me what my balance is", "show_balance", "joe"],
];

/// Phrases and prohibitions, the phrases in one commit each.
pub(super) fn in_order() -> ServerLog {
    let mut commits: Vec<_> = phrases()
        .into_iter()
        .map(|(phrase, verb)| vec![own_verb(phrase, verb, "")])
        .collect();
    commits.push(prohibitions());
    log(commits)
}

/// The same by another way: backwards, with a phrase of a user's own, and with what was learned wrongly at first.
pub(super) fn by_another_way() -> ServerLog {
    let mut wrong = vec![
        own_verb("i lost my card", "show_balance", ""),
        own_verb("open the window", "close_account", ""),
    ];
    wrong.extend(prohibitions());
    let mut commits = vec![wrong];
    commits.extend(
        phrases()
            .into_iter()
            .rev()
            .map(|(phrase, verb)| vec![own_verb(phrase, verb, "")]),
    );
    let (key, _) = own_verb("open the window", "close_account", "");
    commits.push(vec![
        (key, None),
        own_verb("tell me what is left", "close_account", "ann"),
    ]);
    log(commits)
}

fn prohibitions() -> super::logs::Changes {
    let all = PROHIBITED.map(|[phrase, choice, user]| forbidden(phrase, choice, user));
    all.into()
}
