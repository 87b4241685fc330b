//! The other end of the queue of spans: batches, and a collector that may be away.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::encode::Encoder;
use crate::config::OtlpConfig;
use crate::metrics::{Fate, Metrics};
use crate::spans::{Item, Sink, Span};
use crate::upstream::{Apart, Failure};

/// Spans that wait at most. Each takes about 1 KiB.
const QUEUE: usize = 4096;
/// Spans that are sent at one time at most.
const BATCH: usize = 512;
/// How long spans wait for others to be sent with, and how long after it was tried in vain they are
/// sent again.
const PAUSE: Duration = Duration::from_secs(2);
/// How long the collector has to take a batch.
const WAIT: Duration = Duration::from_secs(10);

/// Where spans go that a configuration sends somewhere, if it does. They are sent by a task of their
/// own, which ends when nobody can send any more.
pub(crate) fn start(config: &OtlpConfig, metrics: &Arc<Metrics>) -> Option<Sink> {
    let url = config.endpoint.as_ref()?;
    let (queue, items) = mpsc::channel(QUEUE);
    let export = Export {
        collector: Apart::new(url, &config.access, WAIT),
        endpoint: url.to_string(),
        encoder: Encoder::new(),
        metrics: Arc::clone(metrics),
        standing: Standing::Taking,
    };
    tokio::spawn(export.run(items));
    metrics.spans(Fate::Exported, 0);
    Some(Sink::new(queue, config.sample, metrics))
}

/// What sends spans.
struct Export {
    collector: Apart,
    endpoint: String,
    encoder: Encoder,
    metrics: Arc<Metrics>,
    standing: Standing,
}

/// Whether the last batch was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Taking,
    Failing,
}

/// Why a batch was not taken.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// It may be taken later.
    #[error("{0}")]
    Away(Failure),
    /// It would never be.
    #[error("it answers with status {0}")]
    Refuses(StatusCode),
}

impl Export {
    async fn run(mut self, mut items: Receiver<Item>) {
        while let Some(first) = items.recv().await {
            let (batch, waits) = gather(first, &mut items).await;
            if !batch.is_empty() {
                self.deliver(batch, &items).await;
            }
            for done in waits {
                // Whoever waited may have left.
                let _ = done.send(());
            }
        }
    }

    /// Sends a batch until it is taken or refused. Meanwhile those that come fill the queue.
    async fn deliver(&mut self, batch: Vec<Span>, items: &Receiver<Item>) {
        let (body, spans) = (self.encoder.encode(&batch), batch.len() as u64);
        drop(batch);
        loop {
            match self.post(body.clone()).await {
                Ok(rejected) => {
                    let rejected = rejected.min(spans);
                    self.metrics.spans(Fate::Exported, spans - rejected);
                    self.metrics.spans(Fate::Refused, rejected);
                    self.recovers();
                    return;
                }
                Err(trouble) => {
                    self.fails(&trouble);
                    let fate = match trouble {
                        Trouble::Refuses(_) => Fate::Refused,
                        Trouble::Away(_) if items.is_closed() => Fate::Unsent,
                        Trouble::Away(_) => {
                            sleep(PAUSE).await;
                            continue;
                        }
                    };
                    self.metrics.spans(fate, spans);
                    return;
                }
            }
        }
    }

    /// How many spans of a batch were rejected by the collector that took it.
    async fn post(&self, body: Bytes) -> Result<u64, Trouble> {
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        let posted = self.collector.post("/v1/traces", protobuf, body).await;
        let (status, answer) = posted.map_err(Trouble::Away)?;
        match status.as_u16() {
            200..300 => Ok(rejected(answer)),
            // Those that the protocol calls retryable.
            code @ (429 | 502..=504) => Err(Trouble::Away(Failure::Status(code))),
            _ => Err(Trouble::Refuses(status)),
        }
    }

    fn fails(&mut self, why: &Trouble) {
        if self.standing == Standing::Taking {
            let collector = &self.endpoint;
            tracing::warn!(
                collector,
                %why,
                "the collector takes no spans: {QUEUE} may wait, those beyond are dropped"
            );
        }
        self.standing = Standing::Failing;
    }

    fn recovers(&mut self) {
        if self.standing == Standing::Failing {
            tracing::info!(collector = self.endpoint, "the collector takes spans again");
        }
        self.standing = Standing::Taking;
    }
}

/// The first item with those that come soon after it, and who waits for them to be sent.
async fn gather(first: Item, items: &mut Receiver<Item>) -> (Vec<Span>, Vec<oneshot::Sender<()>>) {
    let (mut batch, mut waits) = (Vec::new(), Vec::new());
    let until = Instant::now() + PAUSE;
    let mut next = Some(first);
    while let Some(item) = next {
        match item {
            Item::Span(span) => batch.push(span),
            Item::Flush(done) => waits.push(done),
        }
        if batch.len() == BATCH || !waits.is_empty() {
            break;
        }
        next = timeout_at(until, items.recv()).await.unwrap_or_default();
    }
    (batch, waits)
}

/// How many spans were not taken, of an answer that says so.
fn rejected(answer: Bytes) -> u64 {
    let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
    let rejected = answer.partial_success.unwrap_or_default().rejected_spans;
    u64::try_from(rejected).unwrap_or_default()
}
