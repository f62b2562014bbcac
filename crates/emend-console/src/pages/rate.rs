//! The rating dialogs, which applications open or show in a frame.

mod dialog;

use askama::Template;
use axum::response::Response;
use emend_proto::common::v1::{Rating, correction::Correction as Form};
use http::StatusCode;
use tonic::{Code, Status};

use self::dialog::{Asks, DIALOGS, Dialog, label};
use crate::{
    failure::Failure,
    form::Fields,
    labels::labelled,
    page::{Answer, Page, Part, Visitor, html},
    pages::{
        correction::{Said, submit as submit_correction},
        outputs::own,
        tabs::Tab,
    },
    session::Theme,
    text::Language,
};

/// What an application says about the page itself; carried from one page to the next.
const ABOUT_THE_PAGE: [&str; 3] = ["frame", "lang", "theme"];
/// What an application may fill in, and nobody changes then.
const GIVEN: [&str; 5] = ["target_id", "input", "output", "prompt_version", "reporter"];

/// The dialog as a page of the console.
#[derive(Debug, Template)]
#[template(path = "rate.html")]
struct Whole {
    page: Page,
    tabs: Vec<Tab>,
    asked: Asked,
    /// The console's own address, as applications name it.
    own_address: String,
}

/// The dialog alone, for a frame.
#[derive(Debug, Template)]
#[template(path = "rate_framed.html")]
struct Framed {
    page: Page,
    asked: Asked,
}

/// What a frame shows to who is signed out: a sign-in page may not be framed, and other sites' frames get no cookies.
#[derive(Debug, Template)]
#[template(path = "rate_signed_out.html")]
struct SignedOut {
    page: Page,
    /// The dialog in a tab of its own.
    alone: String,
    /// What was typed, so that it is not lost.
    typed: Vec<(String, String)>,
}

/// A dialog, and what was filled in.
#[derive(Debug)]
struct Asked {
    dialog: Dialog,
    title: String,
    /// Where the form is sent.
    action: String,
    /// The dialog for another output.
    again: String,
    filled: Fields,
    /// The names of what the application filled in.
    given: Vec<String>,
    request_id: String,
    is_done: bool,
    failure: Option<Failure>,
}

impl Asked {
    fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }

    fn asks_correction(&self) -> bool {
        self.dialog.asks == Asks::Correction
    }

    fn asks_judgement(&self) -> bool {
        self.dialog.asks == Asks::Judgement
    }
}

/// Those of the fields that are about the page itself.
fn about_the_page(fields: &Fields) -> Fields {
    let named = ABOUT_THE_PAGE.into_iter();
    named.fold(Fields::default(), |kept, name| kept.with(name, fields.get(name)))
}

fn name(visitor: &Visitor) -> &str {
    match &*visitor.item {
        "" => DIALOGS[0].0,
        item => item,
    }
}

fn tabs(visitor: &Visitor, language: Language, current: &str, own: Vec<String>) -> Vec<Tab> {
    let dialogs = DIALOGS.iter().map(|(path, _)| (*path).to_owned());
    let mut names: Vec<String> = dialogs.chain(own).collect();
    if !names.iter().any(|name| name == current) {
        names.push(current.to_owned());
    }
    let tab = |path: String| Tab {
        href: visitor.within(Part::Rate, &[&path], &Fields::default()),
        label: label(language, &path),
        is_current: path == current,
    };
    names.into_iter().map(tab).collect()
}

/// Shows a dialog.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    render(visitor, fields, None).await
}

async fn render(visitor: &Visitor, fields: &Fields, failure: Option<Failure>) -> Answer {
    let language = Language::of(fields.get("lang")).unwrap_or(visitor.language);
    let own = own(visitor).await;
    let name = name(visitor);
    let dialog = Dialog::of(name, &own, language);
    let kept = about_the_page(fields);
    let given: Vec<String> = if fields.has("given") {
        fields.get("given").split(',').map(ToOwned::to_owned).collect()
    } else {
        let named = GIVEN.into_iter().filter(|name| !fields.get(name).is_empty());
        named.map(ToOwned::to_owned).collect()
    };
    let output = match fields.get("target_id") {
        "" => "new",
        output => output,
    };
    let is_done = fields.get("done") == "submitted";
    let title = match (language, label(language, name)) {
        (Language::English, label) => format!("Rate: {label}"),
        (Language::Japanese, label) => format!("評価: {label}"),
    };
    let page = dressed(visitor, title.clone(), fields);
    let status = failure.as_ref().map_or(StatusCode::OK, |failure| failure.status);
    let asked = Asked {
        // The output is part of the address: what is typed for one is never shown for another.
        action: visitor.within(Part::Rate, &[name, output], &kept),
        again: visitor.within(Part::Rate, &[name], &kept),
        request_id: visitor.console.entropy.uuid_v4().to_string(),
        filled: fields.clone(),
        given,
        title,
        dialog,
        is_done,
        failure,
    };
    if fields.has("frame") {
        return Ok(html(status, &Framed { page, asked }));
    }
    let own = own.into_iter().map(|target| target.name).collect();
    let shown = Whole {
        tabs: tabs(visitor, language, name, own),
        own_address: visitor.console.own_address.clone(),
        page,
        asked,
    };
    Ok(html(status, &shown))
}

/// How the page looks that an application asks for.
fn dressed(visitor: &Visitor, title: String, fields: &Fields) -> Page {
    let mut page = visitor.page(Part::Rate, title, fields);
    page.language = Language::of(fields.get("lang")).unwrap_or(visitor.language);
    if fields.has("theme") {
        page.theme = Theme::of(fields.get("theme"));
    }
    page
}

/// Shows the way on to who is signed out in a frame; none elsewhere, where they can sign in.
pub(crate) fn signed_out(visitor: &Visitor, sent: Option<&Fields>) -> Option<Response> {
    let asked = Fields::parse(visitor.uri.query().unwrap_or_default().as_bytes());
    if !asked.has("frame") {
        return None;
    }
    let language = Language::of(asked.get("lang")).unwrap_or(visitor.language);
    let title = language.t("Sign in to rate", "評価するにはサインインが必要です");
    let about = ["target_id", "prompt_version", "reporter"].into_iter();
    let asked = about.fold(asked, |asked, name| match sent.map(|sent| sent.get(name)) {
        Some(value) if !value.is_empty() => asked.with(name, value),
        _ => asked,
    });
    let typed = sent.map(|sent| sent.without(&["target"])).unwrap_or_default();
    let page = SignedOut {
        alone: visitor.within(Part::Rate, &[name(visitor)], &asked.without(&["frame"])),
        typed: labelled(language, typed.pairs()),
        page: Page {
            here: visitor.within(Part::Rate, &[name(visitor)], &asked),
            ..dressed(visitor, title.to_owned(), &asked)
        },
    };
    Some(html(StatusCode::UNAUTHORIZED, &page))
}

/// One problem a line; empty lines are none.
fn issues(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty())
        .map(ToOwned::to_owned)
        .collect()
}

/// The rating that a form says. What is wrong with a good output is left out: the form hides it then.
fn rating(dialog: &Dialog, fields: &Fields) -> Result<Rating, Status> {
    let value = fields.get("value").to_owned();
    let target = fields.get("target").to_owned();
    let is_good = dialog.is_good(&value);
    if value.is_empty() {
        return Err(emend_base::Error::invalid("value", "choose how the output is").into());
    }
    let issues = if is_good {
        Vec::new()
    } else {
        issues(fields.text("issues"))
    };
    if dialog.asks == Asks::Rejection && !is_good && issues.is_empty() {
        return Err(emend_base::Error::invalid("issues", "say why it is rejected").into());
    }
    let unless_good = |name| {
        let text = if is_good { "" } else { fields.text(name).trim() };
        text.to_owned()
    };
    Ok(Rating {
        target,
        value,
        target_id: fields.get("target_id").to_owned(),
        input_text: fields.text("input").to_owned(),
        output_text: fields.text("output").to_owned(),
        prompt_version: fields.get("prompt_version").to_owned(),
        issues,
        corrected_text: unless_good("corrected"),
        correct_judgement: unless_good("judgement"),
        ..Rating::default()
    })
}

/// Submits a rating, and thanks.
pub(crate) async fn submit(visitor: &Visitor, fields: &Fields) -> Answer {
    let query = visitor.uri.query().unwrap_or_default().as_bytes();
    let kept = about_the_page(&Fields::parse(query));
    let dialog = Dialog::of(name(visitor), &own(visitor).await, visitor.language);
    let said = Said {
        reason: fields.get("reason"),
        reporter: fields.get("reporter"),
        request_id: fields.get("request_id"),
    };
    let submitted = match rating(&dialog, fields) {
        Ok(rating) => submit_correction(visitor, Form::Rating(rating), said).await,
        Err(status) => Err(status),
    };
    match submitted {
        Ok(_) => {
            let fields = kept.with("done", "submitted");
            visitor.go(&visitor.within(Part::Rate, &[name(visitor)], &fields))
        }
        Err(status) if status.code() == Code::Unauthenticated => Err(status.into()),
        Err(status) => {
            let named = ABOUT_THE_PAGE.into_iter();
            let again = named.fold(fields.clone(), |again, name| again.with(name, kept.get(name)));
            render(visitor, &again, Some(visitor.failure(&status))).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(dialog: &str, form: &str) -> Result<Rating, Status> {
        let dialog = Dialog::of(dialog, &[], Language::English);
        rating(&dialog, &Fields::parse(form.as_bytes()))
    }

    #[test]
    fn a_good_output_has_nothing_wrong_with_it() {
        let form =
            "target=INTERPRET&target_id=q&input=a&output=b&issues=vague%0A%0Awrong+day&corrected=c&value=";
        let good = rated("interpret", &format!("{form}GOOD")).unwrap();
        assert_eq!((good.issues.len(), &*good.corrected_text), (0, ""));
        let bad = rated("interpret", &format!("{form}BAD")).unwrap();
        assert_eq!(bad.issues, ["vague", "wrong day"]);
        assert_eq!(bad.corrected_text, "c");
        assert!(rated("interpret", form).is_err());
    }

    #[test]
    fn a_task_is_rejected_for_a_reason() {
        assert!(rated("task", "value=REJECTED&issues=+").is_err());
        assert!(rated("task", "value=APPROVED").is_ok());
        assert!(rated("task", "value=REJECTED&issues=done+already").is_ok());
    }
}
