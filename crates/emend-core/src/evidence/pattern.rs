//! Patterns of domains. A bare domain covers itself and all its subdomains, `*.example.org` the subdomains only.
//!
//! Names are in one form: lower case, internationalised labels as A-labels (RFC 5891, mapped by UTS 46), no trailing dot.
//! What is a public suffix (`com`, `co.jp`) is decided by the Public Suffix List, in the version of the `psl` crate.

use std::{borrow::Cow, fmt};

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use crate::violation::{Invalid, bounded_text};

/// Maximum length of a pattern as written, in characters. In its form a name has at most 253.
const MAX_CHARS: usize = 512;

/// Maximum length of a name in its form, in bytes.
const MAX_NAME_BYTES: usize = 253;

/// What no label may contain in its form: everything in ASCII but letters, digits, hyphens and underscores.
const DENIED: AsciiDenyList = AsciiDenyList::new(true, " !\"#$%&'()*+,/:;<=>?@[\\]^`{|}~");

/// Which domains a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DomainPattern {
    base: String,
    subdomains_only: bool,
}

/// Names above listed suffixes that the list does not name: `nordland.no` above the public `bo.nordland.no`, and, with a `~`,
/// those above private ones only, as `amazonaws.com` above `s3.amazonaws.com`. Written by `cargo xtask docs`, since the crate can only
/// be asked about one name.
const ABOVE_SUFFIXES: &str = include_str!("above_suffixes.txt");

/// What the Public Suffix List says of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suffix {
    /// People register names below it, under rules of a registry: `com`, `co.jp`; or it stands above such a suffix.
    Public,
    /// An organisation gives names below it to others: `github.io`; or it stands above such a suffix.
    Private,
    /// Somebody's own.
    None,
}

impl DomainPattern {
    /// Parses a pattern. Invalid are URLs, ports, paths, addresses, empty labels and wildcards other than a leading `*.`.
    pub fn parse(raw: &str) -> Result<Self, Invalid> {
        let text = bounded_text(raw, 1, MAX_CHARS)?;
        let (subdomains_only, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text.as_str()),
        };
        if name.contains('*') {
            return Err(Invalid::new(
                "may have one wildcard, a leading *. for subdomains only: *.example.org",
            ));
        }
        if let Some(stray) = name
            .chars()
            .find(|c| matches!(c, '/' | ':' | '?' | '#' | '@' | '[' | '\\' | ' '))
        {
            return Err(Invalid::new(format!(
                "must be a domain name alone, without scheme, port or path, has {stray:?}"
            )));
        }
        let base = normalized(name)?;
        Ok(Self {
            base,
            subdomains_only,
        })
    }

    /// The name without a wildcard.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Whether it covers the subdomains only.
    pub fn covers_subdomains_only(&self) -> bool {
        self.subdomains_only
    }

    /// Whether it covers a host, which is in the form of [`host`].
    pub fn covers(&self, host: &str) -> bool {
        match host.strip_suffix(&self.base) {
            Some("") => !self.subdomains_only,
            Some(below) => below.ends_with('.'),
            None => false,
        }
    }

    /// What the Public Suffix List says of its name.
    pub fn suffix(&self) -> Suffix {
        // Every name directly below one with a wildcard rule is a suffix: `*.kawasaki.jp`.
        listed(&self.base)
            .or_else(|| listed(&format!("any.{}", self.base)))
            .or_else(|| above_suffixes(&self.base))
            .unwrap_or(Suffix::None)
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wildcard = if self.subdomains_only { "*." } else { "" };
        write!(f, "{wildcard}{}", self.base)
    }
}

/// A host name in its form; borrowed if it is already in it. Invalid if it is no domain name.
pub fn host(raw: &str) -> Result<Cow<'_, str>, Invalid> {
    if is_in_form(raw) {
        return Ok(Cow::Borrowed(raw));
    }
    normalized(raw.trim()).map(Cow::Owned)
}

/// Whether a host consists of what names in their form consist of. Names that are too long or have an empty label are in
/// no rule, so that they need not be found here.
fn is_in_form(raw: &str) -> bool {
    let is_address = |host: &str| {
        host.rsplit('.')
            .next()
            .is_some_and(|top| top.bytes().all(|byte| byte.is_ascii_digit()))
    };
    (1..=MAX_NAME_BYTES).contains(&raw.len())
        && !raw.ends_with('.')
        && !is_address(raw)
        && raw
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_'))
}

/// A host and everything above it, the longest first: `a.example.org`, `example.org`, `org`.
pub fn suffixes(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |name| name.split_once('.').map(|(_, above)| above))
}

/// What the list says of a name that is a suffix itself.
fn listed(name: &str) -> Option<Suffix> {
    let suffix = psl::suffix(name.as_bytes()).filter(|suffix| suffix.as_bytes() == name.as_bytes())?;
    Some(match suffix.typ() {
        Some(psl::Type::Private) => Suffix::Private,
        Some(psl::Type::Icann) | None => Suffix::Public,
    })
}

fn above_suffixes(name: &str) -> Option<Suffix> {
    ABOVE_SUFFIXES
        .lines()
        .find_map(|above| match above.strip_prefix('~') {
            Some(above) => (above == name).then_some(Suffix::Private),
            None => (above == name).then_some(Suffix::Public),
        })
}

fn normalized(name: &str) -> Result<String, Invalid> {
    let name = name.strip_suffix(['.', '。', '．', '｡']).unwrap_or(name);
    let ascii = Uts46::new()
        .to_ascii(name.as_bytes(), DENIED, Hyphens::Allow, DnsLength::Verify)
        .map_err(|_| {
            Invalid::new(format!(
                "must be a domain name: labels of 1 to 63 characters joined by dots, at most 253 in all; is {name:?}"
            ))
        })?;
    let last = ascii.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Invalid::new(format!(
            "must be a domain name, not an address: {name:?}"
        )));
    }
    Ok(ascii.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(raw: &str) -> String {
        DomainPattern::parse(raw).unwrap().to_string()
    }

    #[test]
    fn spellings_of_one_domain_have_one_form() {
        for (raw, expected) in [
            (" Example.ORG. ", "example.org"),
            ("*.Example.org", "*.example.org"),
            ("bücher.example.org", "xn--bcher-kva.example.org"),
            ("XN--BCHER-KVA.example.org", "xn--bcher-kva.example.org"),
            ("ｅｘａｍｐｌｅ．ｏｒｇ", "example.org"),
            ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
            ("a_b.example.org", "a_b.example.org"),
        ] {
            assert_eq!(form(raw), expected, "{raw}");
            assert_eq!(form(expected), expected);
        }
    }

    #[test]
    fn what_is_no_domain_is_refused() {
        for raw in [
            "",
            " ",
            "*",
            "**",
            "*.",
            "*.*",
            "*.*.org",
            "a.*.org",
            "?.com",
            "exam*ple.org",
            "https://example.org",
            "example.org:443",
            "example.org/path",
            "a..org",
            ".example.org",
            "example.org..",
            "1.2.3.4",
            "[::1]",
            "user@example.org",
            "a.org,b.org",
            "\"a.org\"",
            "a;b.org",
            "a.＊.org",
            "(a).org",
            "a b.org",
            "example.org?",
            "a\u{0}.org",
        ] {
            assert!(DomainPattern::parse(raw).is_err(), "{raw:?}");
        }
        let long = format!("{}.org", "a".repeat(64));
        assert!(DomainPattern::parse(&long).is_err());
        assert!(DomainPattern::parse(&["a"; 128].join(".")).is_err());
    }

    #[test]
    fn a_bare_domain_covers_itself_and_a_wildcard_only_what_is_below() {
        let (bare, below) = (
            DomainPattern::parse("example.org").unwrap(),
            DomainPattern::parse("*.example.org").unwrap(),
        );
        for (host, by_bare, by_wildcard) in [
            ("example.org", true, false),
            ("www.example.org", true, true),
            ("a.b.example.org", true, true),
            ("badexample.org", false, false),
            ("org", false, false),
        ] {
            assert_eq!(
                (bare.covers(host), below.covers(host)),
                (by_bare, by_wildcard),
                "{host}"
            );
        }
    }

    #[test]
    fn the_public_suffix_list_decides_what_is_public() {
        for (raw, expected) in [
            ("com", Suffix::Public),
            ("*.com", Suffix::Public),
            ("co.jp", Suffix::Public),
            ("*.gov", Suffix::Public),
            ("kawasaki.jp", Suffix::Public),
            ("any.kawasaki.jp", Suffix::Public),
            ("city.kawasaki.jp", Suffix::None),
            ("intranet", Suffix::Public),
            ("nordland.no", Suffix::Public),
            ("amazonaws.com", Suffix::Private),
            ("*.amazonaws.com", Suffix::Private),
            ("rit.edu", Suffix::Private),
            ("møre-og-romsdal.no", Suffix::Public),
            ("s3.amazonaws.com", Suffix::Private),
            ("a.amazonaws.com", Suffix::None),
            ("github.io", Suffix::Private),
            ("*.github.io", Suffix::Private),
            ("jane.github.io", Suffix::None),
            ("example.org", Suffix::None),
            ("www.example.co.jp", Suffix::None),
        ] {
            assert_eq!(DomainPattern::parse(raw).unwrap().suffix(), expected, "{raw}");
        }
    }

    #[test]
    fn suffixes_go_from_the_host_to_the_top() {
        assert_eq!(
            suffixes("a.b.org").collect::<Vec<_>>(),
            ["a.b.org", "b.org", "org"]
        );
    }

    proptest! {
        #[test]
        fn a_pattern_in_its_form_stays_as_it_is(raw in "(\\*\\.)?\\PC{1,12}\\.[a-zà-ü]{2,6}") {
            if let Ok(pattern) = DomainPattern::parse(&raw) {
                let once = pattern.to_string();
                prop_assert_eq!(form(&once), once.clone());
                prop_assert!(host(pattern.base()).is_ok());
            }
        }

        #[test]
        fn a_pattern_covers_what_its_base_is_a_suffix_of(host in "[a-c](\\.[a-c]){0,3}", base in "[a-c](\\.[a-c]){0,2}") {
            let pattern = DomainPattern { base: base.clone(), subdomains_only: false };
            prop_assert_eq!(pattern.covers(&host), suffixes(&host).any(|above| above == base));
        }
    }
}
