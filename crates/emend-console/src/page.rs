//! What all pages have: who looks, where they are, where they can go, and what just happened.

use std::sync::Arc;

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use http::{
    HeaderValue, StatusCode, Uri,
    header::{LOCATION, REFRESH},
    uri::PathAndQuery,
};

use crate::{
    access::Access,
    assets::Assets,
    failure::{Failure, Refused},
    form::{Fields, segment},
    labels::labelled,
    server::{Shared, own_address},
    services::ServicesAs,
    session::{Session, Theme},
    text::Language,
    told::{self, Notice},
};

/// How a page or a form ends.
pub(crate) type Answer = Result<Response, Refused>;

/// The fields by which an address tells what a form did.
pub(crate) const TOLD: [&str; 1] = [told::FIELD];

/// A part of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// What was learned since yesterday and what waits.
    Today,
    /// The queue.
    Review,
    /// What one reviewer has to do, and did.
    Mine,
    /// What nodes answer.
    Learned,
    /// Revisions.
    Log,
    /// Domains, claims, edges.
    Evidence,
    /// Ratings, prompts, profiles.
    Outputs,
    /// Ratings of search, queries, synonyms, tuning.
    Search,
    /// Nodes.
    Fleet,
    /// What it takes to learn something.
    Policies,
    /// Rating dialogs.
    Rate,
}

impl Part {
    /// All, in the order of the navigation.
    pub(crate) const ALL: [Self; 11] = [
        Self::Today,
        Self::Review,
        Self::Mine,
        Self::Learned,
        Self::Log,
        Self::Evidence,
        Self::Outputs,
        Self::Search,
        Self::Fleet,
        Self::Policies,
        Self::Rate,
    ];

    /// Its part of the path.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Review => "review",
            Self::Mine => "mine",
            Self::Learned => "learned",
            Self::Log => "log",
            Self::Evidence => "evidence",
            Self::Outputs => "outputs",
            Self::Search => "search",
            Self::Fleet => "fleet",
            Self::Policies => "policies",
            Self::Rate => "rate",
        }
    }

    fn label(self, language: Language) -> &'static str {
        match self {
            Self::Today => language.t("Today", "今日"),
            Self::Review => language.t("Review", "レビュー"),
            Self::Mine => language.t("Mine", "自分の担当"),
            Self::Learned => language.t("Learned", "学習結果"),
            Self::Log => language.t("Log", "履歴"),
            Self::Evidence => language.t("Evidence", "エビデンス"),
            Self::Outputs => language.t("Outputs", "AI出力"),
            Self::Search => language.t("Search", "検索"),
            Self::Fleet => language.t("Fleet", "ノード"),
            Self::Policies => language.t("Policies", "ポリシー"),
            Self::Rate => language.t("Rate", "評価する"),
        }
    }

    /// The method without which there is nothing to see.
    const fn needs(self) -> &'static str {
        match self {
            Self::Today | Self::Review | Self::Mine => "learning.v1.CandidateService/ListCandidates",
            Self::Learned => "learning.v1.ResourceService/ListResources",
            Self::Log => "learning.v1.ResourceService/ListRevisions",
            Self::Evidence => "learning.v1.EvidenceService/ListDomainRules",
            Self::Outputs => "learning.v1.OutputService/GetOutputStats",
            Self::Search => "feedback.v1.QueryService/GetFeedbackStats",
            Self::Fleet => "learning.v1.SubscriptionService/ListNodes",
            Self::Policies => "learning.v1.PolicyService/GetPolicy",
            Self::Rate => "feedback.v1.FeedbackService/SubmitFeedback",
        }
    }
}

/// Who asks for what.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    /// What the console shares among requests.
    pub console: Arc<Shared>,
    /// Their session.
    pub session: Session,
    /// The services, called as them.
    pub services: ServicesAs,
    /// What they may do.
    pub access: Access,
    /// Their language.
    pub language: Language,
    /// Their colours.
    pub theme: Theme,
    /// The search application that they look at.
    pub namespace: String,
    /// What the path names besides: the id of an item, the name of a target.
    pub item: String,
    /// The address that they asked for.
    pub uri: Uri,
    /// Whether they sent a form there.
    pub is_form: bool,
}

impl Visitor {
    /// Of a text in both languages, the one in theirs.
    pub(crate) fn t<'t>(&self, english: &'t str, japanese: &'t str) -> &'t str {
        self.language.t(english, japanese)
    }

    /// For whom they act where the services do not know them: so two people can be told apart.
    pub(crate) fn on_behalf_of(&self) -> String {
        if self.access.authenticated {
            return String::new();
        }
        let id = self.session.id.get(..6).unwrap_or_default();
        format!("browser-{id}")
    }

    /// Who they are in the audit trail, as pages show it.
    pub(crate) fn name(&self) -> String {
        if self.access.authenticated {
            self.access.caller.clone()
        } else {
            self.on_behalf_of()
        }
    }

    /// Whether they may call a method.
    pub(crate) fn may(&self, method: &str) -> bool {
        self.access.may(method)
    }

    /// The address of a part, with these fields.
    pub(crate) fn to(&self, part: Part, fields: &Fields) -> String {
        format!(
            "/ns/{}/{}{}",
            segment(&self.namespace),
            part.path(),
            fields.query()
        )
    }

    /// The same, of something within a part.
    pub(crate) fn within(&self, part: Part, rest: &[&str], fields: &Fields) -> String {
        let rest = rest
            .iter()
            .fold(String::new(), |path, text| path + "/" + &segment(text));
        format!(
            "/ns/{}/{}{rest}{}",
            segment(&self.namespace),
            part.path(),
            fields.query()
        )
    }

    /// The address of this page, without what it tells of a form.
    pub(crate) fn here(&self) -> String {
        let fields = Fields::parse(self.uri.query().unwrap_or_default().as_bytes());
        format!("{}{}", self.uri.path(), fields.without(&TOLD).query())
    }

    /// That address, from which one comes back to this page after a decision.
    pub(crate) fn and_back(&self, address: &str) -> String {
        let here = self.here();
        let separator = if address.contains('?') { '&' } else { '?' };
        format!("{address}{separator}back={}", segment(&here))
    }

    /// Where one comes back to, as an address says, and what that part is called.
    pub(crate) fn back(&self, fields: &Fields) -> Option<(String, &'static str)> {
        let address = own_address(fields.get("back"));
        let path = address.strip_prefix("/ns/")?.split(['/', '?']).nth(1)?;
        let part = Part::ALL.into_iter().find(|part| part.path() == path)?;
        Some((address.to_owned(), part.label(self.language)))
    }

    /// What all pages have, for one of this part.
    pub(crate) fn page(&self, part: Part, title: impl Into<String>, fields: &Fields) -> Page {
        let namespaces = self.access.namespaces.clone();
        let nav = Part::ALL
            .into_iter()
            .filter(|part| self.access.may_perhaps(part.needs()))
            .map(|item| NavItem {
                href: self.to(item, &Fields::default()),
                label: item.label(self.language),
                is_current: item == part,
            })
            .collect();
        Page {
            title: title.into(),
            language: self.language,
            theme: self.theme,
            namespace: self.namespace.clone(),
            namespaces,
            part: part.path(),
            caller: self.name(),
            can_sign_out: self.access.authenticated && !self.session.by_proxy,
            form_token: self.console.sessions.form_token(&self.session),
            assets: Arc::clone(&self.console.assets),
            // What a form answers is at no address that can be asked for again.
            here: if self.is_form {
                self.to(part, &Fields::default())
            } else {
                self.uri
                    .path_and_query()
                    .map_or("/", PathAndQuery::as_str)
                    .to_owned()
            },
            live: self
                .access
                .may_perhaps("learning.v1.CandidateService/WatchQueue")
                .then(|| format!("/ns/{}/live", segment(&self.namespace))),
            nav,
            notice: self.notice(fields),
        }
    }

    /// Sends somebody on after a form was done.
    pub(crate) fn go(&self, address: &str) -> Answer {
        let Ok(location) = HeaderValue::try_from(address) else {
            let title = self.t("That is no address.", "アドレスが正しくありません。");
            return Err(Refused::Failed(Failure::new(StatusCode::BAD_REQUEST, title)));
        };
        Ok((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response())
    }

    /// Sends somebody back to where a form was sent from, told what it did; without such an address, to this one.
    pub(crate) fn go_back(&self, sent: &Fields, otherwise: &str, told: &Fields) -> Answer {
        let address = match own_address(sent.get("return")) {
            "/" => otherwise,
            address => address,
        };
        let address = address.split('#').next().unwrap_or_default();
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let kept = Fields::parse(query.as_bytes()).without(&TOLD);
        let told = told.pairs().iter();
        let fields = told.fold(kept, |fields, (name, value)| fields.with(name, value));
        self.go(&format!("{path}{}", fields.query()))
    }

    /// What a service answered, in their language.
    pub(crate) fn failure(&self, status: &tonic::Status) -> Failure {
        Failure::of(status, self.language, &self.access.away())
    }
}

/// A link of the navigation.
#[derive(Debug)]
pub(crate) struct NavItem {
    /// Where it leads.
    pub href: String,
    /// What it says.
    pub label: &'static str,
    /// Whether this page is of that part.
    pub is_current: bool,
}

/// What the template of every page needs.
#[derive(Debug)]
pub(crate) struct Page {
    /// The title.
    pub title: String,
    /// The language.
    pub language: Language,
    /// The colours.
    pub theme: Theme,
    /// The search application.
    pub namespace: String,
    /// Those that can be chosen; none if the person has to type the name.
    pub namespaces: Vec<String>,
    /// The part's path.
    pub part: &'static str,
    /// Who looks.
    pub caller: String,
    /// Whether somebody signed in here.
    pub can_sign_out: bool,
    /// For every form.
    pub form_token: String,
    /// Scripts and styles.
    pub assets: Arc<Assets>,
    /// The address of this page.
    pub here: String,
    /// Where changes are told, if they are.
    pub live: Option<String>,
    /// Where one can go.
    pub nav: Vec<NavItem>,
    /// What just happened.
    pub notice: Option<Notice>,
}

impl Page {
    /// Of a text in both languages, the one in the reader's.
    pub(crate) fn t<'t>(&self, english: &'t str, japanese: &'t str) -> &'t str {
        self.language.t(english, japanese)
    }

    /// The address of a file.
    pub(crate) fn asset(&self, name: &str) -> &str {
        self.assets.path(name)
    }

    /// The address of another part.
    pub(crate) fn part(&self, path: &str) -> String {
        format!("/ns/{}/{path}", segment(&self.namespace))
    }
}

/// A rendered page.
pub(crate) fn html<T: Template>(status: StatusCode, template: &T) -> Response {
    match template.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page can't be rendered");
            (StatusCode::INTERNAL_SERVER_ERROR, "the page can't be rendered\n").into_response()
        }
    }
}

/// The page that says why there is no other.
#[derive(Debug, Template)]
#[template(path = "failed.html")]
pub(crate) struct Failed {
    page: Page,
    failure: Failure,
    /// Whether a form was sent.
    is_form: bool,
    /// Whether a service did not answer.
    is_away: bool,
    /// Whether it is asked for again by itself.
    recovers: bool,
    /// What was typed, so that it is not lost, by labels.
    typed: Vec<(String, String)>,
    /// Where the reader came from.
    back: String,
}

/// In how many seconds browsers ask again for a page that could not be shown because a service is away.
const AGAIN: HeaderValue = HeaderValue::from_static("5");

/// Says why a page can't be shown; what somebody sent is shown again.
pub(crate) fn failed(visitor: &Visitor, part: Part, failure: Failure, sent: &Fields) -> Response {
    let status = failure.status;
    // A form is not sent again by itself: whether it was done is not known.
    let is_away = status == StatusCode::SERVICE_UNAVAILABLE;
    let recovers = is_away && !visitor.is_form;
    let page = Failed {
        page: visitor.page(
            part,
            if visitor.is_form {
                visitor.t("Not done", "処理エラー")
            } else {
                visitor.t("Not shown", "表示エラー")
            },
            &Fields::default(),
        ),
        failure,
        is_form: visitor.is_form,
        is_away,
        recovers,
        typed: labelled(visitor.language, sent.pairs()),
        back: match own_address(sent.get("return")) {
            "/" => visitor.to(part, &Fields::default()),
            address => address.to_owned(),
        },
    };
    let mut response = html(status, &page);
    if recovers {
        response.headers_mut().insert(REFRESH, AGAIN);
    }
    response
}

/// The page where people sign in.
#[derive(Debug, Template)]
#[template(path = "sign_in.html")]
pub(crate) struct SignIn {
    /// The language.
    pub language: Language,
    /// The colours.
    pub theme: Theme,
    /// Scripts and styles.
    pub assets: Arc<Assets>,
    /// For the form.
    pub form_token: String,
    /// Where to go then.
    pub back: String,
    /// Why they must sign in again; may be empty.
    pub why: String,
    /// Whether a proxy signs people in, so that a form would not help.
    pub by_proxy: bool,
    /// What was sent by a form without a session, to be sent again: where, and the fields.
    pub resume: Option<(String, Vec<(String, String)>)>,
}

impl SignIn {
    /// Of a text in both languages, the one in the reader's.
    pub(crate) fn t<'t>(&self, english: &'t str, japanese: &'t str) -> &'t str {
        self.language.t(english, japanese)
    }

    /// The address of a file.
    pub(crate) fn asset(&self, name: &str) -> &str {
        self.assets.path(name)
    }

    /// What was sent, by labels.
    pub(crate) fn typed(&self) -> Vec<(String, String)> {
        let sent = self.resume.iter().flat_map(|(_, pairs)| pairs);
        labelled(self.language, sent)
    }
}
