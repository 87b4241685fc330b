//! What a stub sends: steps on a raw connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Something a stub waits for before it goes on.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets everyone through, now and later.
    pub(crate) fn open(&self) {
        self.0.close();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.is_closed()
    }

    pub(crate) async fn pass(&self) {
        let _closed = self.0.acquire().await;
    }
}

/// An answer, or what a broken backend does in the place of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Send(Vec<u8>),
    Pause(Duration),
    Hold(Gate),
    Open(Gate),
    Hang,
    Close,
    Reset,
}

/// How a connection stands after an answer.
pub(super) enum Ended {
    /// The answer was sent and the connection can be used on.
    Whole,
    /// The script closed it.
    Closed,
    /// The other side closed it.
    HungUpOn,
}

const JSON: &str = "application/json;charset=utf-8";

impl Answer {
    /// A success as PuppetDB sends it.
    pub(crate) fn json(body: impl AsRef<[u8]>) -> Self {
        Self::with(200, &[("Content-Type", JSON)], body)
    }

    /// The same with an `X-Records`.
    pub(crate) fn counted(total: u64, body: impl AsRef<[u8]>) -> Self {
        let headers = [("Content-Type", JSON), ("X-Records", &total.to_string())];
        Self::with(200, &headers, body)
    }

    /// A plain text with a status.
    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self::with(
            status,
            &[("Content-Type", "text/plain;charset=utf-8")],
            body,
        )
    }

    /// A whole answer with these headers and its length.
    pub(crate) fn with(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = body.len().to_string();
        let mut answer = Self::head(
            status,
            &[headers, &[("Content-Length", length.as_str())]].concat(),
        );
        if !body.is_empty() {
            answer = answer.send(body);
        }
        answer
    }

    /// A head only.
    pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> Self {
        let mut head = format!("HTTP/1.1 {status} Whatever\r\n");
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        Self::default().send(head + "\r\n")
    }

    /// The head of a JSON success that promises `length` bytes.
    pub(crate) fn promising(length: usize) -> Self {
        let length = length.to_string();
        Self::head(200, &[("Content-Type", JSON), ("Content-Length", &length)])
    }

    /// The head of a JSON success that comes in chunks.
    pub(crate) fn chunked() -> Self {
        Self::head(
            200,
            &[("Content-Type", JSON), ("Transfer-Encoding", "chunked")],
        )
    }

    /// Takes the request and says nothing, for ever.
    pub(crate) fn hung() -> Self {
        Self::default().hang()
    }

    /// Closes at once with an error on the connection.
    pub(crate) fn reset() -> Self {
        Self::default().then(Step::Reset)
    }

    pub(crate) fn send(self, bytes: impl AsRef<[u8]>) -> Self {
        self.then(Step::Send(bytes.as_ref().to_vec()))
    }

    pub(crate) fn chunk(self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.send(chunk)
    }

    /// The end of a chunked body.
    pub(crate) fn last_chunk(self) -> Self {
        self.send("0\r\n\r\n")
    }

    pub(crate) fn pause(self, time: Duration) -> Self {
        self.then(Step::Pause(time))
    }

    /// Waits for the gate.
    pub(crate) fn hold(self, gate: &Gate) -> Self {
        self.then(Step::Hold(gate.clone()))
    }

    /// Waits for the gate before the first byte.
    pub(crate) fn behind(mut self, gate: &Gate) -> Self {
        self.steps.insert(0, Step::Hold(gate.clone()));
        self
    }

    /// Opens the gate.
    pub(crate) fn open(self, gate: &Gate) -> Self {
        self.then(Step::Open(gate.clone()))
    }

    /// Sends no more and keeps the connection.
    pub(crate) fn hang(self) -> Self {
        self.then(Step::Hang)
    }

    pub(crate) fn close(self) -> Self {
        self.then(Step::Close)
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl<T: AsRef<str>> From<T> for Answer {
    /// A JSON success of this body.
    fn from(body: T) -> Self {
        Self::json(body.as_ref())
    }
}

/// Goes through the steps; bytes that come meanwhile are kept in `early`. `at_last` is called before
/// the last one: with that the answer is there.
pub(super) async fn perform(
    answer: &Answer,
    stream: &mut TcpStream,
    early: &mut Vec<u8>,
    at_last: impl FnOnce(),
) -> Ended {
    let mut at_last = Some(at_last);
    for (at, step) in answer.steps.iter().enumerate() {
        if at + 1 == answer.steps.len()
            && let Some(at_last) = at_last.take()
        {
            at_last();
        }
        match step {
            Step::Send(bytes) => {
                if stream.write_all(bytes).await.is_err() {
                    return Ended::HungUpOn;
                }
            }
            Step::Open(gate) => gate.open(),
            Step::Close => return Ended::Closed,
            Step::Reset => {
                stream.set_zero_linger().unwrap();
                return Ended::Closed;
            }
            Step::Pause(_) | Step::Hold(_) | Step::Hang => {
                let waiting = async {
                    match step {
                        Step::Pause(time) => tokio::time::sleep(*time).await,
                        Step::Hold(gate) => gate.pass().await,
                        _ => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = waiting => {}
                    () = closed(stream, early) => return Ended::HungUpOn,
                }
            }
        }
    }
    Ended::Whole
}

/// Ends when the other side closes the connection.
async fn closed(stream: &mut TcpStream, early: &mut Vec<u8>) {
    while stream.read_buf(early).await.is_ok_and(|read| read > 0) {}
}
