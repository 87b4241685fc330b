//! The process as the system sees it, under the names that all Prometheus clients use for it.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::catalog::{Catalog, Kind};

/// Linux tells times in hundredths of a second on every machine that it runs on.
const TICKS: f64 = 100.0;

const CPU: (&str, &str) = (
    "process_cpu_seconds",
    "Time that the process has computed, in user and in system mode",
);
const RESIDENT: (&str, &str) = (
    "process_resident_memory_bytes",
    "Memory of the process that is in use",
);
const OPEN: (&str, &str) = ("process_open_fds", "Files and connections that are open");
const MAX: (&str, &str) = ("process_max_fds", "How many of them there may be");
const START: (&str, &str) = (
    "process_start_time_seconds",
    "When the process began, in seconds since 1970",
);

/// The catalog with the process in it, which began now.
pub(super) fn listed_in(mut catalog: Catalog) -> Catalog {
    for ((name, help), kind) in [
        (CPU, Kind::Counter),
        (RESIDENT, Kind::Gauge),
        (OPEN, Kind::Gauge),
        (MAX, Kind::Gauge),
        (START, Kind::Gauge),
    ] {
        catalog.list(name, help, &[], kind);
    }
    let process = Process {
        start: SystemTime::now(),
    };
    catalog.registry_mut().register_collector(Box::new(process));
    catalog
}

/// Looks at the process when it is asked for. What the system does not tell is left out.
#[derive(Debug)]
struct Process {
    start: SystemTime,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let read = |file: &str| fs::read_to_string(format!("/proc/self/{file}")).ok();
        if let Some(seconds) = read("stat").as_deref().and_then(cpu_seconds) {
            let (name, help) = CPU;
            let help = format!("{help}.");
            let metric = encoder.encode_descriptor(name, &help, None, MetricType::Counter)?;
            ConstCounter::new(seconds).encode(metric)?;
        }
        let mut gauge = |(name, help): (&str, &str), value: Option<f64>| {
            let Some(value) = value else {
                return Ok(());
            };
            let help = format!("{help}.");
            let metric = encoder.encode_descriptor(name, &help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)
        };
        gauge(RESIDENT, read("status").as_deref().and_then(resident_bytes))?;
        gauge(OPEN, open_files())?;
        gauge(MAX, read("limits").as_deref().and_then(most_files))?;
        gauge(START, Some(seconds(self.start)))
    }
}

/// Seconds since 1970.
pub(super) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

/// The times in `/proc/self/stat`. The name before them may hold blanks and brackets.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

fn resident_bytes(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

fn open_files() -> Option<f64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    // The one that reads the folder is open for as long.
    u32::try_from(open.saturating_sub(1)).ok().map(f64::from)
}

fn most_files(limits: &str) -> Option<f64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_of_the_process_is_read() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 2 0 0 0 150 50 0 0 20 0 5 0 9 1 1 1";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("7"), None);
        let status = "Name:\tpdbmux\nVmRSS:\t    2048 kB\nVmData: 1 kB\n";
        assert_eq!(resident_bytes(status), Some(2_097_152.0));
        let limits = "Limit  Soft Hard Units\nMax open files            1024    524288  files\n";
        assert_eq!(most_files(limits), Some(1024.0));
        assert_eq!(
            most_files("Max open files  unlimited unlimited files"),
            None
        );
    }
}
