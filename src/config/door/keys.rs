//! The keys that hold for clients, part of the one table of keys.

use super::super::key::{Key, Setter};
use super::super::{duration, value};
use super::parse_head;

/// A key of a field of [`DoorConfig`](super::DoorConfig), read by `$parse` and written by `$show`.
macro_rules! of_door {
    ($constant:ident, $field:ident, $hint:literal, $parse:expr, $show:expr, $doc:literal $(,)?) => {
        pub(in crate::config) const $constant: Key = Key {
            name: stringify!($field),
            hint: $hint,
            doc: $doc,
            flag: None,
            choices: &[],
            set: Setter::Scalar(|config, text| {
                config.door.$field = $parse(text)?;
                Ok(())
            }),
            show: |config| $show(&config.door.$field),
        };
    };
}

of_door!(
    MAX_IN_FLIGHT,
    max_in_flight,
    "COUNT",
    value::parse_most,
    ToString::to_string,
    "Most requests that are answered at one time, each until its last byte is written; 0 is without \
     bound. One beyond it waits, and is refused with 503 after queue_timeout; health endpoints are \
     answered always.",
);
of_door!(
    QUEUE_LENGTH,
    queue_length,
    "COUNT",
    value::parse_most,
    ToString::to_string,
    "Most requests that wait for others to end, under max_in_flight. One beyond it is refused with \
     503 at once; 0 lets none wait.",
);
of_door!(
    QUEUE_TIMEOUT,
    queue_timeout,
    "DURATION",
    duration::parse,
    duration::format,
    "Longest wait of a request for others to end, under max_in_flight.",
);
of_door!(
    MAX_PER_CLIENT,
    max_per_client,
    "COUNT",
    value::parse_most,
    ToString::to_string,
    "Most requests of one client address at one time; 0 is without bound. One beyond it is refused \
     with 429.",
);
of_door!(
    MAX_HEAD_BYTES,
    max_head_bytes,
    "BYTES",
    |text| value::parse_bytes(text).and_then(parse_head),
    ToString::to_string,
    "Largest head of a request, 8192 or more; a larger one is refused with 431.",
);
