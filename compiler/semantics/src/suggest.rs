//! "Did you mean …?"

use strsim::osa_distance;

/// The candidate nearest to `word`, if one is near enough that a slip of the hand explains it.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let limit = (length / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word && candidate.chars().count().abs_diff(length) <= limit)
        .map(|candidate| (osa_distance(word, candidate), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_slips_are_suggested() {
        assert_eq!(nearest("dprot", ["sport", "dport", "seq"]), Some("dport"));
        assert_eq!(nearest("window", ["dport", "seq"]), None);
        assert_eq!(nearest("ip", ["ip"]), None);
    }
}
