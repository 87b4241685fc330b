//! How a backend is told which of its nodes it is asked for.

use jiff::{SignedDuration, Timestamp};

use super::{ALWAYS, NEVER, among};

/// A node that a backend holds: its certname as JSON, and when its facts came.
pub(super) type Held<'n> = (&'n [u8], Option<Timestamp>);

/// A shorter list is worth more than to have the backend compare times: to find the nodes whose times
/// suit takes a PuppetDB 5 to 10 ms of 5,000 nodes, as long as the work on so many certnames (7.12.1).
const CHEAP: usize = 200;

/// Times are told in milliseconds and kept more exactly: those closer than this may be told as equal.
const APART: SignedDuration = SignedDuration::from_millis(2);

/// AST that selects some of the nodes that a backend holds, and what that takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) condition: String,
    /// How many certnames it lists.
    pub(super) listed: usize,
    /// What tells that it selects other nodes by now; `None`: that there are more or fewer of all.
    pub(super) watched: Option<Watched>,
    /// Whether it selects nodes that come, as far as those that are watched tell of them.
    pub(super) sees_new: bool,
}

/// Nodes with facts whose number shows whether a backend is still to be told the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// AST that selects their factsets.
    condition: String,
    /// How many there were when the nodes were listed.
    nodes: u64,
}

impl Watched {
    /// AST that selects their factsets.
    pub(crate) fn condition(&self) -> &str {
        &self.condition
    }

    /// How many there were when the nodes were listed.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }
}

impl Told {
    /// Selects `owned` out of both, by whichever list is shorter, or by times where even that is long
    /// or longer than `most`: copies that are left behind are old, so that few exceptions remain.
    pub(super) fn of(owned: &[Held<'_>], stale: &[Held<'_>], most: usize) -> Self {
        let plain = |condition, listed, sees_new| Self {
            condition,
            listed,
            watched: None,
            sees_new,
        };
        let shorter = owned.len().min(stale.len());
        match (owned.is_empty(), stale.is_empty()) {
            (_, true) => return plain(ALWAYS.to_owned(), 0, true),
            (true, false) => return plain(NEVER.to_owned(), 0, false),
            (false, false) => {}
        }
        if let Some(since) = boundary(owned, stale, shorter.saturating_sub(most.min(CHEAP))) {
            return Self::by_time(owned, stale, since);
        }
        if owned.len() < stale.len() {
            plain(among(names(owned)), shorter, false)
        } else {
            plain(not(&among(names(stale))), shorter, true)
        }
    }

    /// Stale copies without facts are named: with the next facts they would be new.
    ///
    /// What is watched is all facts but those of stale copies that are old: those of a node that comes
    /// are new, so are those of a stale copy that counts again, and of the others none may go. A node
    /// that comes without facts is not selected, so that it is not counted twice.
    fn by_time(owned: &[Held<'_>], stale: &[Held<'_>], since: Timestamp) -> Self {
        let old = owned
            .iter()
            .filter(|(_, at)| at.is_none_or(|at| at < since));
        let old: Vec<_> = old.map(|(name, _)| *name).collect();
        let new = stale
            .iter()
            .filter(|(_, at)| at.is_none_or(|at| at >= since));
        let new: Vec<_> = new.map(|(name, _)| *name).collect();
        let listed = old.len() + new.len();
        let mine = owned.iter().filter(|(_, at)| at.is_some()).count();
        let others = stale
            .iter()
            .filter(|(_, at)| at.is_some_and(|at| at >= since));
        let nodes = (mine + others.count()) as u64;
        let mut watched = format!(r#"[">=","timestamp","{since}"]"#);
        let mut condition =
            format!(r#"["in","certname",["extract","certname",["select_factsets",{watched}]]]"#);
        if !new.is_empty() {
            condition = format!("[\"and\",{condition},{}]", not(&among(new)));
        }
        if !old.is_empty() {
            let old = among(old);
            condition = format!("[\"or\",{condition},{old}]");
            watched = format!("[\"or\",{watched},{old}]");
        }
        Self {
            condition,
            listed,
            watched: Some(Watched {
                condition: watched,
                nodes,
            }),
            sees_new: true,
        }
    }
}

/// Since when the facts of a node must have come, so that fewer than `most` certnames tell the rest of `owned`
/// from `stale`; the time that takes the fewest.
fn boundary(owned: &[Held<'_>], stale: &[Held<'_>], most: usize) -> Option<Timestamp> {
    let with_times = |nodes: &[Held<'_>], is_owned: bool| -> Vec<(Timestamp, bool)> {
        let times = nodes.iter().filter_map(|(_, at)| *at);
        times.map(|at| (at, is_owned)).collect()
    };
    let mut times = with_times(owned, true);
    // With every time for a recent one, what is stale must be listed, and owned nodes without one.
    let mut listed = stale.len() + owned.len() - times.len();
    times.extend(with_times(stale, false));
    times.sort_unstable();
    let mut best = None;
    for pair in times.windows(2) {
        let [(before, is_owned), (at, _)] = *pair else {
            continue;
        };
        // The node before it is no longer new.
        if is_owned {
            listed += 1;
        } else {
            listed -= 1;
        }
        let is_better = listed < best.map_or(most, |(fewest, _)| fewest);
        if is_better && at.duration_since(before) >= APART {
            best = Some((listed, at));
        }
    }
    let (_, at) = best?;
    at.checked_sub(APART / 2).ok()
}

fn names<'n>(nodes: &[Held<'n>]) -> Vec<&'n [u8]> {
    nodes.iter().map(|(name, _)| *name).collect()
}

fn not(condition: &str) -> String {
    format!("[\"not\",{condition}]")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Nodes with these names and times in seconds; 0 for none.
    fn held(nodes: &[(String, u16)]) -> Vec<Held<'_>> {
        let at = |at: u16| Timestamp::from_second(at.into()).ok().filter(|_| at > 0);
        let nodes = nodes.iter();
        nodes
            .map(|(name, second)| (name.as_bytes(), at(*second)))
            .collect()
    }

    fn nodes(prefix: &str, times: &[u16]) -> Vec<(String, u16)> {
        let named = |(n, at): (usize, &u16)| (format!("\"{prefix}{n}\""), *at);
        times.iter().enumerate().map(named).collect()
    }

    fn told(owned: &[u16], stale: &[u16], most: usize) -> Told {
        let (owned, stale) = (nodes("o", owned), nodes("s", stale));
        Told::of(&held(&owned), &held(&stale), most)
    }

    fn is_since(since: &serde_json::Value, at: u16) -> bool {
        let since: Timestamp = since.as_str().unwrap().parse().unwrap();
        at > 0 && Timestamp::from_second(at.into()).unwrap() >= since
    }

    /// Whether a condition holds for a node, as a PuppetDB would find.
    fn holds(condition: &serde_json::Value, name: &str, at: u16) -> bool {
        let parts = condition.as_array().unwrap();
        let mut rest = parts[1..].iter();
        match parts[0].as_str().unwrap() {
            "and" => rest.all(|part| holds(part, name, at)),
            "or" => rest.any(|part| holds(part, name, at)),
            "not" => !holds(&parts[1], name, at),
            "in" if parts[2][0] == "array" => {
                parts[2][1].as_array().unwrap().iter().any(|it| it == name)
            }
            "in" => {
                assert_eq!(parts[2][2][0], "select_factsets");
                assert_eq!(parts[2][2][1][1], "timestamp");
                is_since(&parts[2][2][1][2], at)
            }
            "=" => false,
            "null?" => true,
            ">=" => {
                assert_eq!(parts[1], "timestamp");
                is_since(&parts[2], at)
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn times_take_the_place_of_a_list_where_copies_left_behind_are_old() {
        let (new, old) = (vec![900; 300], vec![100; 300]);
        let told = told(&new, &old, usize::MAX);
        assert_eq!(
            told.condition,
            r#"["in","certname",["extract","certname",["select_factsets",[">=","timestamp","1970-01-01T00:14:59.999Z"]]]]"#
        );
        let watched = told.watched.unwrap();
        assert_eq!((told.listed, watched.nodes()), (0, 300));
        assert_eq!(
            watched.condition(),
            r#"[">=","timestamp","1970-01-01T00:14:59.999Z"]"#
        );
    }

    #[test]
    fn exceptions_are_listed_by_name() {
        let (mut new, mut old) = (vec![900; 300], vec![100; 300]);
        (new[7], new[8]) = (50, 0);
        (old[9], old[10]) = (950, 0);
        let told = told(&new, &old, usize::MAX);
        assert_eq!(
            told.condition,
            concat!(
                r#"["or",["and",["in","certname",["extract","certname",["select_factsets",[">=","timestamp","1970-01-01T00:14:59.999Z"]]]],"#,
                r#"["not",["or",["in","certname",["array",["s10","s9"]]]]]],["or",["in","certname",["array",["o7","o8"]]]]]"#
            )
        );
        let watched = told.watched.unwrap();
        assert_eq!(
            (told.listed, watched.nodes()),
            (4, 300),
            "its own but o8, which has no facts, and s9"
        );
        let exceptions = r#"["or",[">=","timestamp","1970-01-01T00:14:59.999Z"],["or",["in","certname",["array",["o7","o8"]]]]]"#;
        assert_eq!(watched.condition(), exceptions);
    }

    #[test]
    fn a_list_is_kept_where_it_is_short_or_times_tell_nothing() {
        let mixed: Vec<_> = (1..=600).collect();
        let (odd, even): (Vec<u16>, Vec<u16>) = mixed.into_iter().partition(|at| at % 2 == 1);
        for (owned, stale, most, listed) in [
            (vec![900; 200], vec![100; 999], usize::MAX, 200),
            (vec![900; 999], vec![100; 200], usize::MAX, 200),
            (odd, even, usize::MAX, 300),
            (vec![0; 300], vec![0; 300], usize::MAX, 300),
            (vec![100; 300], vec![900; 300], usize::MAX, 300),
            // As short as it is meant to be.
            (vec![900; 9], vec![100; 9], 9, 9),
        ] {
            let told = told(&owned, &stale, most);
            assert_eq!(
                (told.listed, &told.watched),
                (listed, &None),
                "{owned:?} {stale:?}"
            );
        }
        assert_eq!(
            told(&[900; 9], &[100; 9], 8).listed,
            0,
            "longer than it is meant to be"
        );
    }

    #[test]
    fn times_that_may_be_told_as_equal_are_not_told_apart() {
        let at = |millisecond| Timestamp::from_millisecond(millisecond).unwrap();
        for (gap, expected) in [(1, None), (2, Some(at(1_001)))] {
            let (new, old) = (at(1_000 + gap), at(1_000));
            let (owned, stale) = ([(&b"\"o\""[..], Some(new))], [(&b"\"s\""[..], Some(old))]);
            assert_eq!(boundary(&owned, &stale, 1), expected, "{gap}");
        }
    }

    proptest! {
        #[test]
        fn what_is_owned_is_selected_and_nothing_else(
            owned in prop::collection::vec(0..20_u16, 0..40),
            stale in prop::collection::vec(0..20_u16, 0..40),
            most in 0..20_usize,
        ) {
            let told = told(&owned, &stale, most);
            let condition = serde_json::from_str(&told.condition).unwrap();
            let (owned, stale) = (nodes("o", &owned), nodes("s", &stale));
            let selected = |nodes: &[(String, u16)]| {
                let holds = |(name, at): &&(String, u16)| holds(&condition, name.trim_matches('"'), *at);
                nodes.iter().filter(holds).count()
            };
            // Where all are stale or none, an empty condition says so.
            prop_assert_eq!(selected(&owned), owned.len());
            prop_assert_eq!(selected(&stale), 0);
            prop_assert!(told.listed <= owned.len().min(stale.len()));
            if let Some(watched) = told.watched {
                let condition = serde_json::from_str(watched.condition()).unwrap();
                let holds = |(name, at): &&(String, u16)| {
                    *at > 0 && holds(&condition, name.trim_matches('"'), *at)
                };
                let number = owned.iter().chain(&stale).filter(holds).count();
                prop_assert_eq!(number as u64, watched.nodes());
                let with_facts = owned.iter().filter(|(_, at)| *at > 0).count();
                prop_assert_eq!(owned.iter().filter(holds).count(), with_facts);
            }
        }
    }
}
