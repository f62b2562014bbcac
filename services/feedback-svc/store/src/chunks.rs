//! Splits rows into batches of a few fixed sizes, so that multi-row statements have few distinct texts and each is
//! prepared once.

/// Batch sizes, largest first.
const SIZES: [usize; 9] = [256, 128, 64, 32, 16, 8, 4, 2, 1];

/// Splits a slice into pieces of these sizes, largest first.
pub(super) fn chunks<T>(mut rest: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = SIZES.into_iter().find(|size| *size <= rest.len())?;
        let (chunk, behind) = rest.split_at(size);
        rest = behind;
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_every_row_exactly_once() {
        for length in [0, 1, 3, 5, 64, 65, 199, 300] {
            let all: Vec<usize> = (0..length).collect();
            assert_eq!(chunks(&all).collect::<Vec<_>>().concat(), all);
        }
        assert_eq!(
            chunks(&[(); 100]).map(<[()]>::len).collect::<Vec<_>>(),
            [64, 32, 4]
        );
    }
}
