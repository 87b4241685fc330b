//! An estate on a loopback port.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::answer::{Answer, Request};
use crate::estate::Estate;

/// A running or stopped PuppetDB. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    estate: Arc<Estate>,
    address: SocketAddr,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    // Dropping the sender is the signal; nothing is ever sent.
    stop: oneshot::Sender<Infallible>,
    done: JoinHandle<()>,
}

/// Serves the estate on `address`; port 0 takes a free one. Fails if the port cannot be had.
pub async fn serve(estate: Estate, address: SocketAddr) -> io::Result<Server> {
    let listener = TcpListener::bind(address).await?;
    let mut server = Server {
        estate: Arc::new(estate),
        address: listener.local_addr()?,
        running: None,
    };
    server.start(listener);
    Ok(server)
}

impl Server {
    /// Where it listens, or would if it ran.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its base URL, such as `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Whether it runs.
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Cuts every connection and closes the port. When this returns, new connections are refused.
    pub async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            drop(running.stop);
            // The task ends by itself; it could only fail by a panic, and then its sockets are
            // closed as well.
            let _ = running.done.await;
        }
    }

    /// Takes its old port again. Does nothing if it runs; fails if the port was given away meanwhile.
    pub async fn restart(&mut self) -> io::Result<()> {
        if !self.is_running() {
            let listener = TcpListener::bind(self.address).await?;
            self.start(listener);
        }
        Ok(())
    }

    fn start(&mut self, listener: TcpListener) {
        let (stop, stopped) = oneshot::channel();
        let done = tokio::spawn(accept(self.estate.clone(), listener, stopped));
        self.running = Some(Running { stop, done });
    }
}

async fn accept(
    estate: Arc<Estate>,
    listener: TcpListener,
    mut stopped: oneshot::Receiver<Infallible>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let estate = estate.clone();
                let service = service_fn(move |request| respond(estate.clone(), request));
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), service);
                connections.spawn(async move {
                    // A client that hangs up is no fault of the server's.
                    let _ = connection.await;
                });
            }
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn respond(
    estate: Arc<Estate>,
    request: http::Request<Incoming>,
) -> Result<Response<Text>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let text = |name| {
        head.headers
            .get(name)
            .and_then(|it: &http::HeaderValue| it.to_str().ok())
    };
    let answer = estate.answer(
        &Request {
            method: head.method.as_str(),
            path: head.uri.path(),
            query: head.uri.query().unwrap_or_default(),
            accept: text(header::ACCEPT),
            content_type: text(header::CONTENT_TYPE),
            body: &body,
        },
        SystemTime::now().into(),
    );
    Ok(response(answer))
}

fn response(answer: Answer) -> Response<Text> {
    let mut response = Response::new(Text::new(answer.body));
    let known = StatusCode::from_u16(answer.status);
    *response.status_mut() = known.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = answer.content_type.map(http::HeaderValue::from_static);
    let location = answer.location.and_then(|it| it.try_into().ok());
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::LOCATION, location),
        (
            http::HeaderName::from_static("x-records"),
            answer.total.map(http::HeaderValue::from),
        ),
    ];
    let present = headers
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    response.headers_mut().extend(present);
    response
}

/// From this size on an answer is chunked: PuppetDB streams what does not fit one buffer.
const CHUNKED_FROM: usize = 32 * 1024;

/// A body that tells its length only while it is small.
struct Text {
    rest: Bytes,
    hint: SizeHint,
}

impl Text {
    fn new(text: String) -> Self {
        let rest = Bytes::from(text);
        let hint = match u64::try_from(rest.len()) {
            Ok(length) if rest.len() < CHUNKED_FROM => SizeHint::with_exact(length),
            _ => SizeHint::new(),
        };
        Self { rest, hint }
    }
}

impl Body for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(CHUNKED_FROM);
        let next = self.rest.split_to(length);
        self.hint = SizeHint::new();
        Poll::Ready(Some(Ok(Frame::data(next))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}
