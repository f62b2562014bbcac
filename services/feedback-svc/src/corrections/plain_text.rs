//! What is kept of what people write with a rating: plain text, without HTML and without personal data.

use std::borrow::Cow;

use emend_core::{Invalid, personal_data, text, violation::bounded_prose};
use feedback_store::records::feedback::Removed;
use html5gum::{DefaultEmitter, Token, Tokenizer};
use unicode_segmentation::UnicodeSegmentation as _;

/// Maximum length of a reason in grapheme clusters: characters as people see them.
pub(crate) const MAX_GRAPHEMES: usize = 300;
/// Maximum size of a reason in bytes.
pub(crate) const MAX_BYTES: usize = 4 * 1024;
/// Maximum passes over a text. What people write needs one that changes it, if any, and one that does not.
const ROUNDS: usize = 8;

/// Parses the reason of a rating.
pub(crate) fn reason(raw: &str) -> Result<String, Invalid> {
    let text = raw.trim();
    if text.len() > MAX_BYTES {
        return Err(Invalid::new(format!(
            "must be at most 4 KiB, has {} bytes",
            text.len()
        )));
    }
    let graphemes = text.graphemes(true).count();
    if graphemes > MAX_GRAPHEMES {
        return Err(Invalid::new(format!(
            "must be at most {MAX_GRAPHEMES} characters, has {graphemes}"
        )));
    }
    bounded_prose(text, 0, MAX_BYTES)
}

/// Takes HTML and personal data out of a text. A mask may be longer than what it hides, so the result is cut to `fits`.
pub(crate) fn clean(text: &mut String, fits: impl Fn(&str) -> usize) -> Removed {
    let plain = without_html(text);
    let masked = personal_data::mask(&plain);
    let removed = Removed {
        html: matches!(plain, Cow::Owned(_)),
        personal_data: matches!(masked, Cow::Owned(_)) || *masked != *plain,
    };
    if removed != Removed::default() {
        let mut kept = masked.trim().to_owned();
        kept.truncate(fits(&kept));
        kept.truncate(kept.trim_end().len());
        *text = kept;
    }
    removed
}

/// How much of a reason is kept, in bytes.
pub(crate) fn fits_reason(text: &str) -> usize {
    let end = text
        .grapheme_indices(true)
        .nth(MAX_GRAPHEMES)
        .map_or(text.len(), |(end, _)| end);
    end.min(text.floor_char_boundary(MAX_BYTES))
}

/// The text of a piece of HTML, again and again until nothing in it is HTML: what is written as entities may itself be HTML.
fn without_html(text: &str) -> Cow<'_, str> {
    let mut plain = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        if !plain.contains(['<', '&']) {
            return plain;
        }
        let next = text_of(&plain);
        if next == plain {
            return plain;
        }
        plain = Cow::Owned(next);
    }
    Cow::Owned(plain.replace(['<', '&'], " "))
}

/// Elements before and after which a browser breaks the line, or leaves a gap.
const BLOCKS: [&str; 37] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "caption",
    "center",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "td",
    "th",
    "ul",
];

/// Elements whose contents are no text.
const HIDDEN: [&str; 2] = ["script", "style"];

/// The text of a piece of HTML as a browser would show it.
fn text_of(html: &str) -> String {
    let mut emitter = DefaultEmitter::default();
    // As a browser: what looks like a tag in a script is none.
    emitter.naively_switch_states(true);
    let is_one_of = |name: &[u8], names: &[&str]| names.iter().any(|one| one.as_bytes() == name);
    let mut shown = Shown::default();
    let mut is_hidden = false;
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        let (name, begins) = match token {
            Token::StartTag(tag) => (tag.name, true),
            Token::EndTag(tag) => (tag.name, false),
            Token::String(text) => {
                if !is_hidden {
                    shown.push(&String::from_utf8_lossy(&text));
                }
                continue;
            }
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => continue,
        };
        if is_one_of(&name, &HIDDEN) {
            is_hidden = begins;
        } else if is_one_of(&name, &BLOCKS) {
            shown.break_line();
        }
    }
    // Entities can name characters that no text may hold.
    text::clean(&shown.text).into_owned()
}

/// What a browser would show so far.
#[derive(Debug, Default)]
struct Shown {
    text: String,
    /// Whether nothing was shown since the last line break.
    is_line_begin: bool,
}

impl Shown {
    fn push(&mut self, text: &str) {
        let text = if self.is_line_begin {
            text.trim_start_matches(' ')
        } else {
            text
        };
        self.is_line_begin &= text.is_empty();
        self.text.push_str(text);
    }

    /// Breaks the line; of a run of breaks only the first does, and none before the first text.
    fn break_line(&mut self) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.is_line_begin = true;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cleaned(text: &str) -> (String, Removed) {
        let mut kept = text.to_owned();
        let removed = clean(&mut kept, fits_reason);
        (kept, removed)
    }

    #[test]
    fn html_becomes_the_text_that_it_shows() {
        for (html, text) in [
            ("<script>alert(1)</script>no hits", "no hits"),
            ("<b onclick=\"steal()\">bold</b> claim", "bold claim"),
            ("<div><p>one<i>two</p></i>", "onetwo"),
            ("<p>one</p><p>two</p>", "one\ntwo"),
            ("one<br>two<br/><br>three", "one\ntwo\nthree"),
            ("one<div>two</div>three <b>four</b>", "one\ntwo\nthree four"),
            (
                "<ul><li>one<li onclick=\"alert(1)\">two</ul>three",
                "one\ntwo\nthree",
            ),
            ("<table><tr><td>one</td><td>two</td></tr></table>", "one\ntwo"),
            ("<h1>one</h1>two", "one\ntwo"),
            ("<img src=x onerror=alert(1)>", ""),
            ("<scr<script>ipt>nested</scr</script>ipt>x", "ipt>nestedipt>x"),
            ("&lt;script&gt;alert(1)&lt;/script&gt;kept", "kept"),
            ("&amp;lt;b&amp;gt;kept", "kept"),
            ("<!-- hidden -->shown", "shown"),
            ("<a href='javascript:x'>link", "link"),
            ("<svg/onload=alert(1)>", ""),
            ("unfinished <b", "unfinished"),
            ("&#x202e;on<br>e&#xe0041;", "on\ne"),
            ("<b>盤面</b>が&amp;<i title='>'>手札</i>に", "盤面が&手札に"),
            (
                "<style>p { color: red }</style>no <STYLE>b</STYLE>hits",
                "no hits",
            ),
            ("one<script>'<p>alert(1)</p>'</script> two", "one two"),
            ("one <script>alert(1)", "one"),
            ("<textarea><b>one</b></textarea>", "one"),
            ("<P>one</P> <P>two</P>", "one\ntwo"),
            ("one\r\n<p>two", "one\ntwo"),
            ("x &gt 3 &copy; y", "x > 3 © y"),
            ("<!doctype html><![CDATA[one]]>two", "two"),
        ] {
            let (kept, removed) = cleaned(html);
            assert!(removed.html, "{html}");
            assert!(!kept.contains('<') && !kept.contains("alert"), "{html} → {kept}");
            if !text.is_empty() {
                assert_eq!(kept, text, "{html}");
            }
        }
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        for text in [
            "1 < 2 & 3 > 2",
            "R&D",
            "盤面が手札に戻らない",
            "a\nb",
            "\"quoted\"",
            "a  b \n c",
        ] {
            assert_eq!(cleaned(text), (text.to_owned(), Removed::default()));
        }
    }

    #[test]
    fn personal_data_is_masked_also_where_html_hid_it() {
        for (text, masked) in [
            ("ask jane.doe@example.org", "ask [email]"),
            ("ask jane<b>.doe@</b>example.org", "ask [email]"),
            ("card 4111 1111 1111 1111", "card [card]"),
            ("from 192.0.2.17", "from [ip]"),
            ("call +44 20 7946 0958", "call [phone]"),
            ("ask jane&#64;example.org", "ask [email]"),
        ] {
            let (kept, removed) = cleaned(text);
            assert_eq!(kept, masked);
            assert!(removed.personal_data);
        }
    }

    #[test]
    fn a_reason_has_at_most_300_characters_as_people_see_them() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        for (grapheme, most) in [("a", 300), ("語", 300), ("e\u{301}", 300)] {
            assert!(reason(&grapheme.repeat(most)).is_ok(), "{grapheme}");
            assert!(reason(&grapheme.repeat(most + 1)).is_err(), "{grapheme}");
        }
        // 18 bytes each: 4 KiB hold fewer than 300 of them, so others fill up.
        let filled = |count: usize| family.repeat(200) + &"a".repeat(count);
        assert_eq!(reason(&filled(100)).unwrap().len(), 200 * 18 + 100);
        let refused = reason(&filled(101)).unwrap_err();
        assert_eq!(refused.0, "must be at most 300 characters, has 301");
        let refused = reason(&"e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".repeat(300)).unwrap_err();
        assert_eq!(refused.0, "must be at most 4 KiB, has 4500 bytes");
    }

    proptest! {
        #[test]
        fn what_is_clean_stays_so_and_fits(text in "([<>&;/!=\"' a-c@.1-9\n]|script|&lt;|&amp;|&#|--|svg|x@y\\.zz){0,60}") {
            let (once, _) = cleaned(&text);
            let (twice, _) = cleaned(&once);
            prop_assert_eq!(twice.trim(), once.trim(), "{}", text);
            prop_assert!(reason(&once).is_ok(), "{}", once);
        }
    }
}
