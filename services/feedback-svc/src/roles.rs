//! Who may call which RPC of this service, and which namespaces each request names.
//!
//! An RPC without a row is refused to everyone; a test compares the rows with the protos. docs/security.md shows them, and a
//! test keeps the two equal.

use emend_base::Error;
use emend_proto::{common::v1::Scope, feedback::v1 as pb};
use emend_serve::auth::{self, Access, Addresses, Call, Namespaces, Reaches, Role, Rule, rule};
use tonic::Request;

/// Every RPC, by path.
pub const RULES: [Rule; 18] = [
    rule(
        "/emend.feedback.v1.FeedbackService/BatchSubmitFeedback",
        Role::Reporter,
        Reaches::Each,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/GetFeedback",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/ListDeadLetters",
        Role::Operator,
        Reaches::OneOrAll,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/ListFeedback",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/RedactFeedback",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/RedactReporter",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/RedriveDeadLetters",
        Role::Operator,
        Reaches::OneOrAll,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/RetractFeedback",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/SubmitFeedback",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.FeedbackService/UpdateFeedbackLabels",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.QueryService/GetFeedbackStats",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.QueryService/ListNegativeTerms",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.QueryService/ExportFeedback",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.QueryService/ListQueries",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.QueryService/RecordInteraction",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.QueryService/RecordQuery",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.SettingsService/GetSettings",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.feedback.v1.SettingsService/UpdateSettings",
        Role::Admin,
        Reaches::One,
    ),
];

/// The messages that this service reads.
pub(crate) struct Messages;

emend_serve::addresses! {
    Messages;
    pb::SubmitFeedbackRequest => |it| Namespaces::One(&it.namespace),
        for_user (it.scope == i32::from(Scope::User)).then_some(it.namespace.as_str());
    pb::BatchSubmitFeedbackRequest => |_it| Namespaces::Each;
    pb::GetFeedbackRequest => |it| Namespaces::One(&it.namespace);
    pb::ListFeedbackRequest => |it| Namespaces::One(&it.namespace);
    pb::RetractFeedbackRequest => |it| Namespaces::One(&it.namespace);
    pb::RedactFeedbackRequest => |it| Namespaces::One(&it.namespace);
    pb::UpdateFeedbackLabelsRequest => |it| Namespaces::One(&it.namespace);
    pb::RedactReporterRequest => |it| Namespaces::One(&it.namespace);
    pb::ListDeadLettersRequest => |it| Namespaces::OneOrAll(&it.namespace);
    pb::RedriveDeadLettersRequest => |it| Namespaces::OneOrAll(&it.namespace);
    pb::RecordQueryRequest => |it| Namespaces::One(&it.namespace);
    pb::RecordInteractionRequest => |it| Namespaces::One(&it.namespace);
    pb::ExportFeedbackRequest => |it| Namespaces::One(&it.namespace);
    pb::ListQueriesRequest => |it| Namespaces::One(&it.namespace);
    pb::GetFeedbackStatsRequest => |it| Namespaces::One(&it.namespace);
    pb::ListNegativeTermsRequest => |it| Namespaces::One(&it.namespace);
    pb::GetSettingsRequest => |it| Namespaces::One(&it.namespace);
    pb::UpdateSettingsRequest => |it| Namespaces::One(it.settings.as_ref().map_or("", |settings| &settings.namespace)),
        for_user on_behalf(it.settings.as_ref().map_or("", |settings| &settings.namespace), &it.on_behalf_of);
}

/// Unwraps a request if its caller may do what it asks for in the namespace that it names.
pub(crate) fn open<T>(request: Request<T>) -> Result<Call<T>, Error>
where
    Messages: Addresses<T>,
{
    auth::open::<Messages, T>(request)
}

/// Refuses an item of a request that names a foreign namespace or acts for a user when the caller may not.
pub(crate) fn admit<T>(access: &Access, item: &T) -> Result<(), Error>
where
    Messages: Addresses<T>,
{
    access.admit::<Messages, T>(item)
}

fn on_behalf<'a>(namespace: &'a str, on_behalf_of: &str) -> Option<&'a str> {
    (!on_behalf_of.is_empty()).then_some(namespace)
}
