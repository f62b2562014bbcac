//! Splits lists into batches of a few fixed sizes, so that multi-row statements have few distinct texts and stay
//! prepared.

/// Batch sizes, largest first. The largest times the columns of the widest table stays below SQLite's limit of 32,766
/// parameters.
const SIZES: [usize; 5] = [256, 64, 16, 4, 1];

/// Rows of a statement that binds few parameters for each, at most 32.
const BULK: usize = 1_000;

/// Splits `rows` into slices of a thousand, and the rest as [`batches`] does.
pub(crate) fn in_bulk<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let full = rows.chunks_exact(BULK);
    let rest = full.remainder();
    full.chain(batches(rest))
}

/// Splits `rows` into slices of these sizes, in order.
pub(crate) fn batches<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    batches_up_to(rows, SIZES[0])
}

/// The same with no slice longer than `most`.
pub(crate) fn batches_up_to<T>(mut rows: &[T], most: usize) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = SIZES
            .into_iter()
            .find(|&size| size <= most && size <= rows.len())?;
        let (batch, rest) = rows.split_at(size);
        rows = rest;
        Some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_and_sizes_are_few() {
        let rows: Vec<usize> = (0..343).collect();
        let cut: Vec<&[usize]> = batches(&rows).collect();
        assert_eq!(cut.concat(), rows);
        let sizes: Vec<usize> = cut.iter().map(|batch| batch.len()).collect();
        assert_eq!(sizes, [256, 64, 16, 4, 1, 1, 1]);
        assert!(batches_up_to(&rows, 16).all(|batch| batch.len() <= 16));
        assert_eq!(batches::<usize>(&[]).count(), 0);
    }
}
