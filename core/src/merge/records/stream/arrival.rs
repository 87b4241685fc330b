//! Records that are written in whatever order they come.

use crate::answer::only_separators;
use crate::json::{Arrived, Origin, Span};
use crate::merge::damage::Damage;
use crate::merge::records::writer::Writer;

use super::Body;
use super::choice::{Choice, Fate, Held, Record};

/// Neighbours of one node that are served, up to the end of the part that they lie in.
struct Run {
    from: u16,
    number: u32,
    span: Span,
    /// Where what provenance looks at stands in the first.
    mark: Option<Span>,
}

/// Reads the next `part` of the backend at `from`, and writes what is served by now.
pub(super) fn feed(
    choice: &mut Choice,
    from: u16,
    part: &[u8],
    body: Body<'_, '_>,
    writer: &mut Writer<'_, '_>,
) -> Result<(), Damage> {
    let mut run: Option<Run> = None;
    body.read(part, |arrived, found| {
        let number = found.name.and_then(|name| choice.number(name));
        if let Some(run) = &mut run
            && number == Some(run.number)
            && arrived.origin == Origin::Chunk
            && only_separators(part, run.span.end, arrived.span.start)
        {
            run.span.end = arrived.span.end;
            return;
        }
        if let Some(run) = run.take() {
            run.write(choice, part, writer);
        }
        let Some(number) = number else {
            return write(writer, from, arrived, found.mark);
        };
        match choice.fate(from, number) {
            Fate::Drop => {}
            Fate::Hold => {
                let record = record(from, arrived, found.mark, found.stamp);
                let served = choice.hold(number, &record);
                serve_waiting(choice, number, &served, writer);
            }
            Fate::Serve if arrived.origin == Origin::Chunk && writer.takes_neighbours() => {
                run = Some(Run {
                    from,
                    number,
                    span: arrived.span.clone(),
                    mark: found.mark,
                });
            }
            Fate::Serve => {
                write(writer, from, arrived, found.mark.clone());
                let record = record(from, arrived, found.mark, None);
                write_fact(writer, choice, number, &record);
            }
        }
    })?;
    if let Some(run) = run {
        run.write(choice, part, writer);
    }
    Ok(())
}

impl Run {
    /// Writes the records, and behind them the node's synthetic fact if they are its first.
    fn write(self, choice: &mut Choice, part: &[u8], writer: &mut Writer<'_, '_>) {
        let Self {
            from,
            number,
            span,
            mark,
        } = self;
        if !writer.writes_facts_only() {
            writer.records(from, from, &span, mark.clone());
        }
        let record = Record {
            from,
            bytes: &part[span.clone()],
            mark: mark.map(|mark| within(&mark, &span)),
            stamp: None,
        };
        write_fact(writer, choice, number, &record);
    }
}

fn record<'r>(
    from: u16,
    arrived: &Arrived<'r>,
    mark: Option<Span>,
    stamp: Option<&'r [u8]>,
) -> Record<'r> {
    let span = &arrived.span;
    Record {
        from,
        bytes: &arrived.text[span.clone()],
        mark: mark.map(|mark| within(&mark, span)),
        stamp,
    }
}

fn within(mark: &Span, span: &Span) -> Span {
    mark.start - span.start..mark.end - span.start
}

/// Writes a record that has just come; `mark` is where in its text stands what provenance looks at.
pub(super) fn write(
    writer: &mut Writer<'_, '_>,
    from: u16,
    arrived: &Arrived<'_>,
    mark: Option<Span>,
) {
    let span = &arrived.span;
    match arrived.origin {
        _ if writer.writes_facts_only() => {}
        Origin::Chunk => writer.records(from, from, span, mark),
        Origin::Copy => {
            let mark = mark.map(|mark| within(&mark, span));
            writer.copy(from, &arrived.text[span.clone()], mark);
        }
    }
}

/// Writes records of a node that waited.
pub(super) fn serve_waiting(
    choice: &mut Choice,
    number: u32,
    held: &[Held],
    writer: &mut Writer<'_, '_>,
) {
    for held in held {
        let record = held.record();
        if !writer.writes_facts_only() {
            writer.copy(record.from, record.bytes, record.mark.clone());
        }
        write_fact(writer, choice, number, &record);
    }
}

/// Writes a node's synthetic fact behind the first of its records.
fn write_fact(writer: &mut Writer<'_, '_>, choice: &mut Choice, number: u32, record: &Record<'_>) {
    if writer.writes_facts() && choice.is_first(number) {
        let environment = record.mark.clone().map(|mark| &record.bytes[mark]);
        let environment = environment.unwrap_or(b"null");
        writer.fact(record.from, choice.name(number), environment);
    }
}
