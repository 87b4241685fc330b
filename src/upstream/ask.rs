//! Asking: the one fan-out, and the one open question.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT,
};
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use pdbmux_core::merge::records::Scan;
use pdbmux_core::plan::{Ask, Sent};
use pdbmux_core::round::{BackendId, Part, Reply, effective_status};
use tokio::time::Instant;

use super::client::Limits;
use super::group::{Answered, Asking};
use super::places::{Place, Stay};
use super::room::{Hold, NoRoom, Room};
use super::{Failure, Incoming, Lack, Member, Upstream, Via};
use crate::config::Coding;
use crate::metrics::Outcome;
use crate::request;

pub(super) const AGENT: &str = concat!("pdbmux/", env!("CARGO_PKG_VERSION"));

/// Room made for a body before any of it came, whatever length it claims to have.
const FIRST_ROOM: usize = 1 << 20;

/// One backend's complete answer.
#[derive(Debug, Clone)]
pub struct Received {
    /// Its status; a redirect counts as 404.
    pub status: u16,
    /// Its content type.
    pub content_type: Option<HeaderValue>,
    /// Its `X-Records`.
    pub total: Option<u64>,
    /// Its body.
    pub body: Bytes,
    /// What was read of the body when it came, if anything was.
    pub scan: Option<Box<Scan>>,
}

/// One backend's part of a round.
#[derive(Debug)]
pub struct Asked {
    /// Who was asked.
    pub backend: BackendId,
    /// What came back.
    pub result: Result<Received, Failure>,
    /// What is left of its body, where that was not read to the end.
    pub rest: Option<Incoming>,
    /// How it came, as long as nothing has been learnt from that.
    pub via: Option<Via>,
}

impl Asked {
    /// A part that is whole.
    pub fn new(backend: BackendId, result: Result<Received, Failure>) -> Self {
        Self {
            backend,
            result,
            rest: None,
            via: None,
        }
    }

    /// Whether it answers the question.
    pub fn is_success(&self) -> bool {
        self.part().reply.is_some_and(|reply| reply.is_success())
    }

    /// What there was too little of here to have it, if that is why it is missing.
    pub fn lack(&self) -> Option<Lack> {
        self.result.as_ref().err().and_then(Failure::lack)
    }

    /// Forgets what was read of it: another fan-out would have read it otherwise.
    pub fn forget_scan(&mut self) {
        if let Ok(received) = &mut self.result {
            received.scan = None;
        }
    }

    /// The part as merges see it.
    pub fn part(&self) -> Part<'_> {
        let reply = self.result.as_ref().ok().map(|received| Reply {
            status: received.status,
            total: received.total,
            body: &received.body,
            scan: received.scan.as_deref(),
        });
        Part {
            backend: self.backend,
            reply,
        }
    }
}

impl Answered for (Received, Option<Incoming>) {
    fn status(&self) -> u16 {
        self.0.status
    }

    fn body(&self) -> Option<Bytes> {
        Some(self.0.body.clone())
    }
}

/// What came of asking one backend.
#[derive(Debug)]
pub enum Turn<T> {
    /// What was made of its success.
    Success(T),
    /// What it answered, which is none.
    Refused(Received),
}

impl<T> Answered for Turn<T> {
    fn status(&self) -> u16 {
        match self {
            Self::Success(_) => StatusCode::OK.as_u16(),
            Self::Refused(received) => received.status,
        }
    }

    fn body(&self) -> Option<Bytes> {
        match self {
            Self::Success(_) => None,
            Self::Refused(received) => Some(received.body.clone()),
        }
    }
}

impl Upstream {
    /// Asks several backends at once and waits for all of them; the parts are in the order of
    /// `asks`. Dropping the future cancels what is under way.
    pub async fn fan_out(&self, asks: &[(BackendId, Ask)]) -> Vec<Asked> {
        self.fan_out_within(asks, Room::unbounded()).await
    }

    /// The same, but where the answers are more than there is room for, what is left of them is not
    /// waited for.
    pub async fn fan_out_within(&self, asks: &[(BackendId, Ask)], room: Room) -> Vec<Asked> {
        self.fan_out_to(asks, room, std::future::ready).await
    }

    /// The same with `take` making something of each part as soon as it is there, while others may
    /// still be waited for.
    pub async fn fan_out_to<T, R>(
        &self,
        asks: &[(BackendId, Ask)],
        room: Room,
        take: impl Fn(Asked) -> R,
    ) -> Vec<T>
    where
        R: Future<Output = T>,
    {
        let mut reserved = self.reserve(asks, &room).await.into_iter();
        join_all(asks.iter().map(|(backend, ask)| {
            let asking = Asking {
                reserved: reserved.next(),
                ..Asking::at(room.stay())
            };
            self.ask_part(*backend, ask, asking, &room).then(&take)
        }))
        .await
    }

    /// Asks one backend for its part of a round.
    pub(super) async fn ask_part(
        &self,
        backend: BackendId,
        ask: &Ask,
        asking: Asking,
        room: &Room,
    ) -> Asked {
        let read = |response| self.receive_within(response, room);
        let (via, answered) = self.ask_for(backend, ask, asking, read).await;
        let (result, rest) = match answered {
            Ok((received, rest)) => (Ok(received), rest),
            Err(failure) => (Err(failure), None),
        };
        Asked {
            backend,
            result,
            rest,
            via,
        }
    }

    /// Waits for what is left of the answers to a round, which are those to `asks`.
    pub async fn receive_rest(&self, round: &mut [Asked], asks: &[Ask]) {
        let unfinished = round.iter_mut().zip(asks);
        let unfinished = unfinished.filter(|(asked, _)| asked.rest.is_some());
        join_all(unfinished.map(async |(asked, ask)| {
            let (Some(rest), Ok(received)) = (asked.rest.take(), &mut asked.result) else {
                return;
            };
            let beginning = std::mem::take(&mut received.body);
            match self.fill(beginning, rest, &Room::unbounded()).await {
                Ok((body, _)) => received.body = body,
                Err(failure) => self.replace_failed(asked, ask, failure).await,
            }
        }))
        .await;
    }

    /// Waits for the rest of an answer.
    pub async fn receive(&self, response: Response<Incoming>) -> Result<Received, Failure> {
        let whole = self
            .receive_within(response, &Room::unconditional())
            .await?;
        Ok(whole.0)
    }

    async fn receive_within(
        &self,
        response: Response<Incoming>,
        room: &Room,
    ) -> Result<(Received, Option<Incoming>), Failure> {
        let (head, body) = response.into_parts();
        // What is no success is small, or of no use.
        let unconditional = Room::unconditional();
        let room = if head.status.is_success() {
            room
        } else {
            &unconditional
        };
        let (body, rest) = self.collect(body, room).await?;
        let received = Received {
            status: head.status.as_u16(),
            content_type: head.headers.get(CONTENT_TYPE).cloned(),
            total: total(&head.headers),
            body,
            scan: None,
        };
        Ok((received, rest))
    }

    /// Asks one backend and has `take` make something of its success. Of a group another member is
    /// asked as long as that fails.
    pub async fn ask_one<T, R>(
        &self,
        backend: BackendId,
        ask: &Ask,
        take: impl Fn(Response<Incoming>) -> R,
    ) -> (Option<Via>, Result<Turn<T>, Failure>)
    where
        R: Future<Output = Result<T, Failure>>,
    {
        self.ask_staying(backend, ask, Stay::Long, take).await
    }

    /// The same; `take` stays for so long.
    pub(super) async fn ask_staying<T, R>(
        &self,
        backend: BackendId,
        ask: &Ask,
        stay: Stay,
        take: impl Fn(Response<Incoming>) -> R,
    ) -> (Option<Via>, Result<Turn<T>, Failure>)
    where
        R: Future<Output = Result<T, Failure>>,
    {
        let take = &take;
        let read = |response: Response<Incoming>| async move {
            if response.status().is_success() {
                take(response).await.map(Turn::Success)
            } else {
                self.receive(response).await.map(Turn::Refused)
            }
        };
        self.ask_for(backend, ask, Asking::at(stay), read).await
    }

    /// Asks one PuppetDB, which has `place` for it, and waits for the head of its answer.
    pub(super) async fn begin(
        &self,
        member: &Member,
        sent: &Sent,
        place: Place,
        since: Instant,
    ) -> Result<Response<Incoming>, Failure> {
        // Apart from the wait for a place.
        let (mut question, began) = (self.asks(member, sent), Instant::now());
        let limits = Limits::since(since, member.timeout);
        let mut response = match self.send(member, sent, limits, question.span()).await {
            Ok(response) => response,
            Err(failure) => {
                question.ends(failure.outcome());
                return Err(failure);
            }
        };
        question.head(response.status().as_u16(), began.elapsed());
        response.body_mut().place = Some(place);
        let status = effective_status(response.status().as_u16());
        response
            .body_mut()
            .counted(question, Outcome::of_status(status));
        *response.status_mut() = status
            .try_into()
            .map_err(|error| Failure::Unsendable(http::Error::from(error)))?;
        Ok(response)
    }

    /// Sends a request and waits for the head of its answer, within `limits`. `span` is that of the
    /// question, if it is recorded.
    ///
    /// The headers are pdbmux's own: a client's `Accept` or `Accept-Encoding` would change what
    /// comes back (trap T62).
    pub(super) async fn send(
        &self,
        member: &Member,
        sent: &Sent,
        limits: Limits,
        span: Option<u64>,
    ) -> Result<Response<Incoming>, Failure> {
        let Member {
            url,
            connections,
            credentials,
            coding,
            ..
        } = member;
        let target = url.target(&sent.target).map_err(Failure::Unsendable)?;
        let request = Request::builder()
            .uri(target)
            .header(HOST, url.host_and_port())
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, AGENT);
        let request = match coding {
            Coding::Identity => request,
            Coding::Gzip => request.header(ACCEPT_ENCODING, "gzip"),
        };
        let request = match sent.body.clone() {
            None => request.body(Full::default()),
            Some(body) => request
                .method(Method::POST)
                .header(CONTENT_TYPE, "application/json")
                .body(Full::from(body)),
        };
        let mut request = request.map_err(Failure::Unsendable)?;
        request::tell(request.headers_mut(), span);
        let told = credentials.add_to(request.headers_mut());
        told.map_err(Failure::Credentials)?;
        let answered = connections.send(url, request, limits).await;
        let answered = answered.map_err(|failure| member.explain(failure))?;
        Incoming::of(answered, limits.silence)
    }

    /// Waits for the next bytes of a body; `None` at its end.
    pub async fn next_bytes(&self, body: &mut Incoming) -> Option<Result<Bytes, Failure>> {
        loop {
            match body.frame().await? {
                Err(failure) => return Some(Err(failure)),
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
            }
        }
    }

    /// The body, or as much of it as there is room for and what is left of it.
    async fn collect(
        &self,
        mut body: Incoming,
        room: &Room,
    ) -> Result<(Bytes, Option<Incoming>), Failure> {
        let max = self.max_body;
        let promised = body.size_hint().exact();
        let fits =
            promised.is_none_or(|length| room.take(usize::try_from(length).unwrap_or(usize::MAX)));
        if fits && promised.is_some_and(|length| length > max as u64) {
            return Err(body.given_up(Failure::TooLong(max)));
        }
        let Some(first) = self.next_bytes(&mut body).await.transpose()? else {
            return Ok((Bytes::new(), None));
        };
        if !fits {
            return Ok((first, Some(body)));
        }
        if promised == Some(first.len() as u64) {
            return Ok((first, None));
        }
        self.fill(first, body, room).await
    }

    /// The body that begins with `beginning`, or as much of it as there is room for and what is left.
    async fn fill(
        &self,
        beginning: Bytes,
        mut body: Incoming,
        room: &Room,
    ) -> Result<(Bytes, Option<Incoming>), Failure> {
        let (timeout, max_body) = (body.timeout, self.max_body);
        let mut hold = Hold::new(&self.memory, timeout);
        let mut whole = Vec::new();
        let mut next = Some(beginning);
        while let Some(bytes) = next {
            if whole.len() + bytes.len() > max_body {
                return Err(body.given_up(Failure::TooLong(max_body)));
            }
            let length = whole.len() + bytes.len();
            let more = body.size_hint();
            let promised = usize::try_from(more.lower()).unwrap_or(usize::MAX);
            // What is no longer than it says was taken room for when that was read.
            let mut fits = more.exact().is_some() || room.take(bytes.len());
            match hold.grow(room, length, promised).await {
                Ok(()) => {}
                Err(NoRoom::Streams) => fits = false,
                Err(NoRoom::Refused) => return Err(body.given_up(Failure::NoRoom(timeout))),
            }
            if whole.is_empty() {
                whole.reserve(length + promised.min(FIRST_ROOM));
            }
            whole.extend_from_slice(&bytes);
            if !fits {
                return Ok((hold.keep(whole), Some(body)));
            }
            next = self.next_bytes(&mut body).await.transpose()?;
        }
        Ok((hold.keep(whole), None))
    }
}

fn total(headers: &HeaderMap) -> Option<u64> {
    headers.get("x-records")?.to_str().ok()?.trim().parse().ok()
}
