//! The containers that are open around a place in a text.

/// Containers nested deeper than this are refused: no PuppetDB entity comes near it, and a bound
/// keeps a hostile body from costing memory.
const MAX_DEPTH: usize = 1024;

/// The kinds of the containers around the innermost one, a bit each.
#[derive(Default)]
pub(crate) struct Nesting {
    objects: [u64; MAX_DEPTH / 64],
    depth: usize,
}

impl Nesting {
    /// Goes a level down, out of the container that ends with the bracket `close`. `None` if that
    /// is one level too many.
    pub(crate) fn push(&mut self, close: u8) -> Option<()> {
        // The innermost one is a level too.
        if self.depth + 1 >= MAX_DEPTH {
            return None;
        }
        let word = &mut self.objects[self.depth / 64];
        let bit = 1 << (self.depth % 64);
        *word = if close == b'}' {
            *word | bit
        } else {
            *word & !bit
        };
        self.depth += 1;
        Some(())
    }

    /// Comes back a level up and gives the bracket that ends the container there. `None` if there
    /// is no container around.
    pub(crate) fn pop(&mut self) -> Option<u8> {
        self.depth = self.depth.checked_sub(1)?;
        let object = self.objects[self.depth / 64] >> (self.depth % 64) & 1 == 1;
        Some(if object { b'}' } else { b']' })
    }
}
