//! What somebody sent when their session had ended, shown once more after they signed in.

use askama::Template;

use crate::page::SignIn;

/// The page.
#[derive(Debug, Template)]
#[template(path = "resume.html")]
pub(crate) struct Resume {
    /// What was sent, and what every such page needs.
    pub page: SignIn,
}
