//! The tabs of a part that has several pages.

use crate::{
    form::Fields,
    page::{Part, Visitor},
};

/// A tab.
#[derive(Debug)]
pub(crate) struct Tab {
    /// Where it leads.
    pub href: String,
    /// What it says.
    pub label: String,
    /// Whether its page is shown.
    pub is_current: bool,
}

impl Tab {
    /// The tab of what stands behind the part's own address.
    pub(crate) fn of(
        visitor: &Visitor,
        part: Part,
        path: &'static str,
        label: (&'static str, &'static str),
        current: &str,
    ) -> Self {
        let rest: &[&str] = if path.is_empty() { &[] } else { &[path] };
        Self {
            href: visitor.within(part, rest, &Fields::default()),
            label: visitor.t(label.0, label.1).to_owned(),
            is_current: path == current,
        }
    }
}
