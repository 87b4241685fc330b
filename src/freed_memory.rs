//! What becomes of memory that a request gave back.

use std::hint::black_box;

/// The size of a block whose end makes the allocator keep twice as much, in bytes: what an answer takes
/// that is held, if it is not one of the longest.
const BLOCK: usize = 8 << 20;

/// Lets the allocator keep what a request of usual size takes, instead of giving it back to the kernel
/// and taking it anew, page by page, for the next one.
///
/// GNU's allocator gives back what is free at the end of its heap beyond a bound that is twice the size
/// of the largest block that it had of the kernel and was given back (mallopt(3), `M_MMAP_THRESHOLD`).
/// So one such block, which is never touched, does what a setting would that cannot be made without
/// unsafe code. Other allocators are asked for a block, and nothing follows. Some 7 % of the
/// processor's time of answers of 200 KB went into that, and some 40 % of those of 3 MB.
pub fn keep() {
    drop(black_box(Vec::<u8>::with_capacity(black_box(BLOCK))));
}
