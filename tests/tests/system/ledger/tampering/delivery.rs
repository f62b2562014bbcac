//! What both services know of an event, compared.

use emend_tests::harness::system::Service::{Feedback, Learning};

use super::Case;

pub(super) const CASES: &[Case] = &[
    (
        "OUTCOME_DIFFERS",
        Learning,
        "UPDATE inbox SET outcome = {touched:outcome}",
    ),
    (
        "BALLOT_CANDIDATE",
        Learning,
        concat!(
            "UPDATE ballots SET candidate_id = {new_id} WHERE feedback_id = ",
            counting!()
        ),
    ),
    (
        "BALLOT_RETRACTED",
        Learning,
        concat!(
            "UPDATE ballots SET retracted = 1 WHERE feedback_id = ",
            counting!()
        ),
    ),
    ("BALLOT_RETRACTED", Learning, "DELETE FROM retraction_marks"),
    (
        "BALLOT_DETAILS",
        Learning,
        concat!("DELETE FROM ballot_details WHERE feedback_id = ", counting!()),
    ),
    (
        "BALLOT_DETAILS",
        Learning,
        "INSERT INTO redaction_marks (feedback_id, event_id, caller, marked_at)
         SELECT DISTINCT feedback_id, feedback_id, 'anonymous', 1 FROM inbox",
    ),
    (
        "INBOX_EFFECT",
        Learning,
        concat!("DELETE FROM ballots WHERE feedback_id = ", counting!()),
    ),
    (
        "EFFECT_INBOX",
        Learning,
        concat!("DELETE FROM inbox WHERE feedback_id = ", counting!()),
    ),
    (
        "EFFECT_INBOX",
        Learning,
        "UPDATE retraction_marks SET event_id = {new_id}",
    ),
    (
        "INBOX_FEEDBACK",
        Feedback,
        concat!(
            "DELETE FROM feedback_personal WHERE accept_order = ",
            oldest!(),
            "; DELETE FROM feedback_status WHERE accept_order = ",
            oldest!(),
            "; DELETE FROM request_ids WHERE accept_order = ",
            oldest!(),
            "; DELETE FROM feedback WHERE accept_order = ",
            oldest!(),
        ),
    ),
    (
        "INBOX_MISSING",
        Learning,
        concat!("DELETE FROM inbox WHERE feedback_id = ", counting!()),
    ),
    (
        "INBOX_MISSING",
        Learning,
        "DELETE FROM inbox WHERE event_id IN (SELECT event_id FROM retraction_marks)",
    ),
    (
        "INBOX_SURPLUS",
        Learning,
        "INSERT INTO inbox (event_id, feedback_id, applied_at, outcome)
         SELECT {new_id}, feedback_id, applied_at, outcome FROM inbox LIMIT 1",
    ),
    (
        "BALLOT_MISSING",
        Learning,
        concat!("DELETE FROM ballots WHERE feedback_id = ", counting!()),
    ),
    (
        "BALLOT_DIFFERS",
        Learning,
        "UPDATE ballots SET voter = (SELECT voter FROM ballots ORDER BY voter LIMIT 1)",
    ),
    (
        "BALLOT_DIFFERS",
        Learning,
        concat!(
            "UPDATE ballots SET accept_order = 1 WHERE feedback_id = ",
            counting!()
        ),
    ),
    (
        "BALLOT_DIFFERS",
        Learning,
        "UPDATE ballots SET received_at = received_at + 1",
    ),
    ("BALLOT_DIFFERS", Learning, "UPDATE ballots SET identified = 0"),
    (
        "BALLOT_DIFFERS",
        Learning,
        "UPDATE ballots SET system_choice = 'other'",
    ),
    (
        "RETRACTION_DIFFERS",
        Learning,
        "INSERT INTO retraction_marks (feedback_id, event_id, caller, sender_roles, marked_at)
         SELECT DISTINCT feedback_id, feedback_id, 'anonymous', '', 1 FROM inbox
         WHERE feedback_id NOT IN (SELECT feedback_id FROM retraction_marks)",
    ),
    ("RETRACTION_DIFFERS", Learning, "DELETE FROM retraction_marks"),
    (
        "OUTCOME_DIFFERS",
        Feedback,
        "UPDATE feedback_status SET outcome = (SELECT outcome FROM feedback_status ORDER BY accept_order LIMIT 1)
         WHERE outcome IS NOT NULL",
    ),
];
