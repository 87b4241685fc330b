//! What went wrong with the encryption of a connection by HTTP/2, which keeps of an error only its text.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};

use super::Stream;

/// What was heard on a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard(Arc<OnceLock<rustls::Error>>);

/// A connection that is listened to for trouble.
#[derive(Debug)]
pub(super) struct Listening {
    stream: Stream,
    heard: Heard,
}

impl Heard {
    /// Why its encryption ended, if that did badly.
    pub(super) fn trouble(&self) -> Option<rustls::Error> {
        self.0.get().cloned()
    }
}

impl Listening {
    pub(super) fn new(stream: Stream) -> (Self, Heard) {
        let heard = Heard::default();
        let of = heard.clone();
        (Self { stream, heard: of }, heard)
    }

    fn note<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.inspect_err(|error| {
            let cause = error.get_ref().and_then(|it| it.downcast_ref());
            let noted = cause.cloned().map(|cause| self.heard.0.set(cause));
            // The first is the cause of all others.
            drop(noted);
        })
    }
}

impl Read for Listening {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        Poll::Ready(self.note(read))
    }
}

impl Write for Listening {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }
}
