//! Records of history, of which all copies count once.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use crate::merge::damage::Damage;
use crate::merge::fold::Canonical;
use crate::merge::records::scan::Layout;
use crate::merge::records::writer::Writer;

use super::Body;
use super::arrival::write;

/// What tells rows apart: 128 bits of the values of their identity. With keys that nobody knows it
/// takes some 10^19 rows until two of them are likely to be the same by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Row(u64, u64);

/// Which rows were served.
#[derive(Debug)]
pub(super) struct Once {
    hashers: (RandomState, RandomState),
    /// Who may still send any.
    open: Vec<u16>,
    served: HashMap<Row, Served>,
    /// How often others sent a row than the one that did so most often.
    behind: HashMap<(Row, u16), u32>,
}

/// How often a row was served: as often as the backend at `by` sent it, which no other did more often.
#[derive(Debug)]
struct Served {
    times: u32,
    by: u16,
}

/// Feeds two hashers the same.
struct Both<H>(H, H);

impl<H: Hasher> Hasher for Both<H> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
        self.1.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

impl Once {
    /// Nothing was served yet of so many backends.
    pub(super) fn new(sources: usize) -> Self {
        Self {
            hashers: Default::default(),
            open: (0..).take(sources).collect(),
            served: HashMap::new(),
            behind: HashMap::new(),
        }
    }

    /// Which row a record is, given its members by their places in the layout; `None` if it does not
    /// say what it is about.
    pub(super) fn row<'v>(
        &self,
        layout: &Layout<'_>,
        value: impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Option<Row> {
        let (one, two) = &self.hashers;
        let mut both = Both(one.build_hasher(), two.build_hasher());
        match *layout.identity {
            [single] => Canonical::new(value(single)?).hash(&mut both),
            ref several => {
                for at in several {
                    Canonical::new(value(*at).unwrap_or_default()).hash(&mut both);
                }
            }
        }
        Some(Row(both.0.finish(), both.1.finish()))
    }

    /// Whether another of these is served, which the backend at `from` sent. A row that one backend
    /// lists several times is served as often, and copies elsewhere add to that only what they list
    /// more.
    pub(super) fn serves(&mut self, from: u16, row: Option<Row>) -> bool {
        let Some(row) = row else {
            return true;
        };
        let Some(served) = self.served.get_mut(&row) else {
            // Of what nobody else can send nothing has to be known.
            if self.open.iter().any(|open| *open != from) {
                self.served.insert(row, Served { times: 1, by: from });
            }
            return true;
        };
        if served.by == from {
            served.times += 1;
            return true;
        }
        let times = self.behind.entry((row, from)).or_default();
        *times += 1;
        if *times <= served.times {
            return false;
        }
        let most = Served {
            times: *times,
            by: from,
        };
        let before = std::mem::replace(served, most);
        self.behind.insert((row, before.by), before.times);
        true
    }

    /// Notes that all has been looked at that the backend at `from` sends.
    pub(super) fn end(&mut self, from: u16) {
        self.open.retain(|open| *open != from);
    }

    /// Who may still send any.
    pub(super) fn open(&self) -> &[u16] {
        &self.open
    }

    /// How many bytes it takes to know what was served.
    pub(super) fn bytes(&self) -> usize {
        self.served.capacity() * size_of::<(Row, Served)>()
            + self.behind.capacity() * size_of::<((Row, u16), u32)>()
    }
}

/// Reads the next `part` of the backend at `from`, and writes what was not served before.
pub(super) fn feed(
    once: &mut Once,
    from: u16,
    part: &[u8],
    body: Body<'_, '_>,
    writer: &mut Writer<'_, '_>,
) -> Result<(), Damage> {
    let layout = body.layout;
    body.read(part, |arrived, found| {
        let value = |at: usize| {
            arrived
                .fields
                .get(at)?
                .clone()
                .map(|span| &arrived.text[span])
        };
        let row = once.row(layout, value);
        if once.serves(from, row) {
            write(writer, from, arrived, found.mark);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::records::{Keep, RecordMerge, TextOrder, Total};
    use crate::paging::{RecordOrder, Window};
    use crate::provenance::Provenance;

    #[test]
    fn ruling_3_a_row_is_served_as_often_as_one_backend_lists_it() {
        // Who sends one row, in which order, and which of these are served.
        for (sent, served) in [
            (&[0, 1][..], &[true, false][..]),
            (&[1, 1, 0, 0, 0], &[true, true, false, false, true]),
            (&[0, 1, 1, 0, 0], &[true, false, true, false, true]),
            (
                &[0, 1, 2, 2, 1, 0, 1],
                &[true, false, false, true, false, false, true],
            ),
            (
                &[2, 1, 1, 2, 2, 1, 1],
                &[true, false, true, false, true, false, true],
            ),
        ] {
            let mut once = Once::new(3);
            let row = Some(Row(1, 2));
            assert!(once.serves(0, Some(Row(1, 3))) && once.serves(0, Some(Row(3, 2))));
            let told: Vec<_> = sent.iter().map(|from| once.serves(*from, row)).collect();
            assert_eq!(told, served, "{sent:?}");
        }
    }

    #[test]
    fn what_the_last_backend_sends_is_looked_up_and_not_remembered() {
        let mut once = Once::new(2);
        let row = |at| Some(Row(at, 0));
        assert!(once.serves(0, row(1)));
        once.end(0);
        let before = once.served.len();
        for (at, served) in [(1, false), (1, true), (2, true), (2, true)] {
            assert_eq!(once.serves(1, row(at)), served);
        }
        assert_eq!(once.served.len(), before);
        let mut alone = Once::new(1);
        assert!(alone.serves(0, row(1)) && alone.serves(0, row(1)));
        assert_eq!(alone.bytes(), 0);
    }

    #[test]
    fn t38_rows_are_told_apart_by_value() {
        let plan = RecordMerge {
            keep: Keep::Each(&["a", "b"]),
            order: RecordOrder::default(),
            text_order: TextOrder::Bytes,
            window: Window::default(),
            strip: Vec::new(),
            provenance: Provenance::default(),
            total: Total::Unasked,
        };
        let (layout, once) = (Layout::of(&plan), Once::new(2));
        let row = |members: [Option<&'static str>; 2]| {
            once.row(&layout, |at| members[at].map(str::as_bytes))
        };
        let same = [Some(r#"{"x":1,"y":[2]}"#), Some(r#""\u0061""#)];
        assert_eq!(
            row(same),
            row([Some(r#"{ "y":[2.0],"x":1 }"#), Some(r#""a""#)])
        );
        for other in [
            [same[1], same[0]],
            [same[0], None],
            [same[0], Some(r#""b""#)],
        ] {
            assert_ne!(row(same), row(other), "{other:?}");
        }
    }
}
