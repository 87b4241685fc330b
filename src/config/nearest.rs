//! Guessing what a mistyped name was meant to be.

/// The candidate at most two edits away from `typed`, the closest first; a name of a few letters
/// allows one.
pub(super) fn nearest<'a>(
    typed: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let allowed = if typed.len() < 6 { 1 } else { 2 };
    candidates
        .map(|candidate| (distance(typed, candidate), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Counts the letters to add, drop or change, one row of the table at a time.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("listen", "listen", 0),
            ("lisen", "listen", 1),
            ("timeotu", "timeout", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn only_a_near_name_is_proposed() {
        let names = || ["listen", "merge", "url"].into_iter();
        assert_eq!(nearest("lsiten", names()), Some("listen"));
        assert_eq!(nearest("uri", names()), Some("url"));
        assert_eq!(nearest("u", names()), None);
        assert_eq!(nearest("port", names()), None);
    }
}
