//! What the container around the process allows it.

use std::fs;
use std::path::{Path, PathBuf};

/// The memory that the process may take by the control groups it is in, in bytes; `None` where they
/// set no limit.
pub(super) fn memory_limit() -> Option<usize> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = files(&groups);
    let limits = limits.filter_map(|file| limit(&fs::read_to_string(file).ok()?));
    limits.min()
}

/// Where the limits of the process's groups stand, those around them included. A container may see
/// its own group as the root, whatever it is told of its path.
fn files(groups: &str) -> impl Iterator<Item = PathBuf> {
    let files = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|it| it == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let groups = Path::new(group).ancestors();
        let within = groups.map(move |group| {
            let group = group.strip_prefix("/").unwrap_or(group);
            Path::new(root).join(group).join(name)
        });
        Some(within)
    });
    files.flatten()
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
    fn the_limits_of_a_group_and_of_those_around_it_count() {
        for (groups, expected) in [
            ("0::/\n", &["/sys/fs/cgroup/memory.max"][..]),
            (
                "0::/system.slice/pdbmux.service\n",
                &[
                    "/sys/fs/cgroup/system.slice/pdbmux.service/memory.max",
                    "/sys/fs/cgroup/system.slice/memory.max",
                    "/sys/fs/cgroup/memory.max",
                ],
            ),
            (
                "3:cpu,cpuacct:/\n4:memory:/docker/1\n",
                &[
                    "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes",
                    "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                ],
            ),
            ("nonsense", &[]),
        ] {
            let found: Vec<_> = files(groups).collect();
            let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(found, expected, "{groups}");
        }
    }

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
