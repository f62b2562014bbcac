//! Bad requests about trust files and decisions about domains.

use emend_proto::learning::v1::{
    ApplyTrustFileRequest, ListBlockedDomainsRequest, ListDomainRulesRequest, TrustFileFormat,
};
use emend_tests::harness::NAMESPACE;

use super::{Rpc, UNKNOWN, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![apply(), rules(), blocked()]
}

fn apply() -> Rpc {
    let file = |content: &str| ApplyTrustFileRequest {
        content: content.into(),
        format: TrustFileFormat::Yaml.into(),
        on_behalf_of: String::new(),
    };
    Rpc::of("/emend.learning.v1.EvidenceService/ApplyTrustFile")
        .case("empty", &ApplyTrustFileRequest::default(), &["format"])
        .case(
            "an unknown format and a long name",
            &ApplyTrustFileRequest {
                format: UNKNOWN,
                on_behalf_of: long(129),
                ..file("")
            },
            &["format", "on_behalf_of"],
        )
        .case("no YAML", &file("namespaces: ["), &["content"])
        .case(
            "everything at once",
            &file(
                "namespaces: [a, a]\nversion: 0\ndomains: [{ pattern: '*', level: high }]\nblocked: [co.jp]\n\
                 dangerous_patterns: ['']",
            ),
            &[
                "content.namespaces[1]",
                "content.version",
                "content.domains[0].pattern",
                "content.domains[0].level",
                "content.blocked[0]",
                "content.dangerous_patterns[0]",
            ],
        )
}

fn rules() -> Rpc {
    Rpc::of("/emend.learning.v1.EvidenceService/ListDomainRules")
        .case("empty", &ListDomainRulesRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListDomainRulesRequest {
                namespace: "Not OK".into(),
                pattern: "https://example.org".into(),
                layer: "people".into(),
                page_size: 1_001,
                page_token: "not a token".into(),
                ..ListDomainRulesRequest::default()
            },
            &["namespace", "pattern", "layer", "page_size", "page_token"],
        )
}

fn blocked() -> Rpc {
    Rpc::of("/emend.learning.v1.EvidenceService/ListBlockedDomains")
        .case("empty", &ListBlockedDomainsRequest::default(), &["namespace"])
        .case(
            "a negative page",
            &ListBlockedDomainsRequest {
                namespace: NAMESPACE.into(),
                page_size: -1,
                page_token: "not a token".into(),
            },
            &["page_size", "page_token"],
        )
}
