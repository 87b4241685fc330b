//! What the container around the process allows it.

use std::fs;

/// The memory that the process's container may take, in bytes; `None` where there is no limit.
pub(super) fn memory_limit() -> Option<usize> {
    // Inside a container its own group is the root: of version 2 of control groups, or of version 1.
    let files = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    files
        .iter()
        .find_map(|file| limit(&fs::read_to_string(file).ok()?))
}

fn limit(text: &str) -> Option<usize> {
    // Version 1 writes a number that no machine has for no limit, version 2 writes `max`.
    let limit: usize = text.trim().parse().ok()?;
    (limit < 1 << 50).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_limit_is_none() {
        for (text, expected) in [
            ("268435456\n", Some(256 << 20)),
            ("max\n", None),
            ("9223372036854771712\n", None),
            ("", None),
        ] {
            assert_eq!(limit(text), expected, "{text}");
        }
    }
}
