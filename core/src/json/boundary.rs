//! Where the next record of an array ends, told by its quotes and brackets alone.

use super::records::State;

/// How far a record has been searched for its end. It may be searched in parts.
///
/// That it is sound is not told: whoever reads it finds out. But the end is where a reader gets by
/// then, at a sound record or at what is wrong before one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Boundary {
    at: Place,
    /// How many containers are open, the array around the records not counted.
    depth: usize,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// The array has not begun.
    Before,
    Outside,
    String,
    /// In a string, behind a backslash.
    Escape,
}

impl Boundary {
    /// The search for the end of the record that begins next.
    pub(super) fn new(state: &State) -> Self {
        let at = match state {
            State::Before => Place::Before,
            State::Inside | State::Done | State::Refused(_) => Place::Outside,
        };
        Self { at, depth: 0 }
    }

    /// Searches `text`, which goes on where the last one ended, and gives the length up to the end of
    /// the record, or of what cannot be one.
    pub(super) fn find(&mut self, text: &[u8]) -> Option<usize> {
        for (byte, length) in text.iter().zip(1..) {
            match (self.at, byte) {
                (Place::Escape, _) => self.at = Place::String,
                (Place::String, b'"') | (Place::Before, b'[') => self.at = Place::Outside,
                (Place::String, b'\\') => self.at = Place::Escape,
                (Place::Outside, b'{' | b'[') => self.depth += 1,
                (Place::Outside, b'}' | b']') if self.depth > 1 => self.depth -= 1,
                (Place::Outside, b'"') if self.depth > 0 => self.at = Place::String,
                (Place::Outside, b'}' | b']') => {
                    self.depth = 0;
                    return Some(length);
                }
                (Place::Outside, _) if self.depth > 0 => {}
                (Place::String, _)
                | (Place::Before | Place::Outside, b' ' | b'\n' | b'\r' | b'\t' | b',') => {}
                (Place::Before | Place::Outside, _) => return Some(length),
            }
        }
        None
    }
}
