//! What people call the fields of forms, for pages that show what was sent.

use crate::text::Language;

/// What a form sends beside what somebody typed or chose.
const UNSEEN: [&str; 15] = [
    "form_token",
    "etag",
    "return",
    "next",
    "told",
    "given",
    "request_id",
    "candidate",
    "event",
    "feedback",
    "from",
    "mark",
    "frozen",
    "by_hand",
    "token",
];

/// What somebody typed or chose, each by its label.
pub(crate) fn labelled<'s>(
    language: Language,
    sent: impl IntoIterator<Item = &'s (String, String)>,
) -> Vec<(String, String)> {
    let typed = sent
        .into_iter()
        .filter(|(name, value)| !value.is_empty() && !UNSEEN.contains(&name.as_str()));
    typed
        .map(|(name, value)| {
            let label = label(language, name);
            // What has no label here is shown by its name, as words.
            let label = label.map_or_else(|| name.replace(['_', '.'], " "), str::to_owned);
            (label, value.clone())
        })
        .collect()
}

/// The label of a field that people fill in; none of what is not known.
pub(crate) fn label(language: Language, name: &str) -> Option<&'static str> {
    let (english, japanese) = of_review(name)
        .or_else(|| of_search(name))
        .or_else(|| of_outputs(name))
        .or_else(|| of_policies(name))?;
    Some(language.t(english, japanese))
}

type Label = (&'static str, &'static str);

fn of_review(name: &str) -> Option<Label> {
    Some(match name {
        "reason" => ("Why", "理由"),
        "reason_code" => ("Code", "理由コード"),
        "value" => ("Value", "値"),
        "comment" => ("Comment or question", "コメントまたは質問"),
        "asked" => ("Whom to ask", "質問先"),
        "accept_redacted" => ("Ratings were redacted", "評価の削除を了承"),
        "pattern" => ("Site", "サイト"),
        "decision" => ("Decision", "決定"),
        "level" => ("Trust", "信頼レベル"),
        "kind" => ("Kind", "種別"),
        "key" => ("Key", "キー"),
        "qualifier" => ("Qualifier", "区分"),
        "user" => ("User", "ユーザー"),
        _ => return None,
    })
}

fn of_search(name: &str) -> Option<Label> {
    Some(match name {
        "term" => ("Term", "語"),
        "relation" => ("Relation", "関係"),
        "representative" => ("Stands for", "代表語"),
        "tags" => ("Tags to set", "付けるタグ"),
        "clear_tags" => ("Tags to take away", "外すタグ"),
        "type" => ("Type of query", "クエリ種別"),
        "top_k" => ("Results", "結果の件数"),
        "min_score" => ("Least score", "最低スコア"),
        "confidences" => ("Confidences", "確信度"),
        "weights" => ("Weights of merged lists", "統合時の重み"),
        "namespaces" => ("Where to search", "検索先"),
        "retry" => ("What is tried when nothing is found", "ヒットなしのときの再検索"),
        "suggestion" => ("Message when nothing was found", "見つからないときのメッセージ"),
        "personal_retention" => ("Personal parts are kept", "個人情報の保持期間"),
        "query_retention" => ("Queries are kept", "クエリの保持期間"),
        "max_queries" => ("Queries at most", "クエリの最大件数"),
        "per_minute" => ("Ratings by one person, a minute", "1人あたりの検索評価(毎分)"),
        "per_hour" => ("Ratings by one person, an hour", "1人あたりの検索評価(毎時)"),
        "rated_targets" => ("What can be rated", "独自の評価対象"),
        _ => return None,
    })
}

fn of_outputs(name: &str) -> Option<Label> {
    Some(match name {
        "label" => ("Label", "ラベル"),
        "target" => ("Target", "ターゲット"),
        "text" => ("Text", "本文"),
        "experience_years" => ("Years of experience", "経験年数"),
        "specialties" => ("Specialties", "専門分野"),
        "known_technologies" => ("Known technologies", "既知の技術"),
        "learning_goals" => ("Learning goals", "学習目標"),
        "include_experience" => ("Years of experience, too", "経験年数も提案する"),
        "input" => ("What the AI was given", "入力"),
        "output" => ("What it made of it", "出力"),
        "judgement" => ("The right judgement", "正解の判定"),
        "issues" => ("Problems", "問題点"),
        "corrected" => ("Corrected text", "修正版テキスト"),
        "target_id" => ("Id of the output", "出力の ID"),
        "prompt_version" => ("Version of the prompt", "プロンプトのバージョン"),
        "reporter" => ("Who rates", "評価者"),
        _ => return None,
    })
}

fn of_policies(name: &str) -> Option<Label> {
    Some(match name {
        "risk_level" => ("Risk of a wrong promotion", "誤適用のリスク"),
        "threshold" => ("Threshold at medium risk", "中リスクのしきい値"),
        "counting" => ("Counted are", "数え方"),
        "half_life" => ("A vote weighs half after", "票の重みの半減期"),
        "max_derived_voters" => (
            "Voters without a name, of one client",
            "匿名投票者の上限(1クライアント)",
        ),
        "max_counted_feedback" => ("Newest corrections that count", "数える修正の最大件数"),
        "max_resources" => ("Learned at most", "学習の最大件数"),
        "max_value_bytes" => ("Largest value, in bytes", "値の最大サイズ(バイト)"),
        "reviewers_needed" => ("Approvals needed to apply one", "適用に必要な承認"),
        "ruling.entitled_role" => ("Who decides at once", "すぐに決定できる人"),
        "window.good" => ("Good examples", "良い例の数"),
        "window.bad" => ("Examples to avoid", "避ける例の数"),
        "window.max_text_chars" => ("Characters of each text", "各テキストの文字数"),
        "window.language" => ("Language of the headings", "見出しの言語"),
        "review.min_bad" => ("Bad ratings needed", "必要な悪い評価の数"),
        "review.automatic" => ("Improvements are proposed", "改善案の作成"),
        "near.min_confidence" => ("Near answers from this confidence on", "類似検索の最低確信度"),
        "near.method" => ("How they are found", "類似検索の方法"),
        "near.vectors" => ("SHA-256 of the file of vectors", "ベクトルファイルの SHA-256"),
        "combining" => (
            "Where edges of a claim come from one source",
            "同じ出典からのエッジ",
        ),
        "min_claims" => (
            "Claims before a domain is blocked",
            "ドメインをブロックする最小の主張数",
        ),
        "rejected_permille" => (
            "Rejected ones of 1,000 that block it",
            "ブロックする却下の割合(‰)",
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Fields;

    #[test]
    fn what_was_typed_is_shown_by_labels() {
        let sent =
            Fields::parse(b"form_token=x&etag=7&reason=not+so&tags=&threshold=3&window.good=2&new_field=1");
        let shown = labelled(Language::English, sent.pairs());
        let shown: Vec<_> = shown.iter().map(|(label, value)| (&**label, &**value)).collect();
        assert_eq!(
            shown,
            [
                ("Why", "not so"),
                ("Threshold at medium risk", "3"),
                ("Good examples", "2"),
                ("new field", "1"),
            ]
        );
        assert_eq!(label(Language::Japanese, "reason"), Some("理由"));
    }
}
