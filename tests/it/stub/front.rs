//! HTTP/2 before a stub, whose answers stay steps on a raw connection: each request has one of its own.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Serves whoever connects, counted, by what the stub at `behind` answers.
pub(super) async fn serve(listener: TcpListener, behind: SocketAddr, count: Arc<AtomicUsize>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        count.fetch_add(1, Ordering::Relaxed);
        let connection = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service_fn(move |it| pass(behind, it)));
        connections.spawn(connection);
    }
}

async fn pass(
    behind: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, Box<dyn Error + Send + Sync>> {
    let (mut head, body) = request.into_parts();
    let host = head.uri.authority().unwrap().to_string();
    head.headers.insert(HOST, HeaderValue::try_from(host)?);
    let target = head.uri.path_and_query().unwrap().to_string();
    head.uri = Uri::try_from(target)?;
    head.version = http::Version::HTTP_11;
    let body = Full::<Bytes>::new(body.collect().await?.to_bytes());
    let stream = TokioIo::new(TcpStream::connect(behind).await?);
    let (mut sender, connection) = http1::handshake(stream).await?;
    // Ends with the exchange: a request that is taken back is hung up on.
    tokio::spawn(connection);
    let answer = sender.send_request(Request::from_parts(head, body)).await;
    // What a connection of HTTP/1.1 says by its end is said of one request here.
    answer.map_err(|error| {
        if error.is_incomplete_message() {
            h2::Error::from(h2::Reason::REFUSED_STREAM).into()
        } else {
            error.into()
        }
    })
}
