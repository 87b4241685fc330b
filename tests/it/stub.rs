//! Scripted backends.
//!
//! A stub answers each target as the test told it to, down to the bytes on the wire. What nobody
//! scripted is a fault of the test or of pdbmux, and dropping the stub says so.

mod answer;
mod front;

use std::cell::Cell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use pdbmux::config::Protocol;

use crate::client::{in_time, split_head};

pub(crate) use answer::{Answer, Gate};
use answer::{Ended, perform};

/// What pdbmux asks every backend to learn whose data is newest.
pub(crate) const FRESHNESS: &str = "/pdb/query/v4/nodes?query=%5B%22extract%22%2C%5B%22certname%22%2C%22report_timestamp%22%5D%2C%5B%22%3D%22%2C%22node_state%22%2C%22any%22%5D%5D&order_by=%5B%7B%22field%22%3A%22certname%22%7D%5D";

/// A request as it stood on the wire.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path and query, not decoded.
    pub(crate) target: String,
    /// In their order, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// The body as it came.
    #[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "all else is text"))]
    pub(crate) bytes: Vec<u8>,
}

impl Seen {
    /// The decoded value of a parameter.
    pub(crate) fn param(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        pdbmux_core::params::Params::read(query)
            .unwrap()
            .get(name)
            .map(str::to_owned)
    }
}

/// What a target is answered with: always the same, or made of the request.
type Reply = Arc<dyn Fn(&Seen) -> Answer + Send + Sync>;

/// A backend that does what it is told.
pub(crate) struct Stub {
    address: SocketAddr,
    /// Where it is asked by HTTP/2, if it is, and how many connections there have been.
    front: Option<(SocketAddr, Arc<AtomicUsize>)>,
    script: Arc<Script>,
    /// Holds the port of a stub that refuses connections; a bound socket that does not listen.
    _closed: Option<TcpSocket>,
    /// Ends the stub's connections with it.
    serving: JoinSet<()>,
}

struct Script {
    state: Mutex<State>,
    connections: AtomicUsize,
    /// Requests seen and answers that the other side hung up on.
    counts: watch::Sender<(usize, usize)>,
}

#[derive(Default)]
struct State {
    answers: HashMap<String, Reply>,
    otherwise: Option<Reply>,
    seen: Vec<Seen>,
    /// Requests under way, and the most there were at one time.
    under_way: usize,
    most_under_way: usize,
    faults: Vec<String>,
}

impl Script {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and finds its answer: that of the whole target, else of its path.
    fn take(&self, seen: Seen) -> Answer {
        let answer = {
            let mut state = self.state();
            let path = seen.target.split('?').next().unwrap_or_default();
            let answers = &state.answers;
            let answer = answers
                .get(&seen.target)
                .or_else(|| answers.get(path))
                .or(state.otherwise.as_ref())
                .map(|reply| reply(&seen));
            let answer = answer.unwrap_or_else(|| {
                let fault = format!("nobody scripted {} {}", seen.method, seen.target);
                state.faults.push(fault);
                Answer::status(599, "not scripted")
            });
            state.seen.push(seen);
            state.under_way += 1;
            state.most_under_way = state.most_under_way.max(state.under_way);
            answer
        };
        self.counts.send_modify(|(seen, _)| *seen += 1);
        answer
    }
}

impl Stub {
    /// A stub that listens on a free port of loopback and knows no answer yet.
    pub(crate) async fn start() -> Self {
        Self::speaking(USUAL.get()).await
    }

    /// The same that is asked by this protocol.
    pub(crate) async fn speaking(protocol: Protocol) -> Self {
        let mut stub = Self::of_http1().await;
        if protocol == Protocol::Http2 {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (address, count) = (listener.local_addr().unwrap(), Arc::default());
            let served = front::serve(listener, stub.address, Arc::clone(&count));
            stub.serving.spawn(served);
            stub.front = Some((address, count));
        }
        stub
    }

    async fn of_http1() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Self::script();
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, Arc::clone(&script)));
        Self {
            address,
            front: None,
            script,
            _closed: None,
            serving,
        }
    }

    /// A backend that is not there: connections to its port are refused.
    pub(crate) fn closed() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self {
            address: socket.local_addr().unwrap(),
            front: None,
            script: Self::script(),
            _closed: Some(socket),
            serving: JoinSet::new(),
        }
    }

    fn script() -> Arc<Script> {
        Arc::new(Script {
            state: Mutex::default(),
            connections: AtomicUsize::new(0),
            counts: watch::Sender::default(),
        })
    }

    /// Answers `target` so from now on: path and query, or a path whatever its query.
    pub(crate) fn on(&self, target: &str, answer: impl Into<Answer>) -> &Self {
        let answer = answer.into();
        self.makes(target, move |_| answer.clone())
    }

    /// Makes the answers to `target` of the requests for it.
    pub(crate) fn makes(
        &self,
        target: &str,
        reply: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> &Self {
        let answers = &mut self.script.state().answers;
        answers.insert(target.to_owned(), Arc::new(reply));
        self
    }

    /// Answers everything so that nothing else is scripted for.
    pub(crate) fn otherwise(&self, answer: impl Into<Answer>) -> &Self {
        let answer = answer.into();
        self.script.state().otherwise = Some(Arc::new(move |_: &Seen| answer.clone()));
        self
    }

    /// Tells when each node's newest report ended, as the freshness map asks; `""` for never.
    pub(crate) fn fresh(&self, nodes: &[(&str, &str)]) -> &Self {
        self.on(FRESHNESS, Answer::json(nodes_body(nodes)))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        match self.protocol() {
            Protocol::Http1 => format!("http://{}", self.address),
            Protocol::Http2 => format!("http://{}", self.front()),
        }
    }

    /// Where it is asked by HTTP/2.
    pub(crate) fn front(&self) -> SocketAddr {
        self.front.as_ref().unwrap().0
    }

    /// What it is asked by.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.front {
            Some(_) => Protocol::Http2,
            None => Protocol::Http1,
        }
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        let fronted = self.front.as_ref().map(|(_, count)| &**count);
        let count = fronted.unwrap_or(&self.script.connections);
        count.load(Ordering::Relaxed)
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.script.state().seen.clone()
    }

    /// The targets of all requests so far.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.target).collect()
    }

    /// The targets so far that are not the freshness map's.
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut targets = self.targets();
        targets.retain(|target| target != FRESHNESS);
        targets
    }

    /// The only request for anything but freshness.
    pub(crate) fn only(&self) -> Seen {
        let mut seen = self.seen();
        seen.retain(|seen| seen.target != FRESHNESS);
        assert_eq!(seen.len(), 1, "requests seen: {seen:#?}");
        seen.remove(0)
    }

    /// How often the freshness map was asked for.
    pub(crate) fn freshness_asks(&self) -> usize {
        self.targets().iter().filter(|t| *t == FRESHNESS).count()
    }

    /// The most requests that were under way at one time.
    pub(crate) fn most_under_way(&self) -> usize {
        self.script.state().most_under_way
    }

    /// Waits until this many requests have come.
    pub(crate) async fn until_seen(&self, requests: usize) {
        self.until(|(seen, _)| seen >= requests).await;
    }

    /// Waits until the other side has closed a connection on which an answer was under way.
    pub(crate) async fn until_hung_up_on(&self) {
        self.until(|(_, hung_up)| hung_up > 0).await;
    }

    async fn until(&self, reached: impl Fn((usize, usize)) -> bool) {
        let mut counts = self.script.counts.subscribe();
        in_time(counts.wait_for(|counts| reached(*counts)))
            .await
            .unwrap();
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        let faults = std::mem::take(&mut self.script.state().faults);
        if !std::thread::panicking() {
            assert!(faults.is_empty(), "a stub met faults: {faults:#?}");
        }
    }
}

thread_local! {
    /// What stubs speak of which a test says nothing.
    static USUAL: Cell<Protocol> = const { Cell::new(Protocol::Http1) };
}

/// Runs a test of this thread with stubs that speak this, as far as it says nothing else.
pub(crate) fn all_speaking(protocol: Protocol, test: impl FnOnce()) {
    USUAL.set(protocol);
    test();
    USUAL.set(Protocol::Http1);
}

/// A `/nodes` body of these certnames and report timestamps.
pub(crate) fn nodes_body(nodes: &[(&str, &str)]) -> String {
    let records: Vec<_> = nodes
        .iter()
        .map(|(certname, reported)| {
            let reported = (!reported.is_empty()).then_some(reported);
            serde_json::json!({"certname": certname, "report_timestamp": reported})
        })
        .collect();
    serde_json::to_string(&records).unwrap()
}

async fn accept(listener: TcpListener, script: Arc<Script>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        script.connections.fetch_add(1, Ordering::Relaxed);
        connections.spawn(serve(stream, Arc::clone(&script)));
    }
}

/// Puts a panic among the faults: a task that ends so is not heard otherwise.
struct Alarm(Arc<Script>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().faults.push("it panicked".to_owned());
        }
    }
}

/// A request under way, until it is dropped.
struct UnderWay<'s>(&'s Script);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.state().under_way -= 1;
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>) {
    let _alarm = Alarm(Arc::clone(&script));
    stream.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    loop {
        let head = loop {
            if let Some((head, rest)) = split_head(&buffer) {
                let head = head.to_owned();
                buffer = rest.to_vec();
                break head;
            }
            match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        };
        let (first, headers) = head;
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, value)| value.parse().unwrap());
        while buffer.len() < length {
            match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        let body: Vec<_> = buffer.drain(..length).collect();
        let mut words = first.split(' ').map(str::to_owned);
        let seen = Seen {
            method: words.next().unwrap(),
            target: words.next().unwrap(),
            headers,
            body: String::from_utf8_lossy(&body).into_owned(),
            bytes: body,
        };
        let answer = script.take(seen);
        let under_way = UnderWay(&script);
        match perform(&answer, &mut stream, &mut buffer, move || drop(under_way)).await {
            Ended::Whole => {}
            Ended::Closed => return,
            Ended::HungUpOn => {
                script.counts.send_modify(|(_, hung_up)| *hung_up += 1);
                return;
            }
        }
    }
}
