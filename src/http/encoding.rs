//! Compressed answers, for clients who ask for them (RFC 9110, 12.5.3).

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use http::header::{ACCEPT_ENCODING, HeaderMap};
use http::{Method, Request, Response};
use http_body::Body as _;
use http_body_util::BodyStream;

use super::body::Body;
use super::respond;
use crate::config::Config;
use crate::gzip::{self, Gzip};
use crate::upstream::Failure;
use crate::work;

/// The longest answer that is compressed at once and not while it flows: under a millisecond.
const AT_ONCE: usize = 64 << 10;
/// Bytes that are compressed at a time.
const PART: usize = 256 << 10;
/// Compressed bytes that are worth a write, where the answer flows on.
const FRAME: usize = 16 << 10;

/// Which answers are compressed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compression {
    /// The shortest of them, in bytes.
    shortest: usize,
}

/// What a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// Plain bodies, or those rather.
    Identity,
    /// Compressed ones rather.
    Gzip,
    /// No plain ones.
    GzipOnly,
}

impl Compression {
    /// As it is configured; `None` if it is turned off.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        config.gzip.then_some(Self {
            shortest: config.gzip_min_bytes,
        })
    }

    /// Whether a body of `length` bytes, if that is known, is compressed for who takes this.
    pub(super) fn suits(self, accepted: Accepted, length: Option<u64>) -> bool {
        match accepted {
            Accepted::Identity => false,
            Accepted::Gzip => length.is_none_or(|length| length >= self.shortest as u64),
            Accepted::GzipOnly => length != Some(0),
        }
    }

    /// The answer as it is sent to who takes this. Only successes are compressed, as PuppetDB does
    /// it: other answers are short.
    pub(super) fn encode(self, response: Response<Body>, accepted: Accepted) -> Response<Body> {
        if !respond::compresses(&response) {
            return response;
        }
        let response = respond::varying(response);
        let length = response.body().size_hint().exact();
        if respond::is_encoded(&response) || !self.suits(accepted, length) {
            return response;
        }
        let (head, body) = response.into_parts();
        let body = match body.into_whole(AT_ONCE) {
            Ok(whole) => Body::whole(gzip::compress(&whole)),
            Err(body) => Body::passing(compressed(body), None),
        };
        respond::encoded(Response::from_parts(head, body))
    }
}

impl Accepted {
    /// What the client of a request takes. The answer to HEAD has no body to compress.
    pub(super) fn by<B>(request: &Request<B>) -> Self {
        match *request.method() {
            Method::HEAD => Self::Identity,
            _ => Self::of(request.headers()),
        }
    }

    fn of(headers: &HeaderMap) -> Self {
        let (mut gzip, mut identity, mut any) = (None, None, None);
        let lines = headers.get_all(ACCEPT_ENCODING).into_iter();
        for line in lines.filter_map(|line| line.to_str().ok()) {
            for (coding, weight) in line.split(',').filter_map(weighed) {
                let known = match coding.to_ascii_lowercase().as_str() {
                    "gzip" | "x-gzip" => &mut gzip,
                    "identity" => &mut identity,
                    "*" => &mut any,
                    _ => continue,
                };
                *known = (*known).max(Some(weight));
            }
        }
        let gzip = gzip.or(any).unwrap_or(0);
        match identity.or(any) {
            _ if gzip == 0 => Self::Identity,
            Some(0) => Self::GzipOnly,
            Some(identity) if identity > gzip => Self::Identity,
            Some(_) | None => Self::Gzip,
        }
    }
}

/// A coding with its weight in thousandths; `None` where that is no weight.
fn weighed(item: &str) -> Option<(&str, u16)> {
    let Some((coding, weight)) = item.split_once(';') else {
        return Some((item.trim(), 1000));
    };
    let weight = weight.trim();
    let weight = weight.strip_prefix("q=").or(weight.strip_prefix("Q="))?;
    let (whole, fraction) = weight.split_once('.').unwrap_or((weight, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{fraction:0<3}").parse().ok()?;
    let weight = match whole {
        "0" => thousandths,
        "1" if thousandths == 0 => 1000,
        _ => return None,
    };
    Some((coding.trim(), weight))
}

/// A body that is compressed while it flows.
struct Compressing {
    body: BodyStream<Body>,
    /// What has come of it and is not compressed yet.
    part: Bytes,
    /// `None` once the end is written.
    gzip: Option<Gzip>,
    unflushed: bool,
}

fn compressed(body: Body) -> impl Stream<Item = Result<Bytes, Failure>> + Send {
    let begun = Compressing {
        body: BodyStream::new(body),
        part: Bytes::new(),
        gzip: Some(Gzip::new()),
        unflushed: false,
    };
    stream::unfold(begun, async |mut compressing| {
        let next = compressing.next().await?;
        Some((next, compressing))
    })
}

impl Compressing {
    async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        // Behind its end or an error the body is not asked any more.
        self.gzip.as_ref()?;
        loop {
            while !self.part.is_empty() {
                let part = self.part.split_to(PART.min(self.part.len()));
                let mut gzip = self.gzip.take()?;
                let done = work::run(part.len(), move || {
                    gzip.write(&part);
                    gzip
                });
                let gzip = self.gzip.insert(done.await);
                self.unflushed = true;
                if gzip.ready() >= FRAME {
                    return Some(Ok(gzip.take()));
                }
            }
            let frame = match self.body.next().now_or_never() {
                Some(frame) => frame,
                // A client has all that has come, before more is waited for.
                None if self.unflushed => {
                    self.unflushed = false;
                    let gzip = self.gzip.as_mut()?;
                    gzip.flush();
                    return Some(Ok(gzip.take()));
                }
                None => self.body.next().await,
            };
            match frame {
                Some(Ok(frame)) => self.part = frame.into_data().unwrap_or_default(),
                Some(Err(failure)) => {
                    self.gzip = None;
                    return Some(Err(failure));
                }
                None => return Some(Ok(self.gzip.take()?.finish())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn accepted(lines: &[&'static str]) -> Accepted {
        let lines = lines.iter().map(|line| HeaderValue::from_static(line));
        let headers = lines.map(|line| (ACCEPT_ENCODING, line));
        let mut map = HeaderMap::new();
        headers.for_each(|(name, value)| {
            map.append(name, value);
        });
        Accepted::of(&map)
    }

    #[test]
    fn what_a_client_takes_is_told_by_its_weights() {
        for (line, expected) in [
            // Ruby, Go, python-requests, Puppetboard.
            ("gzip;q=1.0,deflate;q=0.6,identity;q=0.3", Accepted::Gzip),
            ("gzip", Accepted::Gzip),
            ("gzip, deflate, br", Accepted::Gzip),
            ("identity", Accepted::Identity),
            // RFC 9110, 12.5.3.
            ("", Accepted::Identity),
            ("compress, gzip", Accepted::Gzip),
            ("compress;q=0.5, gzip;q=1.0", Accepted::Gzip),
            ("gzip;q=1.0, identity; q=0.5, *;q=0", Accepted::Gzip),
            ("*", Accepted::Gzip),
            ("gzip;q=0", Accepted::Identity),
            ("gzip;q=0.000, *", Accepted::Identity),
            ("*;q=0", Accepted::Identity),
            ("br", Accepted::Identity),
            ("GZIP", Accepted::Gzip),
            ("x-gzip", Accepted::Gzip),
            ("gzip ; q=0.001", Accepted::Gzip),
            ("gzip;Q=0", Accepted::Identity),
            ("identity, gzip;q=0.9", Accepted::Identity),
            ("identity;q=0.9, gzip;q=0.9", Accepted::Gzip),
            ("identity;q=0, gzip", Accepted::GzipOnly),
            ("gzip, *;q=0", Accepted::GzipOnly),
            ("identity;q=0", Accepted::Identity),
            // What cannot be read counts as if it were not there.
            ("gzip;q=1.1", Accepted::Identity),
            ("gzip;q=2", Accepted::Identity),
            ("gzip;q=-1", Accepted::Identity),
            ("gzip;q=0.1234", Accepted::Identity),
            ("gzip;q=", Accepted::Identity),
            ("gzip;level=9", Accepted::Identity),
            ("gzip;q=x, *;q=0.5", Accepted::Gzip),
            (",,gzip,", Accepted::Gzip),
            ("gzipped", Accepted::Identity),
        ] {
            assert_eq!(accepted(&[line]), expected, "{line}");
        }
        assert_eq!(accepted(&[]), Accepted::Identity);
        assert_eq!(accepted(&["br", "gzip"]), Accepted::Gzip);
        assert_eq!(accepted(&["gzip;q=0", "gzip"]), Accepted::Gzip);
    }

    #[test]
    fn short_bodies_are_compressed_for_those_alone_who_take_no_others() {
        let compression = Compression { shortest: 100 };
        let lengths = [Some(0), Some(99), Some(100), None];
        let suits = |accepted| lengths.map(|length| compression.suits(accepted, length));
        assert_eq!(suits(Accepted::Identity), [false; 4]);
        assert_eq!(suits(Accepted::Gzip), [false, false, true, true]);
        assert_eq!(suits(Accepted::GzipOnly), [false, true, true, true]);
    }
}
