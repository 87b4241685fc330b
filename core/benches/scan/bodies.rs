//! Answers that the scanner is measured on. Shared with the instruction counts.

use std::fmt::Write;

/// The shapes of `/facts` answers that stress different parts of the scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Whole fact sets, about 200 bytes a record.
    Facts,
    /// One small fact a node: little to skip, many records.
    OneFact,
    /// Fact sets with blanks and line ends, as PuppetDB prints for `pretty=true`.
    Pretty,
}

/// Facts of one node: name and value, `@` standing for a number that differs by node.
const FACTS: [(&str, &str); 21] = [
    ("aio_agent_version", r#""8.10.@""#),
    ("architecture", r#""amd64""#),
    ("augeas", r#"{"version":"1.14.@"}"#),
    ("bios_release_date", r#""0@/14/2024""#),
    (
        "disks",
        r#"{"nvme0n1":{"model":"Samsung SSD 980","serial":"S64DNX@","size":"1.82 TiB","size_bytes":2000398934016,"type":"ssd"},"sr0":{"model":"QEMU DVD-ROM","size":"4.00 MiB","size_bytes":4194304}}"#,
    ),
    ("fips_enabled", "false"),
    (
        "identity",
        r#"{"gid":0,"group":"root","privileged":true,"uid":0,"user":"root"}"#,
    ),
    ("is_virtual", "true"),
    ("kernelrelease", r#""6.1.0-@-amd64""#),
    ("load_averages", r#"{"15m":0.@,"1m":0.12,"5m":1.5e-3}"#),
    ("location", r#""Zürich, Gebäude „Süd“ @""#),
    (
        "memory",
        r#"{"swap":{"available":"2.00 GiB","available_bytes":2147479552,"capacity":"0%","used":"0 bytes","used_bytes":0},"system":{"available":"13.26 GiB","available_bytes":1423@,"capacity":"14.79%","total":"15.56 GiB","total_bytes":16708734976}}"#,
    ),
    (
        "motd",
        r#""Welcome to \"web@\"\nPath C:\\temp\\@\u00e9 \/etc\/motd""#,
    ),
    (
        "mountpoints",
        r#"{"/":{"available":"80.1 GiB","capacity":"17.50%","device":"/dev/vda1","filesystem":"ext4","options":["rw","relatime","errors=remount-ro"],"size_bytes":@},"/run":{"available":"1.6 GiB","capacity":"0.@%","device":"tmpfs","filesystem":"tmpfs","options":["rw","nosuid","nodev","noexec","mode=755"],"size_bytes":1670873088}}"#,
    ),
    (
        "networking",
        r#"{"domain":"example.net","fqdn":"web@.example.net","hostname":"web@","interfaces":{"eth0":{"bindings":[{"address":"10.1.2.@","netmask":"255.255.255.0","network":"10.1.2.0"}],"bindings6":[{"address":"fe80::5054:ff:fe12:@","flags":["permanent"],"netmask":"ffff:ffff:ffff:ffff::","network":"fe80::"}],"ip":"10.1.2.@","mac":"52:54:00:12:34:56","mtu":1500}},"primary":"eth0"}"#,
    ),
    (
        "os",
        r#"{"architecture":"amd64","distro":{"codename":"bookworm","description":"Debian GNU/Linux 12 (bookworm)","id":"Debian","release":{"full":"12.@","major":"12","minor":"@"}},"family":"Debian","name":"Debian","selinux":{"enabled":false}}"#,
    ),
    ("processorcount", "@"),
    (
        "ssh",
        r#"{"ecdsa":{"fingerprints":{"sha1":"SSHFP 3 1 9f@a3c0ffee2b","sha256":"SSHFP 3 2 0b@e4d9f7c1a85d2e6f"},"key":"AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBB@","type":"ecdsa-sha2-nistp256"},"ed25519":{"fingerprints":{"sha1":"SSHFP 4 1 77@","sha256":"SSHFP 4 2 5c@"},"key":"AAAAC3NzaC1lZDI1NTE5AAAAI@","type":"ssh-ed25519"}}"#,
    ),
    (
        "sshed25519key",
        r#""AAAAC3NzaC1lZDI1NTE5AAAAIE5hbm9zZWNvbmRzQXJlTG9uZ0Vub3VnaF@""#,
    ),
    ("system_serial", "18446744073709551616@"),
    ("uptime_seconds", "@"),
];

/// A `/facts` answer of at least `size` bytes.
pub(crate) fn facts(shape: Shape, size: usize) -> String {
    let mut body = String::with_capacity(size + (1 << 12));
    let mut node = 1_000_u64;
    body.push('[');
    while body.len() < size {
        node += 1;
        // Spreads over the digits without a generator of random numbers.
        let number = node.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50;
        let facts = match shape {
            Shape::Facts | Shape::Pretty => FACTS.as_slice(),
            Shape::OneFact => &FACTS[16..17],
        };
        for (name, value) in facts {
            let record = format!(
                r#"{{"certname":"web{node}.dc{}.example.net","environment":"production","name":"{name}","value":{}}}"#,
                number % 7,
                value.replace('@', &number.to_string()),
            );
            if body.len() > 1 {
                body.push(',');
            }
            if shape == Shape::Pretty {
                // Spelled as the pretty-printer of a tree would, which is what the blanks are for.
                if let Ok(value) = serde_json::from_str::<serde_json::Value>(&record) {
                    let _ = write!(body, " {value:#}");
                }
            } else {
                body.push_str(&record);
            }
        }
    }
    body.push(']');
    body
}
