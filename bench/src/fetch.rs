//! One answer, read to its end and thrown away.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

/// Longest silence of a server.
const PATIENCE: Duration = Duration::from_mins(2);

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    pub(crate) status: u16,
    /// Until the first byte of the body.
    pub(crate) first: Duration,
    /// Until its last byte.
    pub(crate) whole: Duration,
    /// All bytes that came, head included.
    pub(crate) bytes: u64,
}

/// Asks the server on `port` for `path` and reads all of the answer. One that ends before it is
/// whole is an error.
pub(crate) fn fetch(port: u16, path: &str) -> Result<Fetched> {
    let asked = || format!("{path} on port {port}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).with_context(asked)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let began = Instant::now();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"
    )?;
    let mut head = Vec::new();
    let mut room = vec![0; 256 << 10];
    let (length, first) = loop {
        let read = stream.read(&mut room).with_context(asked)?;
        ensure!(read > 0, "{} ended within its head", asked());
        head.extend_from_slice(&room[..read]);
        if let Some(length) = head.windows(4).position(|end| end == b"\r\n\r\n")
            && head.len() > length + 4
        {
            break (length + 4, began.elapsed());
        }
    };
    let text = String::from_utf8_lossy(&head[..length]).to_ascii_lowercase();
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("{} has no status", asked()))?;
    let promised = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map(|length| length.trim().parse::<u64>())
        .transpose()?;
    let mut bytes = head.len() as u64;
    let mut end = head.split_off(head.len().saturating_sub(5).max(length));
    loop {
        let read = stream.read(&mut room).with_context(asked)?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        end.extend_from_slice(&room[read.saturating_sub(5)..read]);
        end.drain(..end.len().saturating_sub(5));
    }
    let whole = began.elapsed();
    match promised {
        Some(promised) if bytes != promised + length as u64 => {
            bail!("{} ended after {bytes} bytes of {promised}", asked())
        }
        None if end != b"0\r\n\r\n" => bail!("{} ended before its last chunk", asked()),
        _ => {}
    }
    Ok(Fetched {
        status,
        first,
        whole,
        bytes,
    })
}

/// Fetches all of `asks` at once.
pub(crate) fn together(asks: &[(u16, String)]) -> Result<Vec<Fetched>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = asks
            .iter()
            .map(|(port, path)| scope.spawn(|| fetch(*port, path)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| bail!("a fetch panicked")))
            .collect()
    })
}
