//! Records that arrive in chunks are those of the whole text, however it is cut.

#![cfg(test)]

use pdbmux_core::json::{Arriving, Origin, Records, ScanError, Span};
use proptest::prelude::*;

const KEYS: [&str; 2] = ["certname", "name"];

/// A record's text and its wanted members.
type Found = (Vec<u8>, Vec<Option<Vec<u8>>>);

fn found(text: &[u8], span: Span, fields: &[Option<Span>]) -> Found {
    let bytes = |span: Span| text[span].to_vec();
    let fields = fields.iter().cloned();
    (bytes(span), fields.map(|field| field.map(bytes)).collect())
}

fn of_whole(text: &[u8]) -> (Vec<Found>, Result<(), ScanError>) {
    let mut records = Records::new(text, &KEYS);
    let mut fields = [None, None];
    let mut all = Vec::new();
    loop {
        match records.next(&mut fields) {
            Ok(Some(span)) => all.push(found(text, span, &fields)),
            Ok(None) => return (all, Ok(())),
            Err(error) => return (all, Err(error)),
        }
    }
}

fn of_chunks<'t>(
    chunks: impl IntoIterator<Item = &'t [u8]>,
) -> (Vec<Found>, Result<(), ScanError>) {
    let mut arriving = Arriving::default();
    let mut all = Vec::new();
    for chunk in chunks {
        let fed = arriving.feed(&KEYS, chunk, |record| {
            if record.origin == Origin::Chunk {
                assert_eq!(record.text.as_ptr(), chunk.as_ptr());
            }
            all.push(found(record.text, record.span, record.fields));
        });
        if fed.is_err() {
            assert_eq!(arriving.feed(&KEYS, b"]", |_| unreachable!()), fed);
            assert_eq!(arriving.finish(), fed);
            return (all, fed);
        }
    }
    (all, arriving.finish())
}

/// Cut once at every place, into bytes, and into three at some.
fn assert_alike(text: &[u8]) {
    let whole = of_whole(text);
    let shown = String::from_utf8_lossy(text);
    assert_eq!(of_chunks([text]), whole, "{shown}");
    assert_eq!(of_chunks(text.chunks(1)), whole, "{shown}");
    for at in 0..=text.len() {
        let (before, after) = text.split_at(at);
        assert_eq!(of_chunks([before, after]), whole, "{shown} at {at}");
        let (next, after) = after.split_at(after.len().min(3));
        assert_eq!(of_chunks([before, next, after]), whole, "{shown} at {at}");
    }
}

const SOUND: [&str; 5] = [
    "[]",
    " [ ] ",
    "[{},{}]",
    r#"[{"certname":"a","name":"x","value":{"a":[1,"}]"]}},{"certname":"a","name":"y\\"}]"#,
    "\n[ {\"name\" : [ \"\\\"]\" ] }\t,\r{ \"certname\":12.5,\"b\":true } ] ",
];

#[test]
fn a_text_may_be_cut_anywhere() {
    for text in SOUND {
        assert!(of_whole(text.as_bytes()).1.is_ok(), "{text}");
        assert_alike(text.as_bytes());
    }
}

#[test]
fn what_is_wrong_is_found_however_the_text_is_cut() {
    for text in SOUND {
        for at in 0..text.len() {
            assert_alike(&text.as_bytes()[..at]);
            for byte in *b"\"\\[]{},: 1x\x00" {
                let mut damaged = text.as_bytes().to_vec();
                damaged[at] = byte;
                assert_alike(&damaged);
                damaged.insert(at, text.as_bytes()[at]);
                assert_alike(&damaged);
            }
        }
        assert_alike(format!("{text}]").as_bytes());
        assert_alike(format!("{text}  x").as_bytes());
    }
}

#[test]
fn only_records_that_lie_across_chunks_are_copied() {
    let text = br#"[{"name":1},{"name":2},{"name":3}]"#;
    let (before, after) = text.split_at(15);
    let mut arriving = Arriving::default();
    let mut origins = Vec::new();
    for chunk in [before, after] {
        let fed = arriving.feed(&["name"], chunk, |record| origins.push(record.origin));
        assert_eq!(fed, Ok(()));
    }
    assert_eq!(origins, [Origin::Chunk, Origin::Copy, Origin::Chunk]);
    assert_eq!(arriving.finish(), Ok(()));
}

#[test]
fn a_record_is_handed_on_by_the_chunk_that_ends_it() {
    let mut arriving = Arriving::default();
    let mut count = 0;
    for (chunk, expected) in [("[{", 0), ("}", 1), (",{}", 2), (" ,{},{", 3), ("}]", 4)] {
        let fed = arriving.feed(&[], chunk.as_bytes(), |_| count += 1);
        assert_eq!((fed, count), (Ok(()), expected), "{chunk}");
    }
}

fn record() -> impl Strategy<Value = String> {
    let member = prop::sample::select(vec![
        r#""certname":"web1.example.net""#,
        r#""environment":"production""#,
        r#""name" : "os\\""#,
        r#""value":{"a":[1,"]}",{"b":null}],"long":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#,
        r#""value":-1.5e3"#,
    ]);
    prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(",")))
}

proptest! {
    #[test]
    fn records_are_those_of_the_whole_text(
        records in prop::collection::vec(record(), 0..12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut text = format!("[{}]", records.join(",")).into_bytes();
        if let Some((at, byte)) = damage {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let mut cuts: Vec<_> = cuts.iter().map(|at| at.index(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]);
        prop_assert_eq!(of_chunks(chunks), of_whole(&text));
        prop_assert_eq!(of_chunks(text.chunks(7)), of_whole(&text));
    }
}
