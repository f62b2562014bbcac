//! The walls between the rooms of a crate: which module may use which. A crate's order is a table, from top to bottom;
//! a module may use those below it, never those above or beside it. So no two modules know each other, directly or in a
//! circle, and each can be read, tested and moved with what is beneath it alone.
//!
//! A room is a module of the crate's root with all that is in it, and `lib` is the root itself. The test reads the text:
//! `use` lines and paths that begin with `crate::`, or with enough `super::` to leave the room. Code that is built only for tests does not count.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    path::Path,
};

use anyhow::{Context as _, Result, bail};

use crate::{process::Workspace, steps::Outcome};

/// The conditions under which code is built for tests alone; two are features that only tests and fuzz targets ask for.
const TEST_CONDITIONS: &[&str] = &["test", "simulation", "fuzzing"];
/// The words that items begin with, and not fields or arms.
const ITEMS: &[&str] = &[
    "mod", "use", "fn", "async", "impl", "struct", "enum", "trait", "const", "static", "type", "unsafe",
    "let",
];

/// The order of one crate's modules.
struct Order {
    /// The folder of the package.
    package: &'static str,
    /// From top to bottom; those of one line are equals, which may not use each other. Every module has its place.
    rooms: &'static [&'static [&'static str]],
    /// Arrows that still go against the order, by who uses whom. One that is no longer there has to go from this list.
    remaining: &'static [(&'static str, &'static str)],
}

const ORDERS: &[Order] = &[EMEND_CORE, FEEDBACK_SVC, LEARNING_SVC];

const EMEND_CORE: Order = Order {
    package: "crates/emend-core",
    rooms: &[
        &["lib"],
        &["standing"],
        &["lookup"],
        &["generalise"],
        &["digest"],
        &["decide"],
        &["correction"],
        &["contest"],
        &["outputs"],
        &["outcome"],
        &["ballots"],
        &["candidate"],
        &["resource"],
        &["policy"],
        &["kinds"],
        &["search"],
        &["ratings"],
        &["evidence"],
        &["reporter"],
        &["voter"],
        &["roles"],
        &["personal_data"],
        &["ids"],
        &["normalize"],
        &["violation"],
        &["text"],
    ],
    remaining: &[],
};

const FEEDBACK_SVC: Order = Order {
    package: "services/feedback-svc",
    rooms: &[
        &["lib"],
        &["arguments"],
        &["feedback_service", "upkeep"],
        &["config"],
        &["queries"],
        &["erasure", "ratings"],
        &["corrections"],
        &["outbox"],
        &["installation", "settings"],
        &["metrics"],
        &["fail_points", "ids", "origin", "page", "pauses", "roles"],
    ],
    remaining: &[("arguments", "lib")],
};

const LEARNING_SVC: Order = Order {
    package: "services/learning-svc",
    rooms: &[
        &["lib"],
        &["arguments"],
        &["service"],
        &["capabilities", "watch"],
        &["metrics"],
        &["config"],
        &["ingest"],
        &["contests", "standings"],
        &[
            "erasure",
            "evidence",
            "outputs",
            "policies",
            "profiles",
            "resources",
        ],
        &["log"],
        &["lookups"],
        &["decisions", "stream"],
        &["nodes"],
        &["grpc"],
        &["generator", "roles"],
        &["etag", "export_slots", "fail_points", "failure"],
    ],
    remaining: &[],
};

/// Checks all crates that have an order.
pub(crate) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut findings = Vec::new();
    for order in ORDERS {
        let sources = read_sources(&workspace.path(order.package).join("src"))?;
        let found = violations(order, &sources)
            .into_iter()
            .map(|violation| format!("{}: {violation}", order.package));
        findings.extend(found);
    }
    if !findings.is_empty() {
        bail!(
            "{}\nARCHITECTURE.md shows the order; xtask/src/walls.rs holds it",
            findings.join("\n")
        );
    }
    Ok(Outcome::Done)
}

/// The texts of Rust sources, by their path from where reading began: a crate's `src`.
type Sources = BTreeMap<String, String>;

pub(crate) fn read_sources(root: &Path) -> Result<Sources> {
    let mut sources = Sources::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let name = path.strip_prefix(root)?.display().to_string();
                sources.insert(name, text);
            }
        }
    }
    Ok(sources)
}

/// One use of another room.
struct Arrow {
    from: String,
    to: String,
    place: String,
}

/// What a crate does against its order, in words.
fn violations(order: &Order, sources: &Sources) -> Vec<String> {
    let rank = |room: &str| order.rooms.iter().position(|equals| equals.contains(&room));
    let rooms = rooms(sources);
    let mut found: Vec<String> = rooms
        .iter()
        .filter(|room| rank(room).is_none())
        .map(|room| format!("{room} has no place in the order"))
        .collect();
    let stale = order.rooms.iter().copied().flatten();
    found.extend(
        stale
            .filter(|room| !rooms.contains(**room))
            .map(|room| format!("{room} is in the order, but there is no such module")),
    );
    let mut against = BTreeSet::new();
    for Arrow { from, to, place } in arrows(sources, &rooms) {
        let (Some(upper), Some(lower)) = (rank(&from), rank(&to)) else {
            continue;
        };
        if upper < lower {
            continue;
        }
        if !order.remaining.contains(&(&*from, &*to)) {
            found.push(format!("{from} may not use {to}: {place}"));
        }
        against.insert((from, to));
    }
    found.extend(
        order
            .remaining
            .iter()
            .filter(|(from, to)| !against.contains(&((*from).to_owned(), (*to).to_owned())))
            .map(|(from, to)| {
                format!("{from} does not use {to} any more: remove it from the remaining arrows")
            }),
    );
    found
}

/// The modules of the root that are built outside tests, and the root.
fn rooms(sources: &Sources) -> BTreeSet<String> {
    let tests = test_files(sources);
    sources
        .keys()
        .filter(|name| !is_test(name, &tests))
        .filter_map(|name| modules(name).into_iter().next())
        .chain(["lib".to_owned()])
        .collect()
}

/// The path of the module that a file is; empty for the root.
fn modules(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if ["lib", "main"].contains(&path) {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

/// The room that a path from the root is in.
fn room<'a>(path: &'a [String], rooms: &BTreeSet<String>) -> &'a str {
    match path {
        [first, ..] if rooms.contains(first) => first,
        _ => "lib",
    }
}

fn arrows(sources: &Sources, rooms: &BTreeSet<String>) -> Vec<Arrow> {
    let tests = test_files(sources);
    let exported = exported(sources, rooms);
    let mut arrows = Vec::new();
    for (name, text) in sources {
        let own = modules(name);
        let binary = name == "main.rs" || name.starts_with("bin/");
        if own.is_empty() || binary || is_test(name, &tests) {
            continue;
        }
        let from = room(&own, rooms);
        for (line, mut path) in used_paths(&without_tests(&blanked(text)), &own) {
            if let [name, ..] = path.as_slice()
                && let Some(whole) = exported.get(name)
            {
                path.splice(..1, whole.iter().cloned());
            }
            let to = room(&path, rooms);
            if to != from {
                arrows.push(Arrow {
                    from: from.to_owned(),
                    to: to.to_owned(),
                    place: format!("src/{name}:{line}: {}", path.join("::")),
                });
            }
        }
    }
    arrows
}

/// The names that the root re-exports from a module, each with its whole path.
fn exported(sources: &Sources, rooms: &BTreeSet<String>) -> BTreeMap<String, Vec<String>> {
    let root = sources.get("lib.rs").map_or("", String::as_str);
    let text = without_tests(&blanked(root));
    text.match_indices("pub use ")
        .flat_map(|(at, found)| leaves(&text[at + found.len()..]))
        .map(|path| match path.as_slice() {
            [first, rest @ ..] if first == "crate" || first == "self" => rest.to_vec(),
            _ => path,
        })
        .filter(|path| path.len() > 1 && rooms.contains(&path[0]))
        .filter_map(|path| Some((path.last()?.clone(), path)))
        .collect()
}

/// Every path of a text that leaves its module, from the root on, with its line.
fn used_paths(text: &str, own: &[String]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let is_inside =
                text[..at].ends_with(|before: char| is_word(before) || before == ':' || before == '$');
            if is_inside {
                continue;
            }
            let line = text[..at].matches('\n').count() + 1;
            for path in leaves(&text[at..]) {
                let supers = path.iter().take_while(|part| *part == "super").count();
                let rest = &path[supers.max(1)..];
                let base = if supers == 0 {
                    &[]
                } else {
                    &own[..own.len().saturating_sub(supers)]
                };
                let whole: Vec<String> = base.iter().chain(rest).cloned().collect();
                found.push((line, whole));
            }
        }
    }
    found
}

/// The paths of the tree that a text begins with: `a::{b, c::d}` has two.
fn leaves(text: &str) -> Vec<Vec<String>> {
    let mut rest = text;
    leaves_of(&mut rest, &[])
}

fn leaves_of(rest: &mut &str, before: &[String]) -> Vec<Vec<String>> {
    let mut path = before.to_vec();
    loop {
        *rest = rest.trim_start();
        if let Some(inside) = rest.strip_prefix('{') {
            *rest = inside;
            let mut found = Vec::new();
            loop {
                *rest = rest.trim_start();
                if let Some(after) = rest.strip_prefix('}') {
                    *rest = after;
                    return found;
                }
                let unread = rest.len();
                found.extend(leaves_of(rest, &path));
                *rest = rest.trim_start();
                *rest = rest.strip_prefix(',').unwrap_or(rest);
                if rest.len() == unread {
                    return found;
                }
            }
        }
        let word = rest.find(|next| !is_word(next)).unwrap_or(rest.len());
        if word == 0 {
            // A `*`, or no tree at all.
            *rest = rest.strip_prefix('*').unwrap_or(rest);
            return vec![path];
        }
        path.push(rest[..word].to_owned());
        *rest = &rest[word..];
        let Some(next) = rest.strip_prefix("::") else {
            if let Some(renamed) = rest.strip_prefix(" as ") {
                let end = renamed.find(|next| !is_word(next)).unwrap_or(renamed.len());
                *rest = &renamed[end..];
            }
            return vec![path];
        };
        *rest = next;
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The text with comments and the insides of literals blanked, line for line as long as before.
fn blanked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let literal = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(end) = raw_text(rest).filter(|_| !out.ends_with(is_word)) {
            end
        } else if first == '"' {
            quoted(rest, '"').unwrap_or(rest.len())
        } else if first == '\'' {
            character(rest).unwrap_or(0)
        } else {
            0
        };
        let (read, unread) = rest.split_at(literal.max(first.len_utf8()));
        // Conditions name features.
        if literal == 0 || out.ends_with("feature = ") {
            out.push_str(read);
        } else {
            out.extend(read.chars().map(|each| if each == '\n' { '\n' } else { ' ' }));
        }
        rest = unread;
    }
    out
}

/// Where a raw text ends that begins here.
fn raw_text(rest: &str) -> Option<usize> {
    let hashes = rest.strip_prefix('r')?;
    let count = hashes.chars().take_while(|each| *each == '#').count();
    let inside = hashes[count..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(count));
    Some(2 + count + inside.find(&end)? + end.len())
}

/// Where a literal ends that begins and ends with `quote`.
fn quoted(rest: &str, quote: char) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, each)) = characters.next() {
        if each == '\\' {
            characters.next();
        } else if each == quote {
            return Some(at + 1);
        }
    }
    None
}

/// Where a character's literal ends; none for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut characters = rest.chars().skip(1);
    let first = characters.next()?;
    (first == '\\' || characters.next() == Some('\''))
        .then(|| quoted(rest, '\''))
        .flatten()
}

/// The text without what is built only for tests, by its attributes.
fn without_tests(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for item in test_items(text) {
        if item.start >= at {
            out.push_str(&text[at..item.start]);
            // Lines keep their numbers.
            out.extend(text[item.clone()].chars().filter(|each| *each == '\n'));
            at = item.end;
        }
    }
    out + &text[at..]
}

/// The items of a text that are built only for tests, with their attribute.
fn test_items(text: &str) -> Vec<Range<usize>> {
    text.match_indices("#[cfg(")
        .filter_map(|(at, _)| {
            let condition = at + text[at..].find(']')?;
            let only_tests =
                mentions(&text[at..condition], TEST_CONDITIONS) && !text[at..condition].contains("not(");
            only_tests.then(|| at..condition + 1 + item_length(&text[condition + 1..]))
        })
        .collect()
}

fn mentions(condition: &str, words: &[&str]) -> bool {
    condition
        .split(|each| !is_word(each))
        .any(|word| words.contains(&word))
}

/// How long the item is that a text begins with, with its attributes.
fn item_length(text: &str) -> usize {
    let words = text
        .split(|each: char| !is_word(each))
        .filter(|word| !["pub", "crate", "super", ""].contains(word));
    let is_item = text.trim_start().starts_with('#') || words.take(1).any(|word| ITEMS.contains(&word));
    let mut depth = 0_i32;
    for (at, each) in text.char_indices() {
        match each {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth -= 1;
                if depth < 0 {
                    return at;
                }
                if depth == 0 && each == '}' {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            ',' if depth == 0 && !is_item => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The modules that are built only for tests and stand in files of their own: the files' paths, without `.rs`.
fn test_files(sources: &Sources) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, text) in sources {
        let text = blanked(text);
        for item in test_items(&text) {
            let item = text[item].trim_end();
            let declared = item.strip_suffix(';').and_then(|item| item.rsplit_once("mod "));
            if let Some((_, module)) = declared
                && module.chars().all(is_word)
            {
                let mut path = modules(name);
                path.push(module.to_owned());
                found.insert(path.join("/"));
            }
        }
    }
    found
}

fn is_test(file: &str, tests: &BTreeSet<String>) -> bool {
    let path = file.trim_end_matches(".rs");
    path.match_indices('/')
        .map(|(at, _)| &path[..at])
        .chain([path])
        .any(|part| tests.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Workspace;

    #[test]
    fn no_module_of_the_workspace_goes_against_its_crates_order() {
        check(&Workspace::locate()).unwrap();
    }

    const ORDER: Order = Order {
        package: "invented",
        rooms: &[&["lib"], &["upper", "beside"], &["lower"], &["bottom"]],
        remaining: &[],
    };

    /// An invented crate that keeps its order.
    fn tree() -> Sources {
        let files = [
            (
                "lib.rs",
                "mod beside; mod bottom; mod lower; mod upper; #[cfg(test)] mod tests; pub use beside::Shown;",
            ),
            ("upper.rs", "use crate::{lower::{self, Low}, bottom::Port};"),
            (
                "upper/part.rs",
                "use super::Own; fn low() { crate::lower::low() }",
            ),
            ("beside.rs", "pub struct Shown;"),
            ("lower/mod.rs", ""),
            ("lower/part/mod.rs", "use crate::bottom::Port;"),
            ("bottom.rs", "pub trait Port {} #[cfg(test)] mod contract;"),
            ("bottom/contract.rs", "use crate::upper::Own;"),
            ("tests/mod.rs", "use crate::{lower, upper};"),
        ];
        files
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into()
    }

    /// What is found when one file says something else.
    fn found(file: &str, text: &str) -> Vec<String> {
        let mut tree = tree();
        tree.insert(file.to_owned(), text.to_owned());
        violations(&ORDER, &tree)
    }

    #[test]
    fn a_tree_that_keeps_its_order_passes() {
        assert_eq!(violations(&ORDER, &tree()), [""; 0]);
    }

    #[test]
    fn an_arrow_upwards_is_found_however_it_is_written() {
        for text in [
            "use crate::upper::Own;",
            "use crate::{\n    bottom,\n    upper::part::{One, Two},\n};",
            "fn own() -> crate::upper::Own { todo() }",
            "use super::upper::Own;",
            "#[cfg(not(test))]\nuse crate::upper::Own;",
            "struct It {\n    #[cfg(test)]\n    field: bool,\n    own: crate::upper::Own,\n}",
        ] {
            let found = found("lower/mod.rs", text);
            assert!(
                found
                    .iter()
                    .any(|found| found.starts_with("lower may not use upper: src/lower/mod.rs:")),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn equals_may_not_use_each_other() {
        assert_eq!(
            found("upper/part.rs", "\nuse crate::beside::Shown;"),
            ["upper may not use beside: src/upper/part.rs:2: beside::Shown"]
        );
        assert_eq!(
            found("upper/part.rs", "use crate::Shown;"),
            ["upper may not use beside: src/upper/part.rs:1: beside::Shown"]
        );
    }

    #[test]
    fn comments_texts_and_tests_do_not_count() {
        for text in [
            "//! Not [`crate::upper`].\n/* use crate::upper::Own; */",
            "const TEXT: &str = \"use crate::upper::Own;\";",
            "const TEXT: &str = r#\"\" use crate::upper::Own;\"#;",
            "const QUOTE: char = '\"'; // crate::upper \"",
            "#[cfg(test)]\nmod tests { use crate::upper::Own; fn test() { {} } }",
            "#[cfg(any(test, feature = \"simulation\"))]\nuse crate::upper::{Own, Other};",
        ] {
            assert_eq!(found("lower/mod.rs", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn every_module_needs_a_place_and_every_place_a_module() {
        assert_eq!(found("fresh.rs", ""), ["fresh has no place in the order"]);
        let mut tree = tree();
        tree.remove("beside.rs");
        assert_eq!(
            violations(&ORDER, &tree),
            ["beside is in the order, but there is no such module"]
        );
    }

    #[test]
    fn a_remaining_arrow_is_let_pass_until_it_has_gone() {
        let order = Order {
            remaining: &[("lower", "upper")],
            ..ORDER
        };
        let mut tree = tree();
        assert_eq!(
            violations(&order, &tree),
            ["lower does not use upper any more: remove it from the remaining arrows"]
        );
        tree.insert("lower/mod.rs".to_owned(), "use crate::upper::Own;".to_owned());
        assert_eq!(violations(&order, &tree), [""; 0]);
    }
}
