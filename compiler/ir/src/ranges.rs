//! Sorted lists of ranges.

/// Numbers that ranges are made of.
pub trait Bound: Copy + Ord {
    /// The next number; `None` behind the largest.
    fn next(self) -> Option<Self>;
}

impl Bound for u64 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Bound for u128 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

/// Sorts ranges (both ends included) and joins those that overlap or touch.
pub fn merge<T: Bound>(ranges: impl IntoIterator<Item = (T, T)>) -> Vec<(T, T)> {
    let mut sorted: Vec<_> = ranges.into_iter().collect();
    sorted.sort_unstable();
    let mut merged: Vec<(T, T)> = Vec::new();
    for (low, high) in sorted {
        match merged.last_mut() {
            Some(last) if last.1.next().is_none_or(|next| low <= next) => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// The numbers at which membership changes, ascending: in from the first on, out from the second on, …
pub fn edges<T: Bound>(merged: &[(T, T)]) -> Vec<T> {
    merged.iter().flat_map(|&(low, high)| [Some(low), high.next()]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_and_overlapping_ranges_join() {
        assert_eq!(merge([(5u64, 9), (1, 2), (3, 3), (8, 12), (20, 20)]), [(1, 3), (5, 12), (20, 20)]);
        assert_eq!(merge([(0u64, u64::MAX), (3, 4)]), [(0, u64::MAX)]);
    }

    #[test]
    fn edges_alternate() {
        assert_eq!(edges(&[(1u64, 3), (5, u64::MAX)]), [1, 4, 5]);
    }
}
