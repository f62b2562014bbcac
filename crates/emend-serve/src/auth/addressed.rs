//! Which namespaces each request names, and whether it acts for a user. The one place that reads this for
//! authorization.
//!
//! It must know nothing of who may do what.

use emend_proto::{
    common::v1::{ResourceKey, Scope},
    feedback::v1 as feedback,
    learning::v1 as learning,
};

/// The namespaces that a message names. See [`Reaches`](super::rules::Reaches).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named<'a> {
    /// This one.
    One(&'a str),
    /// This one; if empty, all.
    OneOrAll(&'a str),
    /// Each of its items names one.
    Each,
    /// All of them.
    All,
    /// None: it concerns only the caller's own, or the handler narrows it.
    Own,
}

/// A message that names its namespaces.
pub trait Addressed {
    /// Which ones.
    fn named(&self) -> Named<'_>;

    /// The namespace in which it acts for a user, if it does.
    fn for_a_user(&self) -> Option<&str> {
        None
    }
}

macro_rules! addressed {
    ($( $message:ty => |$it:ident| $named:expr $(, for_user $for_user:expr)? ; )+) => { $(
        impl Addressed for $message {
            fn named(&self) -> Named<'_> {
                let $it = self;
                $named
            }

            $(
                fn for_a_user(&self) -> Option<&str> {
                    let $it = self;
                    $for_user
                }
            )?
        }
    )+ };
}

/// The namespace of a key; a missing key counts as an empty one.
fn of(key: Option<&ResourceKey>) -> &str {
    key.map_or("", |key| &key.namespace)
}

fn on_behalf<'a>(namespace: &'a str, on_behalf_of: &str) -> Option<&'a str> {
    (!on_behalf_of.is_empty()).then_some(namespace)
}

fn users(key: Option<&ResourceKey>) -> bool {
    key.is_some_and(|key| !key.user_id.is_empty())
}

addressed! {
    feedback::SubmitFeedbackRequest => |it| Named::One(&it.namespace),
        for_user (it.scope == i32::from(Scope::User)).then_some(it.namespace.as_str());
    feedback::BatchSubmitFeedbackRequest => |_it| Named::Each;
    feedback::GetFeedbackRequest => |it| Named::One(&it.namespace);
    feedback::ListFeedbackRequest => |it| Named::One(&it.namespace);
    feedback::RetractFeedbackRequest => |it| Named::One(&it.namespace);
    feedback::RedactFeedbackRequest => |it| Named::One(&it.namespace);
    feedback::RedactReporterRequest => |it| Named::One(&it.namespace);
    feedback::GetSettingsRequest => |it| Named::One(&it.namespace);
    feedback::UpdateSettingsRequest => |it| Named::One(it.settings.as_ref().map_or("", |settings| &settings.namespace));
    feedback::ListDeadLettersRequest => |it| Named::OneOrAll(&it.namespace);
    feedback::RedriveDeadLettersRequest => |it| Named::OneOrAll(&it.namespace);
    learning::Event => |it| Named::One(&it.namespace);
    learning::ListCandidatesRequest => |it| Named::One(&it.namespace);
    learning::GetCandidateRequest => |it| Named::One(&it.namespace);
    learning::ApproveCandidateRequest => |it| Named::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    learning::RejectCandidateRequest => |it| Named::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    learning::BatchApproveCandidatesRequest => |_it| Named::Each;
    learning::BatchRejectCandidatesRequest => |_it| Named::Each;
    learning::GetPolicyRequest => |it| Named::One(&it.namespace);
    learning::UpdatePolicyRequest => |it| Named::One(it.policy.as_ref().map_or("", |policy| &policy.namespace)),
        for_user on_behalf(it.policy.as_ref().map_or("", |policy| &policy.namespace), &it.on_behalf_of);
    learning::GetResourceRequest => |it| Named::One(of(it.key.as_ref()));
    learning::ListResourcesRequest => |it| Named::One(&it.namespace);
    learning::ResolveRequest => |it| Named::One(&it.namespace);
    learning::PutResourceRequest => |it| Named::One(of(it.key.as_ref())),
        for_user (!it.on_behalf_of.is_empty() || users(it.key.as_ref())).then(|| of(it.key.as_ref()));
    learning::DeleteResourceRequest => |it| Named::One(of(it.key.as_ref())),
        for_user (!it.on_behalf_of.is_empty() || users(it.key.as_ref())).then(|| of(it.key.as_ref()));
    learning::ImportHeader => |it| Named::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    learning::ListRevisionsRequest => |it| Named::One(&it.namespace);
    learning::RevertRevisionRequest => |it| Named::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    learning::SubscribeRequest => |_it| Named::Own;
    learning::ReportStatusRequest => |_it| Named::Own;
    learning::ListNodesRequest => |_it| Named::All;
}
