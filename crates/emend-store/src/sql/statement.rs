//! The text of a statement, with its arguments.

use std::{borrow::Cow, fmt::Display, fmt::Write as _};

use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr, postgres::PgArguments, sqlite::SqliteArguments};

use super::Argument;

/// A statement that either database can execute.
///
/// Its parameters are either written where they are bound ([`Statement::push_bind`]), or stand in the text as `$1`, `$2` … and
/// are bound in this order ([`Statement::bind`]). A statement with both fails on either database when it is executed.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    /// As SQLite has it, with a `?` for each pushed parameter.
    text: Cow<'static, str>,
    /// Where PostgreSQL has something else, in order.
    marks: Vec<(usize, Mark)>,
    parameters: Parameters,
    arguments: Vec<Argument>,
}

/// How the parameters of a statement are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Parameters {
    #[default]
    None,
    Numbered,
    Pushed,
    /// PostgreSQL would give both the same numbers, and SQLite the same values.
    Mixed,
}

impl Parameters {
    fn add(&mut self, other: Self) {
        *self = match (*self, other) {
            (Self::None, parameters) | (parameters, Self::None) => parameters,
            (former, latter) if former == latter => former,
            _ => Self::Mixed,
        };
    }
}

/// What PostgreSQL has at a place of a text.
#[derive(Debug, Clone)]
enum Mark {
    /// The number of a parameter in place of its `?`.
    Parameter,
    /// Something else in place of what is SQLite's.
    Instead {
        /// Where that ends.
        end: usize,
        /// How many marks and arguments are in it.
        marks: usize,
        arguments: usize,
        postgres: Statement,
    },
}

impl Statement {
    /// A statement that begins with this text.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Appends to the text, which must never hold what somebody else wrote: that is bound.
    pub fn push(&mut self, text: impl Display) -> &mut Self {
        let written = write!(self.text.to_mut(), "{text}");
        debug_assert!(written.is_ok(), "writing to a string does not fail");
        self
    }

    /// Appends a parameter and binds it.
    pub fn push_bind(&mut self, value: impl Into<Argument>) -> &mut Self {
        self.marks.push((self.text.len(), Mark::Parameter));
        self.text.to_mut().push('?');
        self.parameters.add(Parameters::Pushed);
        self.arguments.push(value.into());
        self
    }

    /// Binds the next parameter that the text numbers.
    #[must_use]
    pub fn bind(mut self, value: impl Into<Argument>) -> Self {
        self.parameters.add(Parameters::Numbered);
        self.arguments.push(value.into());
        self
    }

    /// Appends what follows with a separator in between.
    pub fn separated(&mut self, separator: &'static str) -> Separated<'_> {
        Separated {
            statement: self,
            separator,
            is_first: true,
        }
    }

    /// Appends `VALUES (…), (…)` with a row for each item.
    pub fn push_values<T>(
        &mut self,
        rows: impl IntoIterator<Item = T>,
        mut push_row: impl FnMut(Separated<'_>, T),
    ) -> &mut Self {
        self.push("VALUES ");
        for (index, row) in rows.into_iter().enumerate() {
            self.push(if index == 0 { "(" } else { ", (" });
            push_row(self.separated(", "), row);
            self.push(")");
        }
        self
    }

    /// Appends `($1, $2, …)`; for no items, a list that matches nothing.
    pub fn push_list<T: Into<Argument>>(&mut self, items: impl IntoIterator<Item = T>) -> &mut Self {
        let mut items = items.into_iter().peekable();
        if items.peek().is_none() {
            return self.push("(NULL)");
        }
        self.push("(");
        let mut list = self.separated(", ");
        for item in items {
            list.push_bind(item);
        }
        self.push(")")
    }

    /// Appends the number of a LIMIT. SQLite plans a statement anew each time a parameter is bound that alone is its LIMIT.
    pub fn push_limit(&mut self, limit: u32) -> &mut Self {
        self.push("CAST(").push_bind(i64::from(limit)).push(" AS BIGINT)")
    }

    /// Appends what the databases say differently. The parameters of both are pushed ones: numbered ones count as mixed.
    pub fn push_either(&mut self, sqlite: Self, postgres: Self) -> &mut Self {
        for side in [&sqlite, &postgres] {
            self.parameters.add(match side.parameters {
                Parameters::Numbered => Parameters::Mixed,
                parameters => parameters,
            });
        }
        let place = self.text.len();
        let end = place + sqlite.text.len();
        let instead = Mark::Instead {
            end,
            marks: sqlite.marks.len(),
            arguments: sqlite.arguments.len(),
            postgres,
        };
        self.marks.push((place, instead));
        let inner = sqlite.marks.into_iter();
        self.marks
            .extend(inner.map(|(inner, mark)| (place + inner, mark)));
        self.arguments.extend(sqlite.arguments);
        self.push(sqlite.text)
    }

    /// Ends a SELECT whose rows are locked. On SQLite there is nothing to lock: the one writer has the whole file.
    pub fn for_update(&mut self) -> &mut Self {
        self.push_either(Self::new(""), Self::new(" FOR UPDATE"))
    }

    /// Ends a SELECT whose rows are locked against changes.
    pub fn for_share(&mut self) -> &mut Self {
        self.push_either(Self::new(""), Self::new(" FOR SHARE"))
    }

    /// The text as SQLite has it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same statement after another beginning, as `EXPLAIN`.
    #[must_use]
    pub fn after(mut self, beginning: &str) -> Self {
        self.text.to_mut().insert_str(0, beginning);
        for (place, mark) in &mut self.marks {
            *place += beginning.len();
            if let Mark::Instead { end, .. } = mark {
                *end += beginning.len();
            }
        }
        self
    }

    /// Fails if parameters of both ways are in it.
    fn check(&self) -> Result<(), sqlx::Error> {
        if self.parameters != Parameters::Mixed {
            return Ok(());
        }
        let text = &self.text;
        let message = format!("the statement mixes numbered parameters with pushed ones: {text}");
        Err(sqlx::Error::Encode(message.into()))
    }

    pub(super) fn for_sqlite(self) -> Result<(SqlStr, SqliteArguments), sqlx::Error> {
        self.check()?;
        let mut arguments = SqliteArguments::default();
        sqlx::Arguments::reserve(&mut arguments, self.arguments.len(), 0);
        for argument in self.arguments {
            argument.bind_sqlite(&mut arguments)?;
        }
        Ok((sql_str(self.text), arguments))
    }

    pub(super) fn for_postgres(self) -> Result<(SqlStr, PgArguments), sqlx::Error> {
        self.check()?;
        let mut arguments = PgArguments::default();
        if self.marks.is_empty() {
            for argument in self.arguments {
                argument.bind_postgres(&mut arguments)?;
            }
            return Ok((sql_str(self.text), arguments));
        }
        let mut text = String::with_capacity(self.text.len() + 3 * self.marks.len());
        self.write_postgres(&mut text, &mut arguments)?;
        Ok((AssertSqlSafe(text).into_sql_str(), arguments))
    }

    /// Appends the text and the arguments as PostgreSQL has them.
    fn write_postgres(self, text: &mut String, bound: &mut PgArguments) -> Result<(), sqlx::Error> {
        let mut arguments = self.arguments.into_iter();
        let mut marks = self.marks.into_iter();
        let mut rest = 0;
        while let Some((place, mark)) = marks.next() {
            text.push_str(&self.text[rest..place]);
            match mark {
                Mark::Parameter => {
                    if let Some(argument) = arguments.next() {
                        argument.bind_postgres(bound)?;
                    }
                    rest = place + "?".len();
                    let written = write!(text, "${}", sqlx::Arguments::len(bound));
                    debug_assert!(written.is_ok(), "writing to a string does not fail");
                }
                Mark::Instead {
                    end,
                    marks: inner,
                    arguments: skipped,
                    postgres,
                } => {
                    rest = end;
                    marks.by_ref().take(inner).for_each(drop);
                    arguments.by_ref().take(skipped).for_each(drop);
                    postgres.write_postgres(text, bound)?;
                }
            }
        }
        text.push_str(&self.text[rest..]);
        // Those that the text numbers itself.
        for argument in arguments {
            argument.bind_postgres(bound)?;
        }
        Ok(())
    }
}

fn sql_str(text: Cow<'static, str>) -> SqlStr {
    match text {
        Cow::Borrowed(text) => SqlStr::from_static(text),
        // Only what this program wrote is in it: all else is bound.
        Cow::Owned(text) => AssertSqlSafe(text).into_sql_str(),
    }
}

/// Appends items with a separator between them.
#[derive(Debug)]
pub struct Separated<'a> {
    statement: &'a mut Statement,
    separator: &'static str,
    is_first: bool,
}

impl Separated<'_> {
    /// Appends text, after the separator.
    pub fn push(&mut self, text: impl Display) -> &mut Self {
        self.separate();
        self.statement.push(text);
        self
    }

    /// Appends text to the item before.
    pub fn push_unseparated(&mut self, text: impl Display) -> &mut Self {
        self.statement.push(text);
        self
    }

    /// Appends a parameter, after the separator.
    pub fn push_bind(&mut self, value: impl Into<Argument>) -> &mut Self {
        self.separate();
        self.statement.push_bind(value);
        self
    }

    /// Appends a parameter to the item before.
    pub fn push_bind_unseparated(&mut self, value: impl Into<Argument>) -> &mut Self {
        self.statement.push_bind(value);
        self
    }

    fn separate(&mut self) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.statement.push(self.separator);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Statement {
        let mut statement = Statement::new("SELECT 'why?' WHERE id IN ");
        statement.push_list([1_i64, 2]).push(" OR name = ").push_bind("a");
        statement
    }

    #[test]
    fn each_database_gets_its_own_parameters() {
        let text = "SELECT 'why?' WHERE id IN ";
        let (sqlite, _) = written().for_sqlite().unwrap();
        assert_eq!(sqlite.as_str(), format!("{text}(?, ?) OR name = ?"));
        let (postgres, _) = written().for_postgres().unwrap();
        assert_eq!(postgres.as_str(), format!("{text}($1, $2) OR name = $3"));
        let (explained, _) = written().after("EXPLAIN ").for_postgres().unwrap();
        assert_eq!(explained.as_str(), format!("EXPLAIN {text}($1, $2) OR name = $3"));
    }

    #[test]
    fn a_list_of_nothing_matches_nothing() {
        let mut statement = Statement::new("id IN ");
        statement.push_list(Vec::<i64>::new());
        assert_eq!(statement.text(), "id IN (NULL)");
    }

    #[test]
    fn rows_of_values_stand_between_commas() {
        let mut statement = Statement::new("");
        statement.push_values([1_i64, 2], |mut row, number| {
            row.push_bind(number)
                .push("now")
                .push_unseparated("()")
                .push_bind(Some("x"));
        });
        assert_eq!(statement.text(), "VALUES (?, now(), ?), (?, now(), ?)");
    }

    #[test]
    fn only_postgresql_locks_rows() {
        let mut statement = Statement::new("SELECT * FROM (SELECT id FROM t WHERE id = ");
        statement
            .push_bind(1)
            .for_update()
            .push(") AS x LIMIT ")
            .push_bind(2_i64);
        let (sqlite, _) = statement.clone().for_sqlite().unwrap();
        assert_eq!(
            sqlite.as_str(),
            "SELECT * FROM (SELECT id FROM t WHERE id = ?) AS x LIMIT ?"
        );
        let (postgres, _) = statement.for_postgres().unwrap();
        assert_eq!(
            postgres.as_str(),
            "SELECT * FROM (SELECT id FROM t WHERE id = $1 FOR UPDATE) AS x LIMIT $2"
        );
    }

    #[test]
    fn what_the_databases_say_differently_keeps_its_own_parameters() {
        let mut pairs = Statement::new("(hash, id) IN (VALUES (");
        pairs.push_bind(7_i64).push(", ").push_bind("a").push("))");
        let mut ids = Statement::new("id IN ");
        ids.push_list(["a"]);
        let mut statement = Statement::new("SELECT 1 WHERE x = ");
        statement.push_bind(1).push(" AND ").push_either(pairs, ids);
        statement.push(" AND y = ").push_bind(2).for_update();
        let (sqlite, bound) = statement.clone().for_sqlite().unwrap();
        let text = "SELECT 1 WHERE x = ? AND (hash, id) IN (VALUES (?, ?)) AND y = ?";
        assert_eq!((sqlite.as_str(), sqlx::Arguments::len(&bound)), (text, 4));
        let (postgres, bound) = statement.for_postgres().unwrap();
        let text = "SELECT 1 WHERE x = $1 AND id IN ($2) AND y = $3 FOR UPDATE";
        assert_eq!((postgres.as_str(), sqlx::Arguments::len(&bound)), (text, 3));
    }

    #[test]
    fn numbered_parameters_may_have_parts_beside_them_that_have_none() {
        let mut statement = Statement::new("SELECT id FROM t WHERE id = $1").bind(1_i64);
        statement.for_update();
        let (sqlite, bound) = statement.clone().for_sqlite().unwrap();
        let text = "SELECT id FROM t WHERE id = $1";
        assert_eq!((sqlite.as_str(), sqlx::Arguments::len(&bound)), (text, 1));
        let (postgres, bound) = statement.for_postgres().unwrap();
        let text = "SELECT id FROM t WHERE id = $1 FOR UPDATE";
        assert_eq!((postgres.as_str(), sqlx::Arguments::len(&bound)), (text, 1));
    }

    #[test]
    fn an_array_is_refused_where_there_are_none() {
        let statement = Statement::new("SELECT $1").bind(vec![1_i64]);
        assert!(matches!(
            statement.clone().for_sqlite(),
            Err(sqlx::Error::Encode(_))
        ));
        assert!(statement.for_postgres().is_ok());
    }
}
