//! The addresses of resources: `emend://NAMESPACE/learned/KIND`, `…/pending`, `…/claims/ID`, `…/prompts/TARGET`.

use std::fmt;

use emend_core::{Invalid, Kind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::failure::{Failure, Result};

const SCHEME: &str = "emend://";
/// The argument that names a further page.
const PAGE: &str = "page_token=";
/// What is written as it is.
const PART: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What a resource shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Shown {
    /// What was learned of a kind.
    Learned(Kind),
    /// What was proposed and is not decided.
    Pending,
    /// A claim, by its id.
    Claim(String),
    /// What an AI is asked with for a target.
    Prompt(String),
}

/// The address of a resource, or of a further page of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Address {
    pub(in super::super) namespace: String,
    pub(in super::super) shown: Shown,
    /// Empty for the first page.
    pub(in super::super) page_token: String,
}

impl Address {
    pub(in super::super) fn parse(uri: &str) -> Result<Self> {
        Self::read(uri).ok_or_else(|| Failure::NotFound(format!("no such resource: {}", fault(uri))))
    }

    fn read(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let page_token = match query {
            "" => String::new(),
            query => decoded(query.strip_prefix(PAGE)?)?,
        };
        let (namespace, path) = path.split_once('/')?;
        // An id may hold slashes, also as they are.
        let shown = match path.split_once('/') {
            Some(("learned", kind)) => Shown::Learned(Kind::parse(&decoded(kind)?).ok()?),
            None if path == "pending" => Shown::Pending,
            Some(("claims", id)) => Shown::Claim(named(id)?),
            Some(("prompts", target)) => Shown::Prompt(named(target)?),
            _ => return None,
        };
        Some(Self {
            namespace: named(namespace)?,
            shown,
            page_token,
        })
    }

    /// The first page of what a namespace shows.
    pub(in super::super) fn of(namespace: &str, shown: Shown) -> Self {
        Self {
            namespace: namespace.to_owned(),
            shown,
            page_token: String::new(),
        }
    }

    /// The page after this one; none after the last.
    pub(in super::super) fn next(&self, page_token: &str) -> Option<String> {
        let next = Self {
            page_token: page_token.to_owned(),
            ..self.clone()
        };
        (!page_token.is_empty()).then(|| next.to_string())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoded = |part| utf8_percent_encode(part, PART);
        write!(f, "{SCHEME}{}/", encoded(&self.namespace))?;
        match &self.shown {
            Shown::Learned(kind) => write!(f, "learned/{}", kind.name())?,
            Shown::Pending => f.write_str("pending")?,
            Shown::Claim(id) => write!(f, "claims/{}", encoded(id))?,
            Shown::Prompt(target) => write!(f, "prompts/{}", encoded(target))?,
        }
        match &*self.page_token {
            "" => Ok(()),
            token => write!(f, "?{PAGE}{}", encoded(token)),
        }
    }
}

/// Why an address shows nothing.
fn fault(uri: &str) -> String {
    let path = uri.strip_prefix(SCHEME).and_then(|rest| rest.split('?').next());
    let kind = path
        .and_then(|path| path.split_once("/learned/"))
        .map(|(_, kind)| kind);
    match kind.map(|kind| (Kind::parse(kind), Kind::parse_any(kind))) {
        Some((Err(_), Ok(known))) => format!("this kind is called {}", known.name()),
        Some((Err(Invalid(why)), Err(_))) => format!("its kind {why}"),
        _ => {
            "an address is emend://NAMESPACE/learned/KIND, /pending, /claims/ID or /prompts/TARGET".to_owned()
        }
    }
}

fn named(part: &str) -> Option<String> {
    decoded(part).filter(|part| !part.is_empty())
}

fn decoded(part: &str) -> Option<String> {
    let decoded = percent_decode_str(part).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for (shown, page_token, written) in [
            (
                Shown::Learned(Kind::InvocationPhrase),
                "",
                "emend://shop/learned/invocation_phrase",
            ),
            (
                Shown::Pending,
                "a=/?",
                "emend://shop/pending?page_token=a%3D%2F%3F",
            ),
            (
                Shown::Claim("claim:1/2 ü".to_owned()),
                "",
                "emend://shop/claims/claim%3A1%2F2%20%C3%BC",
            ),
            (
                Shown::Prompt("INTERPRET".to_owned()),
                "7",
                "emend://shop/prompts/INTERPRET?page_token=7",
            ),
        ] {
            let address = Address {
                namespace: "shop".to_owned(),
                shown,
                page_token: page_token.to_owned(),
            };
            assert_eq!(address.to_string(), written);
            assert_eq!(Address::read(written), Some(address));
        }
        let by_hand = Address::read("emend://shop/claims/claim:1/2").map(|address| address.shown);
        assert_eq!(by_hand, Some(Shown::Claim("claim:1/2".to_owned())));
    }

    #[test]
    fn a_wrong_kind_is_told_the_right_one_or_all() {
        let told = |uri| Address::parse(uri).expect_err(uri).to_string();
        assert_eq!(
            told("emend://shop/learned/verb"),
            "no such resource: this kind is called invocation_phrase"
        );
        let all = told("emend://shop/learned/verbs?page_token=7");
        for kind in Kind::ALL {
            assert!(all.contains(kind.name()), "{}: {all}", kind.name());
        }
        assert!(told("emend://shop/learned/synonym?page=2").contains("NAMESPACE/learned/KIND"));
        assert!(told("emend://shop/nothing").contains("/claims/ID"));
    }

    #[test]
    fn what_is_no_address_is_none() {
        for uri in [
            "",
            "emend://",
            "emend://shop",
            "emend://shop/",
            "emend:///pending",
            "emend://shop/pending/x",
            "emend://shop/learned/verbs",
            "emend://shop/claims/",
            "emend://shop/pending?page=2",
            "emend://shop/claims/%FF",
            "https://shop/pending",
        ] {
            assert_eq!(Address::read(uri), None, "{uri}");
        }
    }
}
