//! Lists, part by part.

/// Part of a list, and whether more follows.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    pub(crate) more: bool,
}

impl<T> Page<T> {
    /// Cuts a list that was read with one item more than `limit`.
    pub(crate) fn cut(mut items: Vec<T>, limit: u32) -> Self {
        let limit = limit as usize;
        let more = items.len() > limit;
        items.truncate(limit);
        Self { items, more }
    }
}
