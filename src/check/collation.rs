//! By what a backend orders text, as far as ordered names show it (trap T12).

/// What names that a backend was asked to order show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Collation {
    /// They are ordered by bytes, and a language would have ordered them otherwise.
    Bytes,
    /// They are not ordered by bytes.
    Other,
    /// Any order would have been the same.
    Unknown,
}

/// What these lists show, each in the order of the same database.
pub(super) fn shown_by(lists: &[Vec<String>]) -> Collation {
    if !lists.iter().all(|names| names.is_sorted()) {
        return Collation::Other;
    }
    let tells = |names: &Vec<String>| !names.is_sorted_by_key(|name| by_language(name));
    if lists.iter().any(tells) {
        Collation::Bytes
    } else {
        Collation::Unknown
    }
}

/// What a language compares first: letters and digits, whatever their case. Names that differ in
/// nothing else are told apart by rules that differ between libraries, so they show nothing.
fn by_language(name: &str) -> String {
    let telling = name.chars().filter(|c| c.is_alphanumeric());
    telling.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_known_only_where_another_would_differ() {
        let cases: [(&[&[&str]], Collation); 11] = [
            (&[], Collation::Unknown),
            (&[&["web1"]], Collation::Unknown),
            (&[&["db1", "web1", "web2"]], Collation::Unknown),
            (&[&["web-1.x", "web1.y"]], Collation::Unknown),
            (&[&["web-1.x", "web1.x", "web10.x"]], Collation::Bytes),
            (&[&["web10.x", "web-1.x", "web1.x"]], Collation::Other),
            (&[&["web-2.x", "web1.x"]], Collation::Bytes),
            (&[&["web1.x", "web-2.x"]], Collation::Other),
            (&[&["Zeta", "alpha"]], Collation::Bytes),
            (&[&["alpha", "Zeta"]], Collation::Other),
            // One list that shows it is enough.
            (&[&["a", "b"], &["ip_x", "ipa"]], Collation::Bytes),
        ];
        for (lists, expected) in cases {
            let owned: Vec<Vec<String>> = lists
                .iter()
                .map(|names| names.iter().map(|&name| name.to_owned()).collect())
                .collect();
            assert_eq!(shown_by(&owned), expected, "{lists:?}");
        }
    }
}
