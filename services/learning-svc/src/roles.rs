//! Who may call which RPC of this service, and which namespaces each request names.
//!
//! An RPC without a row is refused to everyone; a test compares the rows with the protos. docs/security.md shows them, and a
//! test keeps the two equal.

use emend_base::Error;
use emend_proto::{common::v1::ResourceKey, learning::v1 as pb};
use emend_serve::auth::{self, Access, Addresses, Call, Namespaces, Reaches, Role, Rule, rule};
use tonic::Request;

/// Every RPC, by path.
pub const RULES: [Rule; 61] = [
    rule(
        "/emend.learning.v1.CandidateService/AcquireReviewLease",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/ApproveCandidate",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/AskSecondOpinion",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/BatchApproveCandidates",
        Role::Reviewer,
        Reaches::Each,
    ),
    rule(
        "/emend.learning.v1.CandidateService/BatchRejectCandidates",
        Role::Reviewer,
        Reaches::Each,
    ),
    rule(
        "/emend.learning.v1.CandidateService/CommentOnCandidate",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/GetCandidate",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/GetQueueStats",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/ListCandidates",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/PreviewCandidate",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/RejectCandidate",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/ReleaseReviewLease",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/UndoDecision",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.CandidateService/WatchQueue",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/ApplyTrustFile",
        Role::Operator,
        Reaches::Each,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/DeleteEvidence",
        Role::EvidenceWriter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/ExportCorrections",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/ExportMaterials",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/GetClaim",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/GetReviewStats",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/ListBlockedDomains",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/ListClaims",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/ListDomainRules",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/ListEdges",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/ListEvidenceEvents",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/RankCitations",
        Role::EvidenceWriter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.EvidenceService/UpsertEvidence",
        Role::EvidenceWriter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.IngestService/GetStandings",
        Role::Ingester,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.IngestService/Ingest",
        Role::Ingester,
        Reaches::Each,
    ),
    rule(
        "/emend.learning.v1.OutputService/ExportExamples",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.OutputService/GenerateImprovement",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.OutputService/GetOutputStats",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.OutputService/ListOutputStats",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.OutputService/ListPromptVersions",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.OutputService/PreviewImprovement",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.OutputService/RenderPrompt",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.OutputService/UsePromptVersion",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.PolicyService/GetNamespacePolicy",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.PolicyService/GetPolicy",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.PolicyService/PreviewPolicy",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.PolicyService/UpdateNamespacePolicy",
        Role::Admin,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.PolicyService/UpdatePolicy",
        Role::Admin,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ProfileService/AcceptSuggestion",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ProfileService/GenerateSuggestions",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ProfileService/GetProfile",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ProfileService/ListSuggestions",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ProfileService/RankLearnings",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ProfileService/RecordActivity",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ProfileService/RejectSuggestion",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ProfileService/UpdateProfile",
        Role::Reporter,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/DeleteResource",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/GetResource",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/ImportResources",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/ListResources",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/ListRevisions",
        Role::Reviewer,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/PutResource",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/Resolve",
        Role::Subscriber,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.ResourceService/RevertRevision",
        Role::Operator,
        Reaches::One,
    ),
    rule(
        "/emend.learning.v1.SubscriptionService/ListNodes",
        Role::Operator,
        Reaches::All,
    ),
    rule(
        "/emend.learning.v1.SubscriptionService/ReportStatus",
        Role::Subscriber,
        Reaches::Own,
    ),
    rule(
        "/emend.learning.v1.SubscriptionService/Subscribe",
        Role::Subscriber,
        Reaches::Narrowed,
    ),
];

/// The messages that this service reads.
pub(crate) struct Messages;

/// A trust file, as one of the namespaces that it names sees it.
#[derive(Debug)]
pub(crate) struct TrustFileFor {
    /// The namespace.
    pub namespace: String,
    /// For whom it is applied; may be empty.
    pub on_behalf_of: String,
}

emend_serve::addresses! {
    Messages;
    pb::Event => |it| Namespaces::One(&it.namespace);
    pb::GetStandingsRequest => |it| Namespaces::One(&it.namespace);
    pb::ListCandidatesRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.user_id);
    pb::GetCandidateRequest => |it| Namespaces::One(&it.namespace);
    pb::PreviewCandidateRequest => |it| Namespaces::One(&it.namespace);
    pb::ApproveCandidateRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::RejectCandidateRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::UndoDecisionRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::AcquireReviewLeaseRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::ReleaseReviewLeaseRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::AskSecondOpinionRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::CommentOnCandidateRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::WatchQueueRequest => |it| Namespaces::One(&it.namespace);
    pb::GetQueueStatsRequest => |it| Namespaces::One(&it.namespace);
    pb::BatchApproveCandidatesRequest => |_it| Namespaces::Each;
    pb::BatchRejectCandidatesRequest => |_it| Namespaces::Each;
    pb::GetNamespacePolicyRequest => |it| Namespaces::One(&it.namespace);
    pb::GetPolicyRequest => |it| Namespaces::One(&it.namespace);
    pb::PreviewPolicyRequest => |it| Namespaces::One(it.policy.as_ref().map_or("", |policy| &policy.namespace));
    pb::UpdateNamespacePolicyRequest => |it| Namespaces::One(it.policy.as_ref().map_or("", |policy| &policy.namespace));
    pb::UpdatePolicyRequest => |it| Namespaces::One(it.policy.as_ref().map_or("", |policy| &policy.namespace)),
        for_user on_behalf(it.policy.as_ref().map_or("", |policy| &policy.namespace), &it.on_behalf_of);
    pb::GetResourceRequest => |it| Namespaces::One(of(it.key.as_ref()));
    pb::ListResourcesRequest => |it| Namespaces::One(&it.namespace);
    pb::ResolveRequest => |it| Namespaces::One(&it.namespace);
    pb::PutResourceRequest => |it| Namespaces::One(of(it.key.as_ref())),
        for_user (!it.on_behalf_of.is_empty() || users(it.key.as_ref())).then(|| of(it.key.as_ref()));
    pb::DeleteResourceRequest => |it| Namespaces::One(of(it.key.as_ref())),
        for_user (!it.on_behalf_of.is_empty() || users(it.key.as_ref())).then(|| of(it.key.as_ref()));
    pb::ImportHeader => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::ListRevisionsRequest => |it| Namespaces::One(&it.namespace);
    pb::RevertRevisionRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::UpsertEvidenceRequest => |it| Namespaces::One(&it.namespace);
    pb::DeleteEvidenceRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::GetClaimRequest => |it| Namespaces::One(&it.namespace);
    pb::ListClaimsRequest => |it| Namespaces::One(&it.namespace);
    pb::ListEdgesRequest => |it| Namespaces::One(&it.namespace);
    pb::ListDomainRulesRequest => |it| Namespaces::One(&it.namespace);
    pb::ListBlockedDomainsRequest => |it| Namespaces::One(&it.namespace);
    pb::ListEvidenceEventsRequest => |it| Namespaces::One(&it.namespace);
    pb::GetReviewStatsRequest => |it| Namespaces::One(&it.namespace);
    pb::ExportMaterialsRequest => |it| Namespaces::One(&it.namespace);
    pb::ExportCorrectionsRequest => |it| Namespaces::One(&it.namespace);
    pb::RankCitationsRequest => |it| Namespaces::One(&it.namespace);
    pb::ApplyTrustFileRequest => |_it| Namespaces::Each;
    pb::RenderPromptRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.user_id);
    pb::GetOutputStatsRequest => |it| Namespaces::One(&it.namespace);
    pb::ListOutputStatsRequest => |it| Namespaces::One(&it.namespace);
    pb::ListPromptVersionsRequest => |it| Namespaces::One(&it.namespace);
    pb::PreviewImprovementRequest => |it| Namespaces::One(&it.namespace);
    pb::GenerateImprovementRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::UsePromptVersionRequest => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::ExportExamplesRequest => |it| Namespaces::One(&it.namespace);
    pb::GetProfileRequest => |it| Namespaces::One(&it.namespace), for_user Some(it.namespace.as_str());
    pb::UpdateProfileRequest => |it| Namespaces::One(it.profile.as_ref().map_or("", |profile| &profile.namespace)),
        for_user Some(it.profile.as_ref().map_or("", |profile| profile.namespace.as_str()));
    pb::RecordActivityRequest => |it| Namespaces::One(&it.namespace), for_user Some(it.namespace.as_str());
    pb::GenerateSuggestionsRequest => |it| Namespaces::One(&it.namespace), for_user Some(it.namespace.as_str());
    pb::ListSuggestionsRequest => |it| Namespaces::One(&it.namespace), for_user Some(it.namespace.as_str());
    pb::AcceptSuggestionRequest => |it| Namespaces::One(&it.namespace), for_user Some(it.namespace.as_str());
    pb::RejectSuggestionRequest => |it| Namespaces::One(&it.namespace), for_user Some(it.namespace.as_str());
    pb::RankLearningsRequest => |it| Namespaces::One(&it.namespace), for_user Some(it.namespace.as_str());
    TrustFileFor => |it| Namespaces::One(&it.namespace),
        for_user on_behalf(&it.namespace, &it.on_behalf_of);
    pb::SubscribeRequest => |_it| Namespaces::Own;
    pb::ReportStatusRequest => |_it| Namespaces::Own;
    pb::ListNodesRequest => |_it| Namespaces::All;
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

/// The namespace of a key; a missing key counts as an empty one.
fn of(key: Option<&ResourceKey>) -> &str {
    key.map_or("", |key| &key.namespace)
}

fn users(key: Option<&ResourceKey>) -> bool {
    key.is_some_and(|key| !key.user_id.is_empty())
}

fn on_behalf<'a>(namespace: &'a str, on_behalf_of: &str) -> Option<&'a str> {
    (!on_behalf_of.is_empty()).then_some(namespace)
}
