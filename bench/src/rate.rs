//! Many requests over several connections, by wrk.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// What wrk measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Requests answered in a second.
    pub(crate) per_second: f64,
    /// How long half of them took at most.
    pub(crate) p50: Duration,
    /// How long 99 of 100 took at most.
    pub(crate) p99: Duration,
    /// Requests answered.
    pub(crate) requests: u64,
}

/// Asks for one thing over `connections` for `seconds`. An answer that is no success is an error.
pub(crate) fn rate(port: u16, path: &str, connections: usize, seconds: u64) -> Result<Rate> {
    let threads = if connections == 1 { "-t1" } else { "-t2" };
    let output = Command::new("wrk")
        .args([threads, "--latency", "--timeout", "30"])
        .arg(format!("-c{connections}"))
        .arg(format!("-d{seconds}"))
        .arg(format!("http://127.0.0.1:{port}{path}"))
        .output()
        .context("cannot run wrk")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && !text.contains("Non-2xx") && !text.contains("Socket errors"),
        "wrk on {path}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    read(&text).with_context(|| format!("wrk said:\n{text}"))
}

fn read(text: &str) -> Option<Rate> {
    let after = |mark: &str| {
        let line = text
            .lines()
            .map(str::trim)
            .find(|line| line.starts_with(mark))?;
        line[mark.len()..].split_whitespace().next()
    };
    let requests = text.lines().find_map(|line| {
        let (count, rest) = line.trim().split_once(' ')?;
        rest.starts_with("requests in")
            .then(|| count.parse().ok())?
    })?;
    Some(Rate {
        per_second: after("Requests/sec:")?.parse().ok()?,
        p50: time(after("50%")?)?,
        p99: time(after("99%")?)?,
        requests,
    })
}

fn time(text: &str) -> Option<Duration> {
    let at = text.find(|char: char| char.is_alphabetic())?;
    let value: f64 = text[..at].parse().ok()?;
    let unit = match &text[at..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return None,
    };
    Some(Duration::from_secs_f64(value * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wrk_prints_is_read() {
        let text = "Running 5s test @ http://127.0.0.1:1/\n  2 threads and 16 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.15ms    1.02ms  24.49ms   95.42%\n  Latency Distribution\n     50%    0.95ms\n     75%    1.30ms\n     90%    1.79ms\n     99%    5.02ms\n  75318 requests in 5.04s, 2.10GB read\nRequests/sec:  14945.61\nTransfer/sec:    427.13MB\n";
        let rate = read(text).unwrap();
        assert_eq!(rate.requests, 75_318);
        assert!((rate.per_second - 14_945.61).abs() < 1e-6);
        assert_eq!(rate.p50, Duration::from_micros(950));
        assert_eq!(rate.p99, Duration::from_micros(5_020));
    }
}
