//! Objects inside objects, and how several become one.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::number::combine;
use super::rule::Place;
use crate::json::{Kind, Members, Span, kind, unquote};
use crate::merge::damage::Damage;

/// Objects nested deeper are refused. Jolokia itself stops at 15 unless told otherwise, and the
/// bound keeps recursion from exhausting the stack.
pub(super) const MAX_DEPTH: usize = 32;

/// A value as far as it can be merged: objects are open, everything else is a leaf.
#[derive(Debug)]
pub(super) enum Tree<'b> {
    Object(Object<'b>),
    Leaf(&'b str),
}

#[derive(Debug)]
pub(super) struct Object<'b> {
    text: &'b str,
    /// In their order, each key once: of a repeated one, the last.
    members: Vec<Member<'b>>,
}

#[derive(Debug)]
struct Member<'b> {
    /// As written, quotes included.
    spelling: &'b str,
    /// Its characters. A spelling that stands for none (half a surrogate pair) is its own key.
    key: Cow<'b, str>,
    value: Tree<'b>,
    /// Where the value lies in the object's text.
    at: Span,
}

impl<'b> Tree<'b> {
    /// Opens `text`, one valid JSON value without white space around it.
    pub(super) fn read(text: &'b str) -> Result<Self, Damage> {
        Self::read_within(text, MAX_DEPTH)
    }

    fn read_within(text: &'b str, levels: usize) -> Result<Self, Damage> {
        if kind(text.as_bytes()) != Kind::Object {
            return Ok(Self::Leaf(text));
        }
        let levels = levels
            .checked_sub(1)
            .ok_or(Damage::TooDeep { limit: MAX_DEPTH })?;
        let mut members = Vec::new();
        for member in Members::new(text.as_bytes()) {
            let (key, at) = member?;
            let spelling = &text[key];
            members.push(Member {
                spelling,
                key: unquote(spelling.as_bytes()).unwrap_or(Cow::Borrowed(spelling)),
                value: Self::read_within(&text[at.clone()], levels)?,
                at,
            });
        }
        keep_last_of_each_key(&mut members);
        Ok(Self::Object(Object { text, members }))
    }

    fn text(&self) -> &'b str {
        match self {
            Self::Object(object) => object.text,
            Self::Leaf(text) => text,
        }
    }

    fn object(&self) -> Option<&Object<'b>> {
        match self {
            Self::Object(object) => Some(object),
            Self::Leaf(_) => None,
        }
    }
}

impl Object<'_> {
    pub(super) fn has(&self, key: &str) -> bool {
        self.members.iter().any(|member| member.key == key)
    }
}

fn keep_last_of_each_key(members: &mut Vec<Member<'_>>) {
    let mut seen = HashSet::with_capacity(members.len());
    members.reverse();
    members.retain(|member| seen.insert(member.key.clone()));
    members.reverse();
}

/// Writes what `trees`, values of the same name in configured order, are together.
pub(super) fn merge(trees: &[&Tree<'_>], place: Place<'_>, out: &mut String) {
    if let [only] = trees {
        out.push_str(only.text());
        return;
    }
    let objects: Option<Vec<_>> = trees.iter().map(|tree| tree.object()).collect();
    if let Some(objects) = objects {
        merge_objects(&objects, place, out);
    } else {
        let texts: Vec<_> = trees.iter().map(|tree| tree.text()).collect();
        out.push_str(&combine(place.rule(), &texts));
    }
}

/// Writes the union of `objects` as the first one's text, with its values replaced and the others'
/// members added at its end in the order in which they are met (R249).
fn merge_objects(objects: &[&Object<'_>], place: Place<'_>, out: &mut String) {
    let Some(first) = objects.first() else {
        return;
    };
    let place = place.inside(objects);
    let groups = by_key(objects);
    let (own, added) = groups.split_at(first.members.len());
    let mut copied = 0;
    for (member, values) in own {
        out.push_str(&first.text[copied..member.at.start]);
        merge(values, place.at(&member.key), out);
        copied = member.at.end;
    }
    if own.is_empty() {
        out.push('{');
        copied = 1;
    }
    for (i, (member, values)) in added.iter().enumerate() {
        if i > 0 || !own.is_empty() {
            out.push(',');
        }
        out.push_str(member.spelling);
        out.push(':');
        merge(values, place.at(&member.key), out);
    }
    out.push_str(&first.text[copied..]);
}

/// The values of each key, keys in the order in which they are met, each with its first member.
fn by_key<'t, 'b>(objects: &[&'t Object<'b>]) -> Vec<(&'t Member<'b>, Vec<&'t Tree<'b>>)> {
    let mut places = HashMap::new();
    let mut groups: Vec<(_, Vec<_>)> = Vec::new();
    for member in objects.iter().flat_map(|object| &object.members) {
        match places.entry(member.key.as_ref()) {
            Entry::Vacant(place) => {
                place.insert(groups.len());
                groups.push((member, vec![&member.value]));
            }
            Entry::Occupied(place) => groups[*place.get()].1.push(&member.value),
        }
    }
    groups
}
