//! Why a page can't be shown, or a form was refused.

use emend_base::status::Explained;
use http::StatusCode;
use tonic::{Code, Status};

use crate::text::Language;

/// What people are told.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The status of the answer.
    pub status: StatusCode,
    /// One sentence.
    pub title: String,
    /// What exactly, one line for each finding.
    pub details: Vec<String>,
}

/// Why a request ended otherwise than with its page.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The person must sign in, or sign in again.
    SignIn {
        /// What the service said of the token; none if there was no token.
        why: Option<String>,
    },
    /// A service answered so.
    Answered(Status),
    /// Something else.
    Failed(Failure),
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        if status.code() == Code::Unauthenticated {
            let explained = Explained::from(&status);
            let is_missing = explained.reason.as_deref() == Some("CREDENTIALS_MISSING");
            return Self::SignIn {
                why: (!is_missing).then_some(explained.message),
            };
        }
        Self::Answered(status)
    }
}

/// Whether what was asked for was perhaps never done, and may be asked for again.
fn is_unanswered(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown
    )
}

impl Failure {
    /// In one sentence.
    pub(crate) fn new(status: StatusCode, title: impl Into<String>) -> Self {
        Self {
            status,
            title: title.into(),
            details: Vec::new(),
        }
    }

    /// What a service answered; `away` names those that can't be reached.
    pub(crate) fn of(status: &Status, language: Language, away: &[&str]) -> Self {
        let explained = Explained::from(status);
        // What a service says itself has a reason; else nobody answered, and what the operating system says of that is for the log.
        let is_away = is_unanswered(status.code()) && explained.reason.is_none();
        if is_away {
            return Self::away(language, away);
        }
        let (http, title) = match status.code() {
            Code::InvalidArgument | Code::OutOfRange => (
                StatusCode::BAD_REQUEST,
                language.t(
                    "Something that you entered is not right.",
                    "入力内容に誤りがあります。",
                ),
            ),
            Code::NotFound => (
                StatusCode::NOT_FOUND,
                language.t("It does not exist.", "見つかりません。"),
            ),
            Code::Aborted => (
                StatusCode::CONFLICT,
                language.t(
                    "Somebody was faster: it has changed since you opened it. Nothing was changed by you.",
                    "先に別の人が変更しました。あなたの操作は反映されていません。",
                ),
            ),
            Code::FailedPrecondition | Code::AlreadyExists => (
                StatusCode::CONFLICT,
                language.t("That can't be done now.", "現在この操作はできません。"),
            ),
            Code::PermissionDenied => (
                StatusCode::FORBIDDEN,
                language.t("You may not do this.", "この操作を行う権限がありません。"),
            ),
            Code::ResourceExhausted => (
                StatusCode::TOO_MANY_REQUESTS,
                language.t(
                    "Too much at once: try again in a moment.",
                    "混み合っています。少し待ってからやり直してください。",
                ),
            ),
            code if is_unanswered(code) => (
                StatusCode::SERVICE_UNAVAILABLE,
                language.t(
                    "A service of Emend can't answer now.",
                    "Emend のサービスが現在応答できません。",
                ),
            ),
            _ => (
                StatusCode::BAD_GATEWAY,
                language.t(
                    "A service of Emend failed.",
                    "Emend のサービスでエラーが発生しました。",
                ),
            ),
        };
        let mut details: Vec<String> = explained
            .field_violations
            .iter()
            .map(|violation| format!("{}: {}", violation.field, violation.description))
            .chain(explained.preconditions.iter().map(|it| it.description.clone()))
            .collect();
        if details.is_empty() && !explained.message.is_empty() {
            details.push(explained.message);
        }
        if let Some(id) = explained.request_id {
            details.push(format!("{} {id}", language.t("request", "リクエスト")));
        }
        Self {
            status: http,
            title: title.to_owned(),
            details,
        }
    }

    /// What happened and what to do, in one paragraph.
    pub(crate) fn sentences(&self) -> String {
        let details = self.details.iter().map(String::as_str);
        let all: Vec<&str> = [&*self.title].into_iter().chain(details).collect();
        all.join(" ")
    }

    /// A service does not answer: which one, what is kept meanwhile, and what its reader can do.
    fn away(language: Language, away: &[&str]) -> Self {
        let title = match (language, away) {
            (Language::English, []) => "A service of Emend did not answer.".to_owned(),
            (Language::Japanese, []) => "Emend のサービスから応答がありません。".to_owned(),
            (Language::English, _) => format!("{} can't be reached.", away.join(" and ")),
            (Language::Japanese, _) => format!("{} に接続できません。", away.join(" と ")),
        };
        let mut failure = Self::new(StatusCode::SERVICE_UNAVAILABLE, title);
        for service in away {
            failure.details.push(if *service == LEARNING_SVC {
                language.t(
                    "learning-svc has what was learned and what waits for review. Nodes go on answering with what they have; corrections are kept, and delivered to it later.",
                    "learning-svc は学習結果とレビュー待ちを管理しています。ノードは手元の学習結果で応答を続け、修正は保存されて後から配送されます。",
                )
            } else {
                language.t(
                    "feedback-svc takes corrections and ratings, and has what was searched. None are taken meanwhile; nodes go on answering.",
                    "feedback-svc は修正と評価を受け付け、検索の記録を管理しています。その間は受け付けられませんが、ノードは応答を続けます。",
                )
            }.to_owned());
        }
        failure.details.push(
            language
                .t(
                    "If this lasts, tell whoever runs Emend.",
                    "長く続く場合は、Emend の運用者に知らせてください。",
                )
                .to_owned(),
        );
        failure
    }
}

/// The name of the service that has what was learned.
pub(crate) const LEARNING_SVC: &str = "learning-svc";
/// The name of the service that takes corrections.
pub(crate) const FEEDBACK_SVC: &str = "feedback-svc";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_is_away_is_named_in_plain_words() {
        let status = Status::unavailable("tcp connect error: Connection refused (os error 111)");
        let failure = Failure::of(&status, Language::English, &[LEARNING_SVC]);
        assert_eq!(failure.title, "learning-svc can't be reached.");
        assert_eq!(failure.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(
            !failure.details.join("").contains("os error"),
            "{:?}",
            failure.details
        );
        let failure = Failure::of(&status, Language::Japanese, &[LEARNING_SVC, FEEDBACK_SVC]);
        assert_eq!(failure.title, "learning-svc と feedback-svc に接続できません。");
        // What a service says of itself is shown.
        let said = Status::from(emend_base::Error::unavailable(
            "DATABASE_AWAY",
            "the database is away",
        ));
        let failure = Failure::of(&said, Language::English, &[]);
        assert_eq!(failure.title, "A service of Emend can't answer now.");
    }
}
