//! Vector instructions: the one module with `unsafe` code. It loads 64 bytes and compares them;
//! what follows from that is told in [`blocks`](super::blocks), which is safe.
//!
//! Every test of the scanner compares all that the processor has with the plain one. For NEON on
//! another machine: `cargo test -p pdbmux-core --target aarch64-unknown-linux-gnu` with a linker for
//! that target and `qemu-aarch64` as its runner.

#![allow(unsafe_code)]
// As in `blocks`.
#![allow(clippy::inline_always)]

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

/// With which instructions a scanner reads. All of them find the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Kind);

// Private: a kind exists only where the processor has its instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Sse2,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon,
}

impl Level {
    /// Byte by byte, which any processor does. The others are tested against it.
    pub const PLAIN: Self = Self(Kind::Plain);

    /// All that this processor has, the fastest last.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let vectors = [Some(Kind::Sse2), x86::has_avx2().then_some(Kind::Avx2)];
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        let vectors = [Some(Kind::Neon)];
        #[cfg(not(any(
            target_arch = "x86_64",
            all(target_arch = "aarch64", target_endian = "little")
        )))]
        let vectors = [];
        let vectors = vectors.into_iter().flatten().map(Self);
        std::iter::once(Self::PLAIN).chain(vectors)
    }

    /// The fastest that this processor has.
    #[inline]
    pub fn best() -> Self {
        Self::all().next_back().unwrap_or(Self::PLAIN)
    }

    /// The end of the container at `at`. `None` if that is not known: the plain scanner finds it, or
    /// says what is wrong.
    #[inline(always)]
    pub(super) fn container(self, text: &[u8], at: usize) -> Option<usize> {
        match self.0 {
            Kind::Plain => None,
            #[cfg(target_arch = "x86_64")]
            Kind::Sse2 => x86::container_sse2(text, at),
            // SAFETY: this kind exists only where the processor has AVX2, BMI1 and BMI2.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86::container_avx2(text, at) },
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Kind::Neon => neon::container(text, at),
        }
    }
}

/// The bits of the quotes and backslashes of a block, first byte lowest. Of those above the lowest
/// some may be others.
#[inline(always)]
pub(super) fn marks(block: &[u8; 16]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    return x86::marks(block);
    #[cfg(not(target_arch = "x86_64"))]
    return plain_marks(block);
}

/// The same on any processor. A borrow may mark a byte above a true mark as well.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn plain_marks(block: &[u8; 16]) -> u32 {
    let splat = |byte| u128::from_le_bytes([byte; 16]);
    let zeros = |word: u128| word.wrapping_sub(splat(1)) & !word & splat(0x80);
    let block = u128::from_le_bytes(*block);
    let tops = zeros(block ^ splat(b'"')) | zeros(block ^ splat(b'\\'));
    match tops {
        0 => 0,
        tops => 1 << (tops.trailing_zeros() / 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_level_is_the_last_of_all() {
        assert_eq!(Level::all().next(), Some(Level::PLAIN));
        assert_eq!(Level::all().last(), Some(Level::best()));
    }

    #[test]
    fn the_first_quote_or_backslash_of_a_block_is_found() {
        for byte in 0..=u8::MAX {
            for at in 0..17 {
                let mut block = [byte; 16];
                if let Some(found) = block.get_mut(at) {
                    *found = b'"';
                }
                let first = block.iter().position(|it| matches!(it, b'"' | b'\\'));
                let lowest = |marks: u32| (marks != 0).then_some(marks.trailing_zeros() as usize);
                assert_eq!(lowest(marks(&block)), first, "{block:?}");
                assert_eq!(lowest(plain_marks(&block)), first, "{block:?}");
            }
        }
    }

    // Compared to the plain one from outside; here, that they do not leave the work to it.
    #[test]
    fn a_sound_container_is_accepted_in_blocks() {
        let deep = ["[".repeat(64), "]".repeat(64)].concat();
        let long = format!("{{\"a\":[\"{}\",-1.5, true ]}}", "\\\"x".repeat(50));
        for container in ["{}", "[]", r#"{"a":[1,{"b":null}]}"#, &deep, &long] {
            for behind in ["", "}", ",\"name\":1}", &" ".repeat(70)] {
                let text = format!("12{container}{behind}");
                for level in Level::all().skip(1) {
                    let end = level.container(text.as_bytes(), 2);
                    assert_eq!(end, Some(2 + container.len()), "{level:?}: {text}");
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_or_too_deep_for_blocks_is_left_to_the_plain_scanner() {
        let deep = ["[".repeat(65), "]".repeat(65)].concat();
        for text in ["[", "[1", "{]", "{1}", "[1 2]", "[tru]", "{\"a\"}", &deep] {
            for level in Level::all() {
                assert_eq!(
                    level.container(text.as_bytes(), 0),
                    None,
                    "{level:?}: {text}"
                );
            }
        }
    }
}
