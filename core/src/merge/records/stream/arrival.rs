//! Records that are written in whatever order they come.

use crate::json::{Origin, Span};
use crate::merge::damage::Damage;
use crate::merge::records::writer::Writer;

use super::Body;
use super::choice::{Choice, Fate, Held, Record};

/// Where records that are served lie.
enum Place {
    /// At this span of the part that was fed.
    Part(Span),
    /// Elsewhere, for a while.
    Aside,
}

/// Reads the next `part` of the backend at `from`, and writes what is served by now.
pub(super) fn feed(
    choice: &mut Choice,
    from: u16,
    part: &[u8],
    body: Body<'_, '_>,
    writer: &mut Writer<'_, '_>,
) -> Result<(), Damage> {
    body.read(part, |arrived, found| {
        let span = &arrived.span;
        let place = match arrived.origin {
            Origin::Copy => Place::Aside,
            Origin::Chunk => Place::Part(span.clone()),
        };
        let within = |mark: Span| mark.start - span.start..mark.end - span.start;
        let record = Record {
            from,
            bytes: &arrived.text[span.clone()],
            mark: found.mark.map(within),
        };
        let number = found.name.map(|name| choice.number(name));
        match number.map_or(Fate::Serve, |number| choice.fate(from, number)) {
            Fate::Drop => {}
            Fate::Hold => choice.hold(number, &record),
            Fate::Serve => serve(writer, choice, number, &record, &place),
        }
    })
}

/// Writes records that waited.
pub(super) fn serve_waiting(
    choice: &mut Choice,
    waiting: Vec<(u32, Vec<Held>)>,
    writer: &mut Writer<'_, '_>,
) {
    for (number, held) in waiting {
        for held in held {
            serve(writer, choice, Some(number), &held.record(), &Place::Aside);
        }
    }
}

/// Writes what is served of a record, and its node's synthetic fact behind the first.
fn serve(
    writer: &mut Writer<'_, '_>,
    choice: &mut Choice,
    number: Option<u32>,
    record: &Record<'_>,
    place: &Place,
) {
    let mark = record.mark.clone();
    match place {
        _ if writer.writes_facts_only() => {}
        Place::Part(span) => {
            let mark = mark.map(|mark| mark.start + span.start..mark.end + span.start);
            writer.records(record.from, record.from, span, mark);
        }
        Place::Aside => writer.copy(record.from, record.bytes, mark),
    }
    if let Some(number) = number.filter(|_| writer.writes_facts())
        && choice.is_first(number)
    {
        let environment = record.mark.clone().map(|mark| &record.bytes[mark]);
        let environment = environment.unwrap_or(b"null");
        writer.fact(record.from, choice.name(number), environment);
    }
}
