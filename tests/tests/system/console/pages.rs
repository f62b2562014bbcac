//! Every page in a real browser: both themes, both languages, wide and narrow, with hostile texts; pictures are kept.

use std::{env, fs, path::PathBuf};

use emend_browser::{Browser, keys};
use emend_proto::common::v1::ResourceKind;
use emend_tests::{
    faults::runs::is_long,
    harness::{Database, System, console::Console, start::Settings},
};

use super::{
    everything_waits,
    guarded::{HOSTILE, fill_with_hostile},
    learned, waiting,
};

/// Every page, by its address in a namespace.
const PAGES: [&str; 35] = [
    "today",
    "review",
    "review?status=any&order=oldest",
    "mine",
    "learned?phrase=set+up+a+csa",
    "learned/resource?kind=invocation_phrase&key=set+up+a+csa",
    "log",
    "log/1/revert",
    "outputs",
    "outputs/target?target=INTERPRET",
    "outputs/pending",
    "outputs/history",
    "outputs/ratings",
    "outputs/profiles",
    "outputs/profiles?user=mia",
    "rate",
    "rate/summarize",
    "rate/evaluate",
    "evidence",
    "evidence/blocked",
    "evidence/claims",
    "evidence/edges",
    "evidence/events",
    "search",
    "search/queue",
    "search/queries?zero=1",
    "search/words?term=board&from=2026-01-01&to=2026-12-31",
    "search/try",
    "search/try?query=set+up&type=HYBRID",
    "search/tuning",
    "search/tuning?type=HYBRID",
    "search/settings",
    "fleet",
    "fleet?show=behind&zone=eu-1&label=tier%3Dgold",
    "policies",
];

/// A dialog as applications show it, without the console around it.
const FRAMED: &str = "rate/task?frame=1&target_id=t-1";

/// Where pictures are kept.
fn pictures() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    );
    let directory = target.join("console");
    fs::create_dir_all(&directory).expect("pictures can be kept");
    directory
}

async fn wears(browser: &Browser, theme: &str, language: &str) {
    let script = format!(
        "document.cookie = 'emend_theme={theme}; path=/'; document.cookie = 'emend_language={language}; path=/';"
    );
    browser.evaluate(&script).await;
}

/// What within this element of the page can be used, but not reached by the tab key, or is not marked when it is.
async fn out_of_reach(browser: &Browser, within: &str) -> Vec<String> {
    // A page that was opened after the keys of another has no focus until somebody presses something in it: the first key would
    // move it without a word to the page.
    let heading = browser.find("main h1").await;
    heading.click().await.expect("it can be pressed");
    let has_focus = browser.evaluate("return document.hasFocus()").await;
    assert_eq!(has_focus, serde_json::json!(true), "the page has the focus");
    let begin = "const usable = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex=\"0\"]';
        const within = document.querySelector('WITHIN');
        window.usable = [...within.querySelectorAll(usable)].filter(element =>
            element.checkVisibility() && !element.matches(':disabled') && (element.type !== 'radio' || element.checked
                || element === document.querySelector(`input[type=radio][name=\"${element.name}\"]`)));
        // From the first stop on: where the walk comes round, the browser itself takes some keys.
        window.usable[0]?.focus();
        window.reached = new Set([document.activeElement]);
        window.unmarked = new Set();
        // Where the walk comes round, the page may hear of the focus before it has it: nothing is `:focus` then, nor marked.
        document.addEventListener('focusin', event => {
            window.reached.add(event.target);
            if (event.target.matches(':focus') && event.target !== document.body && getComputedStyle(event.target).outlineStyle === 'none') window.unmarked.add(event.target);
        });
        // A date has a stop for each of its parts.
        return window.usable.length + 6 * within.querySelectorAll('[type=date]').length;";
    let begin = begin.replace("WITHIN", within);
    let stops = browser.evaluate(&begin).await.as_u64().expect("a number");
    let stops = usize::try_from(stops).expect("some hundred");
    // The second time only where something was not reached: the browser's own stops come between.
    for stops in [stops, 40] {
        browser.press(&keys::TAB.repeat(stops)).await;
        let rest = browser
            .evaluate("return window.usable.filter(element => !window.reached.has(element)).length")
            .await;
        if rest == serde_json::json!(0) {
            break;
        }
    }
    let end = "const told = (what, elements) => [...elements].map(element => `${what}: ${element.outerHTML.slice(0, 120)}`);
        return [...told('not reached', window.usable.filter(element => !window.reached.has(element))),
            ...told('not marked', window.unmarked)];";
    let found = browser.evaluate(end).await;
    serde_json::from_value(found).expect("texts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_light_page_can_be_used_by_everybody_on_sqlite() {
    Box::pin(every_page(Database::sqlite(), "light", "en")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_dark_page_can_be_used_by_everybody_on_sqlite() {
    Box::pin(every_page(Database::sqlite(), "dark", "ja")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_can_be_used_by_everybody_on_postgresql() {
    if let Some(database) = Database::postgres().await {
        if is_long() {
            Box::pin(every_page(database, "light", "en")).await;
        } else {
            // What a browser makes of a page is the same on both databases, and takes longest.
            every_page_opens(database).await;
        }
    }
}

async fn every_page_opens(database: Database) {
    let system = with_something_of_everything(database).await;
    let console = Console::beside(&system).await;
    let visitor = console.visitor();
    for path in PAGES.into_iter().chain([FRAMED]) {
        let page = visitor.open(path).await;
        let failed = page.status != 200 || page.body.contains("role=\"alert\"");
        assert!(
            !failed && page.body.contains("<h1"),
            "{path}: {}\n{}",
            page.status,
            page.body
        );
    }
    console.stop().await;
    system.stop().await;
}

async fn with_something_of_everything(database: Database) -> System {
    let system = System::start(database, 1, 1, Settings::default()).await;
    learned(&system, "set up a csa", "create_isda").await;
    everything_waits(&system).await;
    waiting(&system, 3).await;
    system
}

/// Opens every page, in this theme and language.
async fn every_page(database: Database, theme: &str, language: &str) {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let system = with_something_of_everything(database).await;
    let console = Console::beside(&system).await;
    browser.open(&console.url("today")).await;
    wears(&browser, theme, language).await;
    for (number, path) in PAGES.into_iter().chain([FRAMED]).enumerate() {
        browser.open(&console.url(path)).await;
        browser.find("main h1").await;
        let failed = browser
            .evaluate("return document.querySelector('[role=alert]')?.innerText ?? null")
            .await;
        assert_eq!(failed, serde_json::json!(null), "{path}");
        assert_eq!(browser.barriers().await, [""; 0], "{path} in {theme}");
        if theme == "light" {
            // What is around the page is the same on all of them.
            let within = if number == 0 { "body" } else { "main" };
            let unreached = out_of_reach(&browser, within).await;
            assert_eq!(unreached, [""; 0], "{path} by keyboard");
        }
        let name = path.split(['?', '/']).next().unwrap_or(path);
        let file = pictures().join(format!("{number}-{name}-{theme}-{language}.png"));
        fs::write(file, browser.screenshot().await).expect("a picture is kept");
        let foreign = browser
            .evaluate("return performance.getEntriesByType('resource').map(e => e.name).filter(name => !name.startsWith(location.origin))")
            .await;
        assert_eq!(foreign, serde_json::json!([]), "{path} asks nobody else");
        let bytes = browser
            .evaluate("return performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource')).reduce((sum, e) => sum + (e.encodedBodySize || 0), 0)")
            .await;
        assert!(
            bytes.as_u64().is_some_and(|bytes| bytes < 100_000),
            "{path}: {bytes} bytes"
        );
    }
    browser.close().await;
    console.stop().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_narrow_page_hides_nothing_in_english() {
    narrow("en").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_narrow_page_hides_nothing_in_japanese() {
    narrow("ja").await;
}

/// Narrow as a telephone: nothing of a page is cut off.
async fn narrow(language: &str) {
    let Some(browser) = Browser::start_narrow().await else {
        return;
    };
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    learned(&system, "set up a csa", "create_isda").await;
    everything_waits(&system).await;
    fill_with_hostile(&system).await;
    let console = Console::beside(&system).await;
    browser.open(&console.url("today")).await;
    wears(&browser, "light", language).await;
    for (number, path) in PAGES.into_iter().enumerate() {
        browser.open(&console.url(path)).await;
        browser.find("main h1").await;
        let hidden = "const width = document.documentElement.clientWidth;
            const seen = [...document.querySelectorAll('nav a, main td, main th, main button, main input, main select')]
                .filter(element => element.checkVisibility() && !element.closest('.sr, thead'));
            return [document.documentElement.scrollWidth - width,
                ...seen.filter(element => element.getBoundingClientRect().right > width + 1).map(element => element.outerHTML.slice(0, 120))];";
        assert_eq!(
            browser.evaluate(hidden).await,
            serde_json::json!([0]),
            "{path} in {language}"
        );
        if is_long() && language == "en" {
            assert_eq!(browser.barriers().await, [""; 0], "{path}");
        }
        let name = path.split(['?', '/']).next().unwrap_or(path);
        let file = pictures().join(format!("{number}-{name}-narrow-{language}.png"));
        fs::write(file, browser.screenshot().await).expect("a picture is kept");
    }
    // The keys of a page are listed on every page.
    browser.open(&console.url("fleet")).await;
    browser.find("main h1").await;
    browser.press("?").await;
    let keys = browser
        .evaluate("return document.querySelector('dialog.keys[open]')?.innerText ?? ''")
        .await;
    assert!(
        keys.as_str().is_some_and(|keys| keys.contains("Ctrl Enter")),
        "{keys}"
    );
    browser.close().await;
    console.stop().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_wrote_is_text_on_every_page() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let system = System::start(Database::sqlite(), 1, 1, Settings::default()).await;
    everything_waits(&system).await;
    fill_with_hostile(&system).await;
    let candidates = system
        .learning()
        .list_candidates(emend_proto::learning::v1::ListCandidatesRequest {
            namespace: emend_tests::harness::NAMESPACE.into(),
            kinds: vec![ResourceKind::InvocationPhrase as i32],
            ..Default::default()
        })
        .await;
    assert_eq!(candidates.len(), HOSTILE.len());
    for candidate in candidates.iter().skip(HOSTILE.len() / 2) {
        system
            .learning()
            .approve(candidate)
            .await
            .expect("it is approved");
    }
    let console = Console::beside(&system).await;
    let items = candidates
        .iter()
        .map(|candidate| format!("review?status=any&item={}", candidate.candidate_id));
    let pages: Vec<String> = PAGES.into_iter().map(str::to_owned).chain(items).collect();
    for path in pages {
        browser.open(&console.url(&path)).await;
        browser.find("main h1").await;
        let found = browser
            .evaluate("return [window.hacked ?? null, document.scripts.length, document.querySelectorAll('img').length, document.querySelectorAll('svg[onload], style, [onerror]').length, getComputedStyle(document.body).display]")
            .await;
        assert_eq!(found, serde_json::json!([null, 2, 1, 0, "grid"]), "{path}");
    }
    browser.close().await;
    console.stop().await;
    system.stop().await;
}
