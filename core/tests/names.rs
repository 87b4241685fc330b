//! Unions of names against a naive one.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::collections::BTreeSet;

use pdbmux_core::merge::names::union;
use pdbmux_core::paging::Direction;
use proptest::prelude::*;

fn lists() -> impl Strategy<Value = Vec<Vec<String>>> {
    let name = prop_oneof!["[a-c\"\\\\/é]{0,3}", "\\PC{0,4}"];
    prop::collection::vec(prop::collection::vec(name, 0..6), 1..4)
}

fn united(lists: &[Vec<String>], direction: Direction, extra: Option<&str>) -> Vec<String> {
    let bodies: Vec<_> = lists
        .iter()
        .map(|list| serde_json::to_vec(list).unwrap())
        .collect();
    let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    let names = union(&bodies, direction, extra).names.unwrap();
    let unescaped = |name| serde_json::from_str(name).unwrap();
    names.iter().map(|name| unescaped(name)).collect()
}

proptest! {
    #[test]
    fn r086_r087_r091_the_union_is_the_sorted_set(
        lists in lists(),
        extra in prop::option::of("[a-c\"]{0,2}"),
    ) {
        let set: BTreeSet<_> = lists.iter().flatten().chain(&extra).cloned().collect();
        let ascending: Vec<_> = set.into_iter().collect();
        let descending: Vec<_> = ascending.iter().rev().cloned().collect();
        prop_assert_eq!(united(&lists, Direction::Asc, extra.as_deref()), ascending);
        prop_assert_eq!(united(&lists, Direction::Desc, extra.as_deref()), descending);
    }

    #[test]
    fn the_order_of_backends_is_irrelevant(mut lists in lists()) {
        let union = united(&lists, Direction::Asc, None);
        lists.reverse();
        prop_assert_eq!(united(&lists, Direction::Asc, None), union);
    }

    #[test]
    fn whatever_bytes_come_nothing_panics(
        bodies in prop::collection::vec("[\\[\\]\",a\\\\u0d8 ]{0,16}", 0..4),
    ) {
        let bodies: Vec<&[u8]> = bodies.iter().map(String::as_bytes).collect();
        let merged = union(&bodies, Direction::Desc, Some("x"));
        prop_assert_eq!(merged.names.is_some(), merged.damaged.len() < bodies.len());
    }
}
