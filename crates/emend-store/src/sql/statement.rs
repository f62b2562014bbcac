//! The text of a statement, with its arguments.

use std::{borrow::Cow, fmt::Display, fmt::Write as _};

use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr, postgres::PgArguments, sqlite::SqliteArguments};

use super::Argument;

/// A statement that either database can execute.
///
/// Its parameters are either written where they are bound ([`Statement::push_bind`]), or stand in the text as `$1`, `$2` … and
/// are bound in this order ([`Statement::bind`]); not both in one statement.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    /// With a `?` for each pushed parameter.
    text: Cow<'static, str>,
    /// Where those stand.
    parameters: Vec<usize>,
    arguments: Vec<Argument>,
}

impl Statement {
    /// A statement that begins with this text.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            parameters: Vec::new(),
            arguments: Vec::new(),
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
        debug_assert_eq!(self.parameters.len(), self.arguments.len(), "numbered and pushed");
        self.parameters.push(self.text.len());
        self.text.to_mut().push('?');
        self.arguments.push(value.into());
        self
    }

    /// Binds the next parameter that the text numbers.
    #[must_use]
    pub fn bind(mut self, value: impl Into<Argument>) -> Self {
        debug_assert!(self.parameters.is_empty(), "numbered and pushed");
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

    /// The text, with a `?` for each parameter that was pushed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same statement after another beginning, as `EXPLAIN`.
    #[must_use]
    pub fn after(mut self, beginning: &str) -> Self {
        self.text.to_mut().insert_str(0, beginning);
        for place in &mut self.parameters {
            *place += beginning.len();
        }
        self
    }

    pub(super) fn for_sqlite(self) -> Result<(SqlStr, SqliteArguments), sqlx::Error> {
        let mut arguments = SqliteArguments::default();
        sqlx::Arguments::reserve(&mut arguments, self.arguments.len(), 0);
        for argument in self.arguments {
            argument.bind_sqlite(&mut arguments)?;
        }
        Ok((sql_str(self.text), arguments))
    }

    pub(super) fn for_postgres(self) -> Result<(SqlStr, PgArguments), sqlx::Error> {
        let text = if self.parameters.is_empty() {
            self.text
        } else {
            Cow::Owned(numbered(&self.text, &self.parameters))
        };
        let mut arguments = PgArguments::default();
        for argument in self.arguments {
            argument.bind_postgres(&mut arguments)?;
        }
        Ok((sql_str(text), arguments))
    }
}

/// The text with the number of each parameter in place of its `?`.
fn numbered(text: &str, parameters: &[usize]) -> String {
    let mut all = String::with_capacity(text.len() + 3 * parameters.len());
    let mut rest = 0;
    for (index, place) in parameters.iter().enumerate() {
        all.push_str(&text[rest..*place]);
        let written = write!(all, "${}", index + 1);
        debug_assert!(written.is_ok(), "writing to a string does not fail");
        rest = place + 1;
    }
    all.push_str(&text[rest..]);
    all
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
    fn an_array_is_refused_where_there_are_none() {
        let statement = Statement::new("SELECT $1").bind(vec![1_i64]);
        assert!(matches!(
            statement.clone().for_sqlite(),
            Err(sqlx::Error::Encode(_))
        ));
        assert!(statement.for_postgres().is_ok());
    }
}
