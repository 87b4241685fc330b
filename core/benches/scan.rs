//! Throughput of the record scanner, beside what bounds it and what it replaces.
//!
//! `cargo bench -p pdbmux-core --bench scan`. Wall time on a shared machine swings, so quote the
//! column `fastest`, and its ratio to `memchr` of the same run. The allocation columns of `records`
//! must stay empty: nothing is allocated per record.

use std::fmt::{self, Write};
use std::sync::LazyLock;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use pdbmux_core::json::{Elements, Records, check_utf8};
use serde::Deserialize;
use serde_json::value::RawValue;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

/// Read within a time slice, so that the fastest samples on a busy machine are undisturbed ones.
const BODY: usize = 4 << 20;

/// Read in turn, more than a last-level cache holds: each sample comes from memory.
const COPIES: usize = 24;

fn main() {
    divan::main();
}

/// The shapes of `/facts` answers that stress different parts of the scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Whole fact sets, about 200 bytes a record.
    Facts,
    /// One small fact a node: little to skip, many records.
    OneFact,
    /// Fact sets with blanks and line ends, as PuppetDB prints for `pretty=true`.
    Pretty,
}

const SHAPES: [Shape; 3] = [Shape::Facts, Shape::OneFact, Shape::Pretty];

impl Shape {
    fn bodies(self) -> &'static [String] {
        static FACTS: LazyLock<Vec<String>> = LazyLock::new(|| vec![facts(Shape::Facts); COPIES]);
        static ONE: LazyLock<Vec<String>> = LazyLock::new(|| vec![facts(Shape::OneFact); COPIES]);
        static PRETTY: LazyLock<Vec<String>> = LazyLock::new(|| vec![facts(Shape::Pretty); COPIES]);
        match self {
            Self::Facts => &FACTS,
            Self::OneFact => &ONE,
            Self::Pretty => &PRETTY,
        }
    }
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

/// A `/facts` answer of at least `BODY` bytes.
fn facts(shape: Shape) -> String {
    let mut body = String::with_capacity(BODY + (1 << 12));
    let mut node = 1_000_u64;
    body.push('[');
    while body.len() < BODY {
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

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Facts => "facts",
            Self::OneFact => "one fact",
            Self::Pretty => "pretty",
        })
    }
}

/// Runs `read` over one body of the shape a sample.
fn run<T>(bencher: Bencher<'_, '_>, shape: Shape, mut read: impl FnMut(&[u8]) -> T) {
    let mut bodies = shape.bodies().iter().map(String::as_bytes).cycle();
    bencher
        .with_inputs(|| bodies.next().unwrap_or_default())
        .input_counter(|body| BytesCount::of_slice(*body))
        .bench_local_values(|body| read(black_box(body)));
}

#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn records(bencher: Bencher<'_, '_>, shape: Shape) {
    run(bencher, shape, |body| {
        let mut records = Records::new(body, &["certname", "name"]);
        let mut fields = [None, None];
        let mut count = 0_usize;
        while let Ok(Some(record)) = records.next(&mut fields) {
            black_box((record, &fields));
            count += 1;
        }
        assert!(count > 5_000, "the body is refused");
    });
}

#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn elements(bencher: Bencher<'_, '_>, shape: Shape) {
    run(bencher, shape, |body| {
        let count = Elements::new(body).map_while(Result::ok).count();
        assert!(count > 5_000, "the body is refused");
    });
}

#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn utf8(bencher: Bencher<'_, '_>, shape: Shape) {
    run(bencher, shape, check_utf8);
}

/// A pass that looks at every byte once: the ceiling.
#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn memchr(bencher: Bencher<'_, '_>, shape: Shape) {
    run(bencher, shape, |body| memchr::memchr(0, body));
}

#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn memcpy(bencher: Bencher<'_, '_>, shape: Shape) {
    let mut copy = vec![1; 2 * BODY];
    run(bencher, shape, |body| {
        copy[..body.len()].copy_from_slice(body);
        black_box(&copy);
    });
}

/// What the scanner replaces: a list of raw values, then the wanted members of each.
#[divan::bench(args = SHAPES, sample_count = 50, sample_size = 1)]
fn serde_json_raw(bencher: Bencher<'_, '_>, shape: Shape) {
    #[derive(Deserialize)]
    struct Record<'b> {
        #[serde(borrow)]
        certname: &'b RawValue,
        #[serde(borrow)]
        name: &'b RawValue,
    }
    run(bencher, shape, |body| {
        let records: Vec<&RawValue> = serde_json::from_slice(body).unwrap_or_default();
        for record in &records {
            if let Ok(Record { certname, name }) = serde_json::from_str(record.get()) {
                black_box((certname, name));
            }
        }
        assert!(records.len() > 5_000, "the body is refused");
    });
}
