//! The same by HTTP/2.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::{End, Response, in_time};

/// One connection to pdbmux, for as many requests at one time as it takes.
#[derive(Debug)]
pub(crate) struct Http2 {
    sender: SendRequest<Full<Bytes>>,
    running: JoinHandle<hyper::Result<()>>,
}

/// An answer whose body is still to come.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) head: Response,
    body: Incoming,
}

impl Http2 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(in_time(TcpStream::connect(address)).await.unwrap()).await
    }

    /// One on a connection that is there.
    pub(crate) async fn over<S>(stream: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connected = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = in_time(connected).await.unwrap();
        Self {
            sender,
            running: tokio::spawn(connection),
        }
    }

    pub(crate) async fn get(&self, target: &str) -> Response {
        self.ask(request(Method::GET, target, "")).await.unwrap()
    }

    /// The answer, or why there is none.
    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>) -> hyper::Result<Response> {
        Ok(self.begin(request).await?.whole().await)
    }

    /// Waits for the head of an answer.
    pub(crate) async fn begin(&self, request: Request<Full<Bytes>>) -> hyper::Result<Begun> {
        let answer = in_time(self.sender.clone().send_request(request)).await?;
        let (head, body) = answer.into_parts();
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let headers = head.headers.iter();
        Ok(Begun {
            head: Response {
                status: head.status.as_u16(),
                headers: headers
                    .map(|(name, value)| (name.to_string(), text(value)))
                    .collect(),
                body: Vec::new(),
                end: End::Whole,
            },
            body,
        })
    }

    /// Waits until the connection has ended.
    pub(crate) async fn until_closed(self) {
        let _however = in_time(self.running).await.unwrap();
    }
}

impl Begun {
    /// Waits for more of the body; `None` at its end, however that is.
    pub(crate) async fn more(&mut self) -> Option<Bytes> {
        let frame = in_time(self.body.frame()).await?;
        if frame.is_err() {
            self.head.end = End::Broken;
        }
        frame.ok()?.into_data().ok()
    }

    pub(crate) async fn whole(mut self) -> Response {
        while let Some(bytes) = self.more().await {
            self.head.body.extend_from_slice(&bytes);
        }
        self.head
    }
}

pub(crate) fn request(method: Method, target: &str, body: &str) -> Request<Full<Bytes>> {
    let request = Request::builder()
        .method(method)
        .uri(format!("http://pdbmux{target}"));
    let body = Full::from(body.to_owned());
    request.body(body).unwrap()
}
