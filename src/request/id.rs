//! Tokens that tell one request from another.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::HeaderValue;

/// The longest id that is taken over, in bytes.
const LONGEST: usize = 128;

/// Makes ids. No two processes make the same, as far as chance allows.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    seed: RandomState,
    made: AtomicU64,
}

impl Ids {
    /// A new id: 16 hexadecimal digits.
    pub(crate) fn next(&self) -> HeaderValue {
        let digits = hex(self.number());
        // Digits are such a value.
        HeaderValue::from_bytes(&digits).unwrap_or(HeaderValue::from_static("-"))
    }

    /// A number that was not made before.
    fn number(&self) -> u64 {
        self.seed.hash_one(self.made.fetch_add(1, Relaxed))
    }
}

/// A number that nobody else has made, as far as chance allows.
pub(crate) fn unique() -> u64 {
    RandomState::new().hash_one(())
}

/// `number` as 16 digits.
fn hex(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    for (two, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
        two.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
    }
    digits
}

/// Whether an id that a client sends is one to be taken over: short, and of characters that mean
/// nothing to a log.
pub(super) fn is_sane(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+/=@~".contains(byte);
    let id = id.as_bytes();
    (1..=LONGEST).contains(&id.len()) && id.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_that_a_client_sends_is_taken_over_if_it_is_short_and_plain() {
        for (id, sane) in [
            ("7f3c", true),
            ("Root=1-67891233-abcdef012345678912345678", true),
            ("018f2c3e-7a1b-7c4d-8e9f-0123456789ab", true),
            (&"x".repeat(128), true),
            (&"x".repeat(129), false),
            ("", false),
            ("a b", false),
            ("a\"b", false),
            ("a\\n", false),
            ("a{b}", false),
        ] {
            let value = HeaderValue::from_str(id).unwrap();
            assert_eq!(is_sane(&value), sane, "{id}");
        }
        assert!(!is_sane(&HeaderValue::from_bytes(b"caf\xe9").unwrap()));
    }

    #[test]
    fn ids_that_are_made_are_sane_and_each_is_another() {
        let (ids, others) = (Ids::default(), Ids::default());
        let made = (0..1000).flat_map(|_| [ids.next(), others.next()]);
        let made: HashSet<_> = made.collect();
        assert_eq!(made.len(), 2000);
        assert!(made.iter().all(|id| id.len() == 16 && is_sane(id)));
    }

    #[test]
    fn a_number_is_written_in_sixteen_digits() {
        assert_eq!(&hex(0), b"0000000000000000");
        assert_eq!(&hex(0x0123_4567_89ab_cdef), b"0123456789abcdef");
    }
}
