//! Spans as they are recorded. To record is to put what is known anyway into a queue: what is made of
//! it is made at the other end.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

use http::header::{HOST, HeaderMap, HeaderValue, USER_AGENT};
use pdbmux_core::plan::Sent;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::config::{BaseUrl, Ratio};
use crate::metrics::{Fate, Metrics, Outcome, Route, Story};
use crate::request::{TraceContext, unique};

/// Where spans go: a queue that never makes anybody wait.
#[derive(Debug, Clone)]
pub(crate) struct Sink {
    queue: mpsc::Sender<Item>,
    sample: Option<Ratio>,
    metrics: Arc<Metrics>,
}

/// What goes through the queue.
#[derive(Debug)]
pub(crate) enum Item {
    /// A span that has ended.
    Span(Span),
    /// Somebody waits until all before it are sent.
    Flush(oneshot::Sender<()>),
}

/// A span that has ended.
#[derive(Debug)]
pub(crate) enum Span {
    /// A request of a client.
    Served(Box<Served>),
    /// A question to a backend.
    Asked(Box<Question>),
}

/// Which span it is, of which trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) trace: u128,
    pub(crate) span: u64,
    /// The span that it is a part of.
    pub(crate) parent: Option<u64>,
}

/// A request of a client.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) ids: Ids,
    pub(crate) began: SystemTime,
    pub(crate) took: Duration,
    /// The row of the table of routes.
    pub(crate) route: &'static str,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) agent: Option<HeaderValue>,
    /// What its merges took.
    pub(crate) merged: Duration,
    pub(crate) story: Arc<Story>,
}

/// A question to a backend.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) ids: Ids,
    pub(crate) began: SystemTime,
    pub(crate) took: Duration,
    pub(crate) backend: String,
    /// The one of a group.
    pub(crate) member: Option<String>,
    pub(crate) url: BaseUrl,
    pub(crate) sent: Sent,
    pub(crate) status: Option<u16>,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) received: u64,
    pub(crate) outcome: Outcome,
}

impl Sink {
    /// Spans go into `queue`; of the requests whose clients say nothing, those of `sample` are recorded.
    pub(crate) fn new(
        queue: mpsc::Sender<Item>,
        sample: Option<Ratio>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        Self {
            queue,
            sample,
            metrics: Arc::clone(metrics),
        }
    }

    /// The trace of a request with these headers, whose client told one or not, and its span if it is
    /// recorded.
    pub(crate) fn record(
        &self,
        told: Option<TraceContext>,
        headers: &HeaderMap,
    ) -> (Option<TraceContext>, Option<Recording>) {
        let trace = told.unwrap_or_else(|| self.begin());
        let recording = trace.is_sampled().then(|| Recording {
            sink: self.clone(),
            ids: Ids {
                trace: trace.trace,
                span: unique(),
                parent: trace.parent,
            },
            began: SystemTime::now(),
            host: headers.get(HOST).cloned(),
            agent: headers.get(USER_AGENT).cloned(),
            merged: AtomicU64::new(0),
        });
        (Some(trace), recording)
    }

    fn begin(&self) -> TraceContext {
        let (high, low) = (unique(), unique());
        let is_sampled = self.sample.is_none_or(|part| low <= part.of_numbers());
        TraceContext::begun(u128::from(high) << 64 | u128::from(low), is_sampled)
    }

    /// Waits until all spans are sent that have ended before.
    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.queue.send(Item::Flush(done)).await.is_ok() {
            // That nobody is there any more is an end too.
            let _ = wait.await;
        }
    }

    fn send(&self, span: Span) {
        if self.queue.try_send(Item::Span(span)).is_err() {
            self.metrics.spans(Fate::Dropped, 1);
        }
    }
}

/// The span of a request that is recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    sink: Sink,
    ids: Ids,
    began: SystemTime,
    host: Option<HeaderValue>,
    agent: Option<HeaderValue>,
    /// Nanoseconds.
    merged: AtomicU64,
}

impl Recording {
    /// Takes in a merge that took so long.
    pub(crate) fn merged(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.merged.fetch_add(nanos, Relaxed);
    }

    /// Ends it: what became of the request, where, and how long it took.
    pub(crate) fn served(&self, story: &Arc<Story>, route: &Route, took: Duration) {
        self.sink.send(Span::Served(Box::new(Served {
            ids: self.ids,
            began: self.began,
            took,
            route: route.label(),
            host: self.host.clone(),
            agent: self.agent.clone(),
            merged: Duration::from_nanos(self.merged.load(Relaxed)),
            story: Arc::clone(story),
        })));
    }

    /// Begins the span of a question to a backend, or to the `member` of a group, that is at `url`.
    pub(crate) fn asks(
        &self,
        backend: &str,
        member: Option<&str>,
        url: &BaseUrl,
        sent: &Sent,
    ) -> Asked {
        let question = Question {
            ids: Ids {
                trace: self.ids.trace,
                span: unique(),
                parent: Some(self.ids.span),
            },
            began: SystemTime::now(),
            took: Duration::ZERO,
            backend: backend.to_owned(),
            member: member.map(str::to_owned),
            url: url.clone(),
            sent: sent.clone(),
            status: None,
            first_byte: None,
            received: 0,
            outcome: Outcome::Abandoned,
        };
        Asked {
            sink: self.sink.clone(),
            since: Instant::now(),
            id: question.ids.span,
            question: Some(Box::new(question)),
        }
    }
}

/// The span of a question under way. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Asked {
    sink: Sink,
    since: Instant,
    id: u64,
    /// Until it is sent.
    question: Option<Box<Question>>,
}

impl Asked {
    /// Its id.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The head of the answer has come, with this status.
    pub(crate) fn head(&mut self, status: u16, after: Duration) {
        if let Some(question) = &mut self.question {
            question.status = Some(status);
            question.first_byte = Some(after);
        }
    }

    /// More of the answer has come.
    pub(crate) fn received(&mut self, bytes: usize) {
        if let Some(question) = &mut self.question {
            question.received += bytes as u64;
        }
    }

    /// What has come of it.
    pub(crate) fn ends(&mut self, outcome: Outcome) {
        if let Some(question) = &mut self.question {
            question.outcome = outcome;
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(mut question) = self.question.take() {
            question.took = self.since.elapsed();
            self.sink.send(Span::Asked(question));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Format, Sample};

    #[tokio::test]
    async fn what_the_queue_has_no_room_for_is_dropped_and_counted() {
        let (queue, mut items) = mpsc::channel(1);
        let metrics = Metrics::new();
        let sink = Sink::new(queue, None, &metrics);
        let (_, recording) = sink.record(None, &HeaderMap::new());
        let recording = recording.unwrap();
        let (url, sent) = (
            "http://h".parse().unwrap(),
            Sent {
                target: "/".to_owned(),
                body: None,
            },
        );
        for _ in 0..3 {
            drop(recording.asks("pdb-a", None, &url, &sent));
        }
        let sample = Sample {
            backends: Vec::new(),
            states: Vec::new(),
            versions: Vec::new(),
            certificates: Vec::new(),
            cache: None,
            memory: None,
        };
        let text = metrics.text(&sample, Format::Text).unwrap();
        assert!(
            text.contains("pdbmux_spans_total{result=\"dropped\"} 2\n"),
            "{text}"
        );
        let Some(Item::Span(Span::Asked(question))) = items.recv().await else {
            panic!("there is no span");
        };
        assert_eq!(question.ids.parent, Some(recording.ids.span));
        assert_eq!(question.outcome, Outcome::Abandoned);
    }

    #[test]
    fn about_as_many_traces_are_recorded_as_the_ratio_says() {
        let metrics = Metrics::new();
        for (ratio, expected) in [("0", 0..=0), ("1", 1_000..=1_000), ("0.25", 150..=350)] {
            let (queue, _) = mpsc::channel(1);
            let sink = Sink::new(queue, Some(ratio.parse().unwrap()), &metrics);
            let recorded = (0..1_000).filter(|_| sink.begin().is_sampled()).count();
            assert!(expected.contains(&recorded), "{ratio}: {recorded}");
        }
    }
}
