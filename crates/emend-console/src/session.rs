//! Who is at the browser: the token in its sealed cookie, or in the header of a proxy that is believed, or nobody in
//! particular where the services ask for no token.

use std::net::SocketAddr;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use emend_base::{Entropy, SharedClock};
use http::{HeaderMap, HeaderValue, header::COOKIE};
use serde::{Deserialize, Serialize};

use crate::{config::ConsoleConfig, seal::Seal, text::Language};

/// The name of the session's cookie.
const SESSION: &str = "emend_session";
/// The names of what people prefer: no secrets.
const LANGUAGE: &str = "emend_language";
const THEME: &str = "emend_theme";
/// How long a session lasts, in seconds.
const LASTS: i64 = 12 * 3600;
/// How long what people prefer is kept, in seconds.
const PREFERENCES_LAST: i64 = 365 * 24 * 3600;
/// The longest token that fits into a cookie once it is sealed.
pub(crate) const MAX_TOKEN: usize = 2_800;

/// What the session's cookie holds.
#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    id: String,
    began_at: i64,
    token: Option<String>,
}

/// Who is at the browser.
#[derive(Clone)]
pub(crate) struct Session {
    /// Random; what forms carry is derived from it.
    pub id: String,
    /// With which the services are called.
    pub authorization: Option<HeaderValue>,
    /// Whether a proxy signs people in, so that nobody can here.
    pub by_proxy: bool,
    /// Whether the browser does not have the cookie yet.
    pub is_new: bool,
    /// Whether the browser had a session that has expired.
    pub has_expired: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("by_proxy", &self.by_proxy)
            .field("is_new", &self.is_new)
            .finish_non_exhaustive()
    }
}

/// Which colours somebody prefers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// As the system has them.
    #[default]
    Auto,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl Theme {
    /// As it is written in cookies and pages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The one of that name; otherwise the system's.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::Auto,
        }
    }
}

/// Reads and writes cookies.
#[derive(Debug)]
pub(crate) struct Sessions {
    seal: Seal,
    clock: SharedClock,
    entropy: Entropy,
    is_secure: bool,
    token_header: Option<(http::HeaderName, Vec<emend_serve::network::Network>)>,
}

impl Sessions {
    /// By these settings.
    pub(crate) fn new(config: &ConsoleConfig, clock: SharedClock, entropy: Entropy) -> Self {
        Self {
            seal: Seal::new(&config.key, entropy.clone()),
            clock,
            entropy,
            is_secure: config.public_urls.iter().any(|url| url.is_secure),
            token_header: config.token_header.clone(),
        }
    }

    /// The session of a request.
    pub(crate) fn of(&self, headers: &HeaderMap, peer: SocketAddr) -> Session {
        let cookie = cookie(headers, SESSION).map(|text| self.opened(text));
        let has_expired = matches!(cookie, Some(None));
        let sealed = cookie.flatten();
        let is_new = sealed.is_none();
        let (id, token) = sealed.map_or_else(|| (self.random_id(), None), |sealed| (sealed.id, sealed.token));
        if let Some((header, proxies)) = &self.token_header {
            let is_believed = proxies.iter().any(|proxy| proxy.contains(peer.ip()));
            let handed_on = headers.get(header).filter(|_| is_believed);
            return Session {
                id,
                authorization: handed_on.and_then(|value| bearer(value.to_str().ok()?)),
                by_proxy: true,
                is_new,
                has_expired: false,
            };
        }
        Session {
            id,
            authorization: token.as_deref().and_then(bearer),
            by_proxy: false,
            is_new,
            has_expired,
        }
    }

    fn random_id(&self) -> String {
        let mut id = [0; 16];
        self.entropy.fill(&mut id);
        URL_SAFE_NO_PAD.encode(id)
    }

    fn opened(&self, text: &str) -> Option<Sealed> {
        let plain = self.seal.open(SESSION, text)?;
        let sealed: Sealed = serde_json::from_slice(&plain).ok()?;
        self.is_recent(sealed.began_at).then_some(sealed)
    }

    /// The cookie of a session that begins now, with a new id: an id that somebody knew before is worth nothing afterwards.
    ///
    /// # Panics
    /// Never: the parts can be written as JSON.
    pub(crate) fn begin(&self, token: Option<&str>) -> (Session, HeaderValue) {
        let id = self.random_id();
        let cookie = self.keep(&id, token);
        let session = Session {
            id,
            authorization: token.and_then(bearer),
            by_proxy: self.token_header.is_some(),
            is_new: false,
            has_expired: false,
        };
        (session, cookie)
    }

    /// The cookie of a session without a token, which has this id already.
    pub(crate) fn keep_anonymous(&self, id: &str) -> HeaderValue {
        self.keep(id, None)
    }

    fn keep(&self, id: &str, token: Option<&str>) -> HeaderValue {
        let sealed = Sealed {
            id: id.to_owned(),
            began_at: self.clock.now().as_second(),
            token: token.map(ToOwned::to_owned),
        };
        let plain = serde_json::to_vec(&sealed).expect("invariant: texts and numbers are JSON");
        self.set(SESSION, &self.seal.seal(SESSION, &plain), LASTS, true)
    }

    /// The cookie that ends a session.
    pub(crate) fn end(&self) -> HeaderValue {
        self.set(SESSION, "", 0, true)
    }

    /// The cookie of what somebody prefers.
    pub(crate) fn prefer_language(&self, language: Language) -> HeaderValue {
        self.set(LANGUAGE, language.name(), PREFERENCES_LAST, false)
    }

    /// The cookie of what somebody prefers.
    pub(crate) fn prefer_theme(&self, theme: Theme) -> HeaderValue {
        self.set(THEME, theme.name(), PREFERENCES_LAST, false)
    }

    fn set(&self, name: &str, value: &str, seconds: i64, is_secret: bool) -> HeaderValue {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let hidden = if is_secret { "; HttpOnly" } else { "" };
        let text = format!("{name}={value}; Path=/; Max-Age={seconds}; SameSite=Strict{hidden}{secure}");
        HeaderValue::try_from(text).expect("invariant: names, base64 and numbers")
    }

    /// The token that the forms of a session carry.
    pub(crate) fn form_token(&self, session: &Session) -> String {
        self.seal.form_token(&session.id)
    }

    /// What only this console opens, and only for the same addressee.
    pub(crate) fn seal_for(&self, addressee: &str, plain: &[u8]) -> String {
        self.seal.seal(addressee, plain)
    }

    /// What was sealed for this addressee; none if it was not.
    pub(crate) fn open_for(&self, addressee: &str, text: &str) -> Option<Vec<u8>> {
        self.seal.open(addressee, text)
    }

    /// Whether that time, in seconds since 1970, is not longer ago than a session lasts.
    pub(crate) fn is_recent(&self, at: i64) -> bool {
        (0..LASTS).contains(&(self.clock.now().as_second() - at))
    }

    /// Whether a form carries it.
    pub(crate) fn is_form_token(&self, session: &Session, token: &str) -> bool {
        self.seal.is_form_token(&session.id, token)
    }
}

/// The language that somebody prefers: as they chose here, else as their browser says.
pub(crate) fn language(headers: &HeaderMap) -> Language {
    if let Some(chosen) = cookie(headers, LANGUAGE).and_then(Language::of) {
        return chosen;
    }
    let accepted = headers.get(http::header::ACCEPT_LANGUAGE);
    let accepted = accepted.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut tags = accepted
        .split(',')
        .map(|tag| tag.trim().get(..2).unwrap_or_default());
    tags.find_map(Language::of).unwrap_or_default()
}

/// The colours that somebody prefers.
pub(crate) fn theme(headers: &HeaderMap) -> Theme {
    cookie(headers, THEME).map(Theme::of).unwrap_or_default()
}

/// A token as the services expect it; none if it can't be a header.
fn bearer(token: &str) -> Option<HeaderValue> {
    let token = token.trim();
    let token = match token.split_once(' ') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("bearer") => rest.trim(),
        _ => token,
    };
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    (!token.is_empty()).then_some(value)
}

fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).iter();
    let mut pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use emend_base::{Clock, ManualClock};
    use jiff::{SignedDuration, Timestamp};

    use super::*;

    const PEER: &str = "192.0.2.1:4000";

    fn config(token_header: Option<&str>) -> ConsoleConfig {
        let header = token_header.map(|name| (name.parse().unwrap(), vec!["192.0.2.0/24".parse().unwrap()]));
        ConsoleConfig {
            namespace: "default".into(),
            public_urls: vec!["https://emend.example".parse().unwrap()],
            key: [7; 32],
            token_header: header,
            frame_ancestors: Vec::new(),
        }
    }

    fn clock() -> Arc<ManualClock> {
        Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH))
    }

    fn with(cookie: &HeaderValue) -> HeaderMap {
        let pair = cookie.to_str().unwrap().split(';').next().unwrap();
        HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(pair).unwrap())])
    }

    #[test]
    fn a_session_comes_back_for_twelve_hours_and_not_under_another_key() {
        let clock = clock();
        let sessions = Sessions::new(
            &config(None),
            Arc::clone(&clock) as Arc<dyn Clock>,
            Entropy::system(),
        );
        let (session, cookie) = sessions.begin(Some("secret"));
        let text = cookie.to_str().unwrap();
        assert!(!text.contains("secret"));
        for flag in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
            assert!(text.contains(flag), "{flag} in {text}");
        }
        let peer = PEER.parse().unwrap();
        let back = sessions.of(&with(&cookie), peer);
        assert_eq!(back.id, session.id);
        assert_eq!(back.authorization.unwrap(), "Bearer secret");
        let mut other = config(None);
        other.key = [8; 32];
        let other = Sessions::new(&other, Arc::clone(&clock) as Arc<dyn Clock>, Entropy::system());
        assert!(other.of(&with(&cookie), peer).authorization.is_none());
        clock.advance(SignedDuration::from_hours(12));
        let late = sessions.of(&with(&cookie), peer);
        assert!(late.has_expired && late.authorization.is_none());
    }

    #[test]
    fn only_a_proxy_that_is_believed_hands_on_tokens() {
        let sessions = Sessions::new(
            &config(Some("x-token")),
            clock() as Arc<dyn Clock>,
            Entropy::system(),
        );
        let headers =
            HeaderMap::from_iter([("x-token".parse().unwrap(), HeaderValue::from_static("secret"))]);
        let token = |peer: &str| sessions.of(&headers, peer.parse().unwrap()).authorization;
        assert_eq!(token(PEER).unwrap(), "Bearer secret");
        assert!(token("198.51.100.1:4000").is_none());
    }

    #[test]
    fn the_language_is_the_chosen_one_else_the_browsers() {
        let accepted = |text: &'static str| {
            HeaderMap::from_iter([(http::header::ACCEPT_LANGUAGE, HeaderValue::from_static(text))])
        };
        assert_eq!(language(&accepted("ja,en;q=0.8")), Language::Japanese);
        assert_eq!(language(&accepted("de, en")), Language::English);
        assert_eq!(language(&HeaderMap::new()), Language::English);
        let mut chosen = accepted("en");
        chosen.insert(COOKIE, HeaderValue::from_static("emend_language=ja"));
        assert_eq!(language(&chosen), Language::Japanese);
    }
}
