//! What people call layers, verdicts and what was done.

use emend_proto::{
    common::v1::{EdgeRelation, TrustLevel},
    learning::v1::{ClaimStatus, EvidenceAction, NodeRef, Verdict, node_ref::Node},
};

use crate::text::Language;

/// A relation that a person gives an edge: as it is sent, its label, and its class.
pub(super) const LABELS: [(&str, EdgeRelation); 3] = [
    ("supports", EdgeRelation::Supports),
    ("refutes", EdgeRelation::Refutes),
    ("neutral", EdgeRelation::Neutral),
];

/// Levels that a person gives a domain, as they are sent.
pub(super) const LEVELS: [(&str, TrustLevel); 6] = [
    ("primary", TrustLevel::Primary),
    ("government", TrustLevel::Government),
    ("academic", TrustLevel::Academic),
    ("trusted", TrustLevel::Trusted),
    ("low", TrustLevel::Low),
    ("unverified", TrustLevel::Unverified),
];

/// A layer of rules.
pub(super) fn layer(language: Language, name: &str) -> String {
    match name {
        "human" => language.t("people", "人の決定").to_owned(),
        "file" => language.t("trust file", "信頼ファイル").to_owned(),
        "verified" => language.t("system", "システム").to_owned(),
        "" => language.t("default", "既定").to_owned(),
        other => other.to_owned(),
    }
}

/// The class of a relation's chip.
pub(super) fn relation_class(number: i32) -> &'static str {
    match EdgeRelation::try_from(number).unwrap_or_default() {
        EdgeRelation::Supports => "good",
        EdgeRelation::Refutes => "bad",
        _ => "",
    }
}

/// Where a claim stands, and the class of its chip.
pub(super) fn claim_status(language: Language, number: i32) -> (&'static str, &'static str) {
    match ClaimStatus::try_from(number).unwrap_or_default() {
        ClaimStatus::Unspecified => ("", ""),
        ClaimStatus::Pending => (language.t("pending", "検証待ち"), "warn"),
        ClaimStatus::Verified => (language.t("verified", "検証済み"), "good"),
        ClaimStatus::Rejected => (language.t("rejected", "却下"), "bad"),
    }
}

/// What the evidence says of a claim.
pub(super) fn verdict(language: Language, number: i32) -> &'static str {
    match Verdict::try_from(number).unwrap_or_default() {
        Verdict::Unspecified => "",
        Verdict::Supported => language.t("supported", "支持される"),
        Verdict::Refuted => language.t("refuted", "反論される"),
        Verdict::Inconclusive => language.t("inconclusive", "結論なし"),
    }
}

/// What was done.
pub(super) fn action(language: Language, number: i32) -> &'static str {
    match EvidenceAction::try_from(number).unwrap_or_default() {
        EvidenceAction::Unspecified => "",
        EvidenceAction::Corrected => language.t("corrected", "修正"),
        EvidenceAction::Retracted => language.t("taken back", "撤回"),
        EvidenceAction::Approved => language.t("approved", "承認"),
        EvidenceAction::Rejected => language.t("rejected", "却下"),
        EvidenceAction::Set => language.t("set", "設定"),
        EvidenceAction::Reverted => language.t("reverted", "差し戻し"),
        EvidenceAction::Arrived => language.t("target arrived", "対象が到着"),
        EvidenceAction::Replaced => language.t("replaced", "置き換え"),
        EvidenceAction::Deleted => language.t("deleted", "削除"),
        EvidenceAction::Undone => language.t("undone", "取り消し"),
    }
}

/// A node: what sort it is, and its id.
pub(super) fn node(language: Language, node: Option<&NodeRef>) -> (&'static str, String) {
    match node.and_then(|node| node.node.clone()) {
        None => ("", String::new()),
        Some(Node::PageId(id)) => (language.t("page", "ページ"), id),
        Some(Node::FragmentId(id)) => (language.t("fragment", "フラグメント"), id),
        Some(Node::ClaimId(id)) => (language.t("claim", "主張"), id),
    }
}
