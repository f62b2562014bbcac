//! What feedback-svc stored of corrections.

use emend_tests::harness::system::Service::Feedback;

use super::Case;

pub(super) const CASES: &[Case] = &[
    (
        "ROW_CORRUPT",
        Feedback,
        concat!("UPDATE feedback SET caller = '' WHERE accept_order = ", oldest!()),
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        concat!("DELETE FROM feedback_personal WHERE accept_order = ", oldest!()),
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        concat!("DELETE FROM feedback_status WHERE accept_order = ", oldest!()),
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        concat!(
            "UPDATE feedback_status SET namespace = 'other' WHERE accept_order = ",
            oldest!()
        ),
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        "UPDATE request_ids SET request_id = 'other'",
    ),
    (
        "FEEDBACK_KIND",
        Feedback,
        concat!("UPDATE feedback SET kind = 2 WHERE accept_order = ", oldest!()),
    ),
    (
        "FEEDBACK_KIND",
        Feedback,
        concat!(
            "UPDATE feedback SET rating = 'GOOD' WHERE accept_order = ",
            oldest!()
        ),
    ),
    (
        "FEEDBACK_REDACTED",
        Feedback,
        concat!(
            "UPDATE feedback_status SET redacted_at = 1, redacted_by = 'anonymous' WHERE accept_order = ",
            oldest!(),
            "; UPDATE feedback_personal SET voter = {new_id}, identified = 1 WHERE accept_order = ",
            oldest!()
        ),
    ),
    (
        "FEEDBACK_STATUS",
        Feedback,
        concat!(
            "UPDATE feedback_status SET event_count = 2 WHERE accept_order = ",
            oldest!()
        ),
    ),
    (
        "FEEDBACK_STATUS",
        Feedback,
        concat!(
            "UPDATE feedback_status SET outcome = NULL WHERE accept_order = ",
            oldest!()
        ),
    ),
    (
        "OUTBOX_STATE",
        Feedback,
        concat!(
            "UPDATE feedback_status SET delivery_state = 1 WHERE accept_order = ",
            oldest!()
        ),
    ),
    ("OUTBOX_STATE", Feedback, "DELETE FROM outbox"),
    ("OUTBOX_ENTRY", Feedback, "UPDATE outbox SET namespace = 'other'"),
    ("OUTBOX_ENTRY", Feedback, "UPDATE outbox SET event_number = 7"),
    (
        "OUTBOX_ENTRY",
        Feedback,
        "UPDATE outbox SET payload = {touched:payload}",
    ),
    (
        "REQUEST_ID_TAKEN_TWICE",
        Feedback,
        "UPDATE feedback SET request_id = 'own' WHERE accept_order = (SELECT max(accept_order) FROM feedback)",
    ),
];
