//! Tables that fit the terminal: what people can do without gives way, what they decide about stays whole.

use emend_core::text::escaped;
use unicode_width::UnicodeWidthStr;

use super::lines::{broken, shortened};

/// The fewest characters of an id that are shown, and that a command takes for it.
pub const ID_PREFIX: usize = 8;
/// The same of one that begins with its time, a UUID of version 7: eight characters are those of all ids of a minute, and a list may
/// leave others out. This many have the time in milliseconds and twelve random bits.
const TIMED_ID_PREFIX: usize = 18;

/// The space between columns.
const GAP: usize = 2;
/// The narrowest that a column of texts becomes while another one can still give way.
const NARROW: usize = 6;
/// The width from which on what is cut is still told apart.
const READABLE: usize = 16;
/// The narrowest that a column becomes in which something is never cut.
const NARROW_WHOLE: usize = 12;
/// The characters of a time in RFC 3339 to the second, and of one to the minute.
const TIME: usize = 20;
/// See [`TIME`].
const SHORT_TIME: usize = 17;
/// How much is kept of what gives way in front of something that stays whole.
const HINT: usize = 5;

/// How a column is aligned and shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Left-aligned, never shortened.
    Fixed,
    /// Left-aligned texts with a time, which is shown to the minute. If the table would be too wide, what is more than a time is
    /// shortened.
    Time,
    /// Left-aligned UUIDs, shortened to prefixes that tell the rows apart if the table would be too wide.
    Id,
    /// Left-aligned, shortened if the table would be too wide.
    Text,
    /// Right-aligned.
    Number,
}

/// The text of one cell: a first part that may be shortened, and a second one that is broken into lines instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    gives_way: String,
    whole: String,
}

impl Cell {
    /// A text that is never cut.
    pub fn whole(text: String) -> Self {
        Self::pair(String::new(), text)
    }

    /// A key, which gives way, and what follows it, such as ` → create_isda`, which is never cut.
    pub fn pair(key: String, rest: String) -> Self {
        Self {
            gives_way: key,
            whole: rest,
        }
    }

    /// All of it.
    pub fn text(&self) -> String {
        format!("{}{}", self.gives_way, self.whole)
    }

    fn on_one_line(self) -> Self {
        // Escaped here, so that widths are those of what is shown.
        let one_line = |text: String| escaped(&text.replace(['\n', '\r', '\t'], " ")).into_owned();
        Self {
            gives_way: one_line(self.gives_way),
            whole: one_line(self.whole),
        }
    }

    /// The same with times to the minute.
    fn with_short_times(self) -> Self {
        let short = |text: String| text.split(' ').map(short_time).collect::<Vec<_>>().join(" ");
        Self {
            gives_way: short(self.gives_way),
            whole: short(self.whole),
        }
    }

    fn width(&self) -> usize {
        self.gives_way.width() + self.whole.width()
    }

    /// The width below which the part that is never cut needs a line of its own.
    fn least_width(&self) -> usize {
        match self.whole.width() {
            0 => 0,
            whole => whole + self.gives_way.width().min(HINT),
        }
    }

    /// The cell in lines of at most `width`.
    fn lines(&self, width: usize) -> Vec<String> {
        if self.width() <= width {
            return vec![self.text()];
        }
        if self.least_width() <= width {
            let key = shortened(&self.gives_way, width - self.whole.width());
            return vec![format!("{key}{}", self.whole)];
        }
        let mut lines = Vec::new();
        if !self.gives_way.is_empty() {
            lines.push(shortened(&self.gives_way, width));
        }
        lines.extend(broken(self.whole.trim_start(), width));
        lines
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::pair(text, String::new())
    }
}

/// Rows under headings.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(String, Column)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table.
    pub fn new<const N: usize>(columns: [(&str, Column); N]) -> Self {
        Self {
            columns: columns
                .into_iter()
                .map(|(heading, column)| (heading.to_owned(), column))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; cells beyond the columns are not shown.
    pub fn row<C: Into<Cell>, const N: usize>(&mut self, cells: [C; N]) {
        let columns = self.columns.iter().map(|(_, column)| *column);
        let cells = cells.into_iter().zip(columns).map(|(cell, column)| {
            let cell = cell.into().on_one_line();
            if column == Column::Time {
                cell.with_short_times()
            } else {
                cell
            }
        });
        self.rows.push(cells.collect());
    }

    /// Adds a row per item.
    #[must_use]
    pub fn with_rows<T, C: Into<Cell>, const N: usize>(
        mut self,
        items: &[T],
        row: impl Fn(&T) -> [C; N],
    ) -> Self {
        for item in items {
            self.row(row(item));
        }
        self
    }

    /// Renders the table at most `width` columns wide, if the columns that are never shortened leave room for that.
    pub fn render(&self, width: usize) -> String {
        self.without_empty_columns().rendered(width)
    }

    /// The same without columns that have neither a heading nor anything below it.
    fn without_empty_columns(&self) -> Self {
        let is_shown = |index: &usize| {
            !self.columns[*index].0.is_empty() || self.column(*index).any(|cell| cell.width() > 0)
        };
        let shown: Vec<usize> = (0..self.columns.len()).filter(is_shown).collect();
        let row = |row: &Vec<Cell>| {
            shown
                .iter()
                .filter_map(|&index| row.get(index).cloned())
                .collect()
        };
        Self {
            columns: shown.iter().map(|&index| self.columns[index].clone()).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    fn rendered(&self, width: usize) -> String {
        let widths = self.widths(width);
        let headings = self
            .columns
            .iter()
            .map(|(heading, _)| Cell::whole(heading.clone()));
        let headings: Vec<Cell> = headings.collect();
        let mut text = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            self.render_row(row, &widths, &mut text);
        }
        text
    }

    /// A row's lines; where a cell needs several, those of the others are empty.
    fn render_row(&self, row: &[Cell], widths: &[usize], text: &mut String) {
        let cells: Vec<Vec<String>> = row
            .iter()
            .zip(&self.columns)
            .zip(widths)
            .map(|((cell, (_, column)), &width)| match column {
                Column::Id => {
                    let beginning: String = cell.text().chars().take(width).collect();
                    vec![beginning.trim_end_matches('-').to_owned()]
                }
                Column::Fixed | Column::Time | Column::Text | Column::Number => cell.lines(width),
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let line = cells.iter().zip(&self.columns).zip(widths);
            let line = line.map(|((lines, (_, column)), &width)| {
                padded(lines.get(at).map_or("", String::as_str), *column, width)
            });
            text.push_str(line.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end());
            text.push('\n');
        }
    }

    /// How wide the columns would have to be for everything to be shown.
    fn whole_widths(&self) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        let widths = columns.map(|(index, (heading, _))| {
            self.column(index)
                .map(Cell::width)
                .fold(heading.width(), usize::max)
        });
        widths.collect()
    }

    /// What the gaps leave of a width.
    fn room(&self, width: usize) -> usize {
        width.saturating_sub(GAP * self.columns.len().saturating_sub(1))
    }

    /// How wide the columns are in a table of that width.
    fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths = self.whole_widths();
        let room = self.room(width);
        let is_wide = |widths: &[usize]| widths.iter().sum::<usize>() > room;
        if is_wide(&widths) {
            for (index, (heading, column)) in self.columns.iter().enumerate() {
                if *column == Column::Id {
                    widths[index] = self.prefix(index).max(heading.width());
                }
            }
        }
        // First what is cut, the widest column first, as long as it can be told what it is; then what is broken into lines; then
        // the rest of what is cut; last, lines so short that words are broken.
        let whole = |index: usize| match self.columns[index].1 {
            Column::Time => SHORT_TIME,
            _ => self.column(index).map(Cell::least_width).max().unwrap_or(0),
        };
        let least: Vec<usize> = (0..widths.len()).map(whole).collect();
        let broken = |index: usize, cut: usize| match (self.columns[index].1, least[index]) {
            (Column::Time, _) => SHORT_TIME,
            (_, 0) => cut,
            _ => NARROW_WHOLE,
        };
        let in_short_lines = |index: usize| match self.columns[index].1 {
            Column::Time => SHORT_TIME,
            _ => NARROW,
        };
        let narrowest: [&dyn Fn(usize) -> usize; 4] = [
            &|index| least[index].max(READABLE),
            &|index| broken(index, READABLE),
            &|index| broken(index, NARROW),
            &in_short_lines,
        ];
        // No word of a heading is cut.
        let word = |index: usize| {
            let words = self.columns[index].0.split(' ');
            words.map(UnicodeWidthStr::width).max().unwrap_or(0)
        };
        for narrowest in narrowest {
            while is_wide(&widths) {
                let widest = (0..widths.len())
                    .filter(|&index| {
                        [Column::Text, Column::Time].contains(&self.columns[index].1)
                            && widths[index] > narrowest(index).max(word(index))
                    })
                    .max_by_key(|&index| widths[index]);
                match widest {
                    Some(index) => widths[index] -= 1,
                    None => break,
                }
            }
        }
        widths
    }

    fn column(&self, index: usize) -> impl Iterator<Item = &Cell> {
        self.rows.iter().filter_map(move |row| row.get(index))
    }

    /// How many characters tell the ids of a column apart; none ends with a dash, which nobody would type.
    fn prefix(&self, index: usize) -> usize {
        let mut ids: Vec<&str> = self.column(index).map(|cell| &*cell.gives_way).collect();
        ids.sort_unstable();
        ids.dedup();
        let shared = ids.windows(2).map(|pair| {
            let same = pair[0].chars().zip(pair[1].chars());
            same.take_while(|(one, other)| one == other).count()
        });
        // The version of a UUID is its thirteenth digit.
        let is_timed = ids.iter().any(|id| id.chars().nth(14) == Some('7'));
        let least = if is_timed { TIMED_ID_PREFIX } else { ID_PREFIX };
        let length = shared.max().map_or(0, |shared| shared + 1).max(least);
        let ends_with_dash = |id: &&str| id.chars().nth(length - 1) == Some('-');
        length + usize::from(ids.iter().any(ends_with_dash))
    }
}

/// Whether a word is a time such as `2026-11-29T08:36:10Z`, perhaps with a colon after it.
fn is_time(word: &str) -> bool {
    let time = word.strip_suffix(':').unwrap_or(word);
    time.len() == TIME && time.is_ascii() && time.ends_with('Z') && time.as_bytes()[10] == b'T'
}

/// `2026-11-29T08:36:10Z` as `2026-11-29T08:36Z`, which commands take too; anything else as it is.
fn short_time(word: &str) -> String {
    if !is_time(word) {
        return word.to_owned();
    }
    let after = &word[TIME..];
    format!("{}Z{after}", &word[..16])
}

/// Pads a line of a cell to its column.
fn padded(line: &str, column: Column, width: usize) -> String {
    let padding = " ".repeat(width.saturating_sub(line.width()));
    match column {
        Column::Number => padding + line,
        Column::Fixed | Column::Time | Column::Id | Column::Text => line.to_owned() + &padding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            ("ID", Column::Fixed),
            ("PHRASE", Column::Text),
            ("VOTES", Column::Number),
        ]);
        let row = |id: &str, phrase: &str, votes: &str| [id, phrase, votes].map(str::to_owned);
        table.row(row("0192d3c5-7a0e", "set up\na CSA", "3"));
        table.row(row("x", "a very long phrase that nobody reads to its end", "12"));
        table
    }

    #[test]
    fn columns_are_aligned_and_numbers_are_aligned_right() {
        let text = table().render(100);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "ID             PHRASE                                           VOTES"
        );
        assert!(lines[1].ends_with("    3") && lines[1].contains("set up a CSA"));
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() == lines[0].chars().count())
        );
    }

    #[test]
    fn text_is_shortened_to_fit_and_what_is_fixed_is_not() {
        let text = table().render(40);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("0192d3c5-7a0e") && text.contains('…'));
    }

    #[test]
    fn a_kanji_takes_two_columns() {
        let mut table = Table::new([("TERM", Column::Text), ("VOTES", Column::Number)]);
        table.row(["相手のリーダー", "3"].map(str::to_owned));
        table.row(["leader", "12"].map(str::to_owned));
        assert_eq!(
            table.render(100),
            "TERM            VOTES\n相手のリーダー      3\nleader             12\n"
        );
        assert_eq!(
            table.render(16),
            "TERM       VOTES\n相手のリ…      3\nleader        12\n"
        );
        assert_eq!(shortened("相手の", 4), "相…");
    }

    #[test]
    fn times_are_to_the_minute_however_wide_and_ids_that_begin_with_theirs_are_cut_to_what_is_random() {
        let id = |at: &str| format!("01a22672-92af-{at}");
        let table = |first: &str| {
            Table::new([
                ("FEEDBACK", Column::Id),
                ("AT", Column::Time),
                ("REASON", Column::Text),
            ])
            .with_rows(
                &[
                    (id("7fc4-aeb6-80e41eced573"), first),
                    (id("7bed-807c-18aea10d5fab"), "–"),
                ],
                |(id, at)| [id.clone(), (*at).to_owned(), "a reason of some length".to_owned()],
            )
        };
        let table = table("2026-11-29T08:36:10Z");
        assert!(table.render(100).contains(" 2026-11-29T08:36Z "));
        assert_eq!(
            table.render(48),
            "FEEDBACK            AT                 REASON\n\
             01a22672-92af-7fc4  2026-11-29T08:36Z  a reason…\n\
             01a22672-92af-7bed  –                  a reason…\n"
        );
    }

    #[test]
    fn where_there_is_hardly_room_what_is_whole_is_in_short_lines_and_a_heading_is_whole_too() {
        let columns = ["EDGE", "WHAT IT SAYS", "REPORTER"];
        let mut table = Table::new(columns.map(|heading| (heading, Column::Text)));
        table.row([
            Cell::whole("edge:0192d3c5".to_owned()),
            Cell::whole("it refutes".to_owned()),
            Cell::from("somebody else".to_owned()),
        ]);
        assert_eq!(
            table.render(26),
            "EDGE     WHAT IT  REPORTER\n         \
                      SAYS\n\
             edge:01  it       somebod…\n\
             92d3c5   refutes\n"
        );
    }

    #[test]
    fn ids_and_keys_give_way_and_a_choice_is_never_cut() {
        let long = "a-choice-that-is-longer-than-the-column-has-room-for";
        let rows = [
            (
                "51fa440e-1535-5be4-ba57-7a0a9cb50bdf",
                "J. Smith",
                " → person:jane",
            ),
            (
                "51fa440e-a535-5be4-ba57-7a0a9cb50bdf",
                "相手のリーダーにダメージを与えるカード",
                " → 検索_リーダー",
            ),
            ("ca3bcc6b-5bad-5e3c-ac8a-2c0ec2ef87a2", "book the trade", long),
        ];
        let columns = [
            ("CANDIDATE", Column::Id),
            ("WHAT", Column::Text),
            ("STATUS", Column::Fixed),
        ];
        let table = |rows: &[(&str, &str, &str)]| {
            Table::new(columns).with_rows(rows, |(id, key, rest)| {
                [
                    Cell::from((*id).to_owned()),
                    Cell::pair((*key).to_owned(), (*rest).to_owned()),
                    Cell::from("awaiting_review".to_owned()),
                ]
            })
        };
        assert_eq!(
            table(&rows).render(52),
            "CANDIDATE   WHAT                     STATUS\n\
             51fa440e-1  J. Smith → person:jane   awaiting_review\n\
             51fa440e-a  相手の… → 検索_リーダー  awaiting_review\n\
             ca3bcc6b-5  book the trade           awaiting_review\n            \
                         a-choice-that-is-longer\n            \
                         -than-the-column-has-ro\n            \
                         om-for\n"
        );
        // The widest table keeps its ids whole, and where there is room for a choice, it is not broken.
        assert!(table(&rows).render(200).contains(rows[0].0));
        let text = table(&rows).render(80);
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        assert!(text.contains("51fa440e-1  J. Smith → person:jane"), "{text}");
    }
}
