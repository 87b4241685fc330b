//! A client that sends what it is told and shows what came back, broken or whole.

pub(crate) mod http2;

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// No test waits longer for anything: a hang is a failure with a place.
const WATCHDOG: Duration = Duration::from_secs(15);

/// Waits for what must happen.
#[track_caller]
pub(crate) fn in_time<F: Future>(what: F) -> impl Future<Output = F::Output> {
    let place = std::panic::Location::caller();
    async move {
        tokio::time::timeout(WATCHDOG, what)
            .await
            .unwrap_or_else(|_| panic!("what {place} waits for did not happen"))
    }
}

/// The first line and the headers of a message, their names in lower case.
pub(crate) type Head = (String, Vec<(String, String)>);

/// Takes a message's head off `bytes`, if it is whole.
pub(crate) fn split_head(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        })
        .collect();
    Some(((first, headers), &bytes[end + 4..]))
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Where its framing says.
    Whole,
    /// Before that.
    Broken,
}

/// An answer as it stood on the wire.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// In their order, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) end: End,
}

impl Response {
    /// The value of a header that comes at most once.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() <= 1, "{name} came {} times", all.len());
        all.first().copied()
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(known, _)| known == name);
        found.map(|(_, value)| &**value).collect()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body of a whole success.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!((self.status, self.end), (200, End::Whole), "{self:#?}");
        self.text()
    }

    /// The body of a refusal in pdbmux's own words.
    #[track_caller]
    pub(crate) fn refusal(&self) -> &str {
        assert_eq!(self.status, 400, "{self:#?}");
        assert_eq!(
            self.header("content-type"),
            Some("text/plain;charset=utf-8")
        );
        self.text()
    }

    pub(crate) fn backends(&self) -> Option<&str> {
        self.header("x-backends")
    }

    pub(crate) fn missing(&self) -> Vec<&str> {
        self.all("x-pdbmux-missing")
    }
}

/// One connection to pdbmux.
#[derive(Debug)]
pub(crate) struct Client<S = TcpStream> {
    stream: S,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(in_time(TcpStream::connect(address)).await.unwrap())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// One on a connection that is there.
    pub(crate) fn over(stream: S) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        in_time(self.stream.write_all(bytes.as_ref()))
            .await
            .unwrap();
    }

    pub(crate) async fn get(&mut self, target: &str) -> Response {
        self.send(request("GET", target)).await;
        self.response().await
    }

    /// Reads the answer to anything but HEAD.
    pub(crate) async fn response(&mut self) -> Response {
        let head = self.head().await;
        self.body_of(head).await
    }

    /// Reads the body of an answer whose head was read.
    pub(crate) async fn body_of(&mut self, mut response: Response) -> Response {
        if response.header("transfer-encoding") == Some("chunked") {
            response.end = self.chunks(&mut response.body).await;
        } else if let Some(length) = response.header("content-length") {
            let length = length.parse().unwrap();
            response.end = self.fill(length).await;
            let length = length.min(self.buffer.len());
            response.body = self.buffer.drain(..length).collect();
        } else if !matches!(response.status, 100..200 | 204 | 304) {
            while self.read().await > 0 {}
            response.body = std::mem::take(&mut self.buffer);
        }
        response
    }

    /// Reads an answer's head.
    pub(crate) async fn head(&mut self) -> Response {
        loop {
            if let Some(((first, headers), rest)) = split_head(&self.buffer) {
                let status = first.split(' ').nth(1).unwrap().parse().unwrap();
                self.buffer = rest.to_vec();
                return Response {
                    status,
                    headers,
                    body: Vec::new(),
                    end: End::Whole,
                };
            }
            assert!(self.read().await > 0, "no answer: {:?}", self.buffer);
        }
    }

    async fn chunks(&mut self, body: &mut Vec<u8>) -> End {
        loop {
            let line = loop {
                if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                    break self.buffer.drain(..end + 2).collect::<Vec<_>>();
                }
                if self.read().await == 0 {
                    return End::Broken;
                }
            };
            let size = std::str::from_utf8(&line).unwrap().trim();
            let size = usize::from_str_radix(size, 16).unwrap();
            let end = self.fill(size + 2).await;
            body.extend(self.buffer.drain(..size.min(self.buffer.len())));
            if end == End::Broken {
                return end;
            }
            self.buffer.drain(..2);
            if size == 0 {
                return End::Whole;
            }
        }
    }

    async fn fill(&mut self, length: usize) -> End {
        while self.buffer.len() < length {
            if self.read().await == 0 {
                return End::Broken;
            }
        }
        End::Whole
    }

    /// Waits until `bytes` have come, beside whatever else.
    pub(crate) async fn until_received(&mut self, bytes: &str) {
        self.until(|received| String::from_utf8_lossy(received).contains(bytes))
            .await;
    }

    /// Waits until what has come is enough.
    pub(crate) async fn until(&mut self, is_enough: impl Fn(&[u8]) -> bool) {
        while !is_enough(&self.buffer) {
            assert!(self.read().await > 0, "{:?} came only", self.buffer);
        }
    }

    /// Waits until pdbmux closes the connection; what came before that.
    pub(crate) async fn until_closed(&mut self) -> Vec<u8> {
        while self.read().await > 0 {}
        std::mem::take(&mut self.buffer)
    }

    /// Sends as much as pdbmux takes before it closes the connection.
    pub(crate) async fn send_while_open(&mut self, bytes: impl AsRef<[u8]>) {
        let _closed = in_time(self.stream.write_all(bytes.as_ref())).await;
    }

    /// The next answer, or `None` if the connection is closed instead.
    pub(crate) async fn until_answered_or_closed(&mut self) -> Option<Response> {
        while self.buffer.is_empty() {
            if self.read().await == 0 {
                return None;
            }
        }
        Some(self.response().await)
    }

    /// Reads more; 0 at the end of the connection, however it ends.
    async fn read(&mut self) -> usize {
        in_time(self.stream.read_buf(&mut self.buffer))
            .await
            .unwrap_or(0)
    }
}

/// A request as a plain client writes it.
pub(crate) fn request(method: &str, target: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: pdbmux\r\n\r\n")
}
