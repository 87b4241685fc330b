//! Spans as OTLP writes them, with attributes by the semantic conventions of HTTP and of pdbmux's own.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderValue;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{self as otlp, ResourceSpans, ScopeSpans, Status};
use pdbmux_core::route::Route;
use prost::Message as _;

use crate::metrics::{LEFT, Outcome, without_tokens};
use crate::request::unique;
use crate::spans::{Ids, Question, Served, Span};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Flags of a span: whether it is known that its parent is in another process, and that it is.
const PARENT_IS_KNOWN: u32 = 0x100;
const PARENT_IS_REMOTE: u32 = 0x200;
const SAMPLED: u32 = 1;

/// Writes spans of this process.
#[derive(Debug)]
pub(super) struct Encoder {
    resource: Resource,
}

impl Encoder {
    pub(super) fn new() -> Self {
        let mut of_process = Attributes::default();
        of_process.text("service.name", "pdbmux");
        of_process.text("service.version", VERSION);
        of_process.text("service.instance.id", format!("{:016x}", unique()));
        Self {
            resource: Resource {
                attributes: of_process.0,
                ..Resource::default()
            },
        }
    }

    /// The body of a request that tells of these.
    pub(super) fn encode(&self, spans: &[Span]) -> Bytes {
        let spans = spans.iter().map(|span| match span {
            Span::Served(served) => of_request(served),
            Span::Asked(question) => of_question(question),
        });
        let of_scope = ScopeSpans {
            scope: Some(InstrumentationScope {
                name: "pdbmux".to_owned(),
                version: VERSION.to_owned(),
                ..InstrumentationScope::default()
            }),
            spans: spans.collect(),
            ..ScopeSpans::default()
        };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![of_scope],
                ..ResourceSpans::default()
            }],
        };
        request.encode_to_vec().into()
    }
}

fn of_request(served: &Served) -> otlp::Span {
    let story = &*served.story;
    let mut told = Attributes::default();
    let method = told.method(&story.method);
    let (path, query) = match story.target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (&*story.target, None),
    };
    told.text("url.path", path);
    told.perhaps("url.query", query);
    let route = served.route.starts_with('/').then_some(served.route);
    told.perhaps("http.route", route);
    told.perhaps("client.address", Some(&*story.client));
    told.perhaps("user_agent.original", served.agent.as_ref().and_then(text));
    if let Some(host) = served.host.as_ref().and_then(text) {
        let authority: Option<http::uri::Authority> = host.parse().ok();
        if let Some(authority) = authority {
            told.text("server.address", authority.host());
            told.number("server.port", authority.port_u16().map(u64::from));
        }
    }
    let has_failed = match story.status {
        LEFT => false,
        status => {
            told.number("http.response.status_code", Some(u64::from(status)));
            status >= 500
        }
    };
    if has_failed {
        told.text("error.type", story.status.to_string());
    }
    told.number("http.response.body.size", Some(story.bytes));
    told.perhaps("pdbmux.cache", story.cache);
    told.perhaps("pdbmux.backends", story.backends.as_deref());
    told.flag("pdbmux.partial", !story.missing.is_empty());
    told.list("pdbmux.missing", &story.missing);
    told.flag("pdbmux.cut", story.cut);
    if !served.merged.is_zero() {
        told.seconds("pdbmux.merge.duration", served.merged);
    }
    told.perhaps("pdbmux.request_id", story.request_id.as_deref());
    told.perhaps("user.name", story.user.as_deref());
    let name = name(method, route);
    let span = span(served.ids, served.began, served.took, name, told);
    let parent = served.ids.parent.map_or(0, |_| PARENT_IS_REMOTE);
    otlp::Span {
        kind: SpanKind::Server.into(),
        flags: span.flags | parent,
        status: status(has_failed),
        ..span
    }
}

fn of_question(question: &Question) -> otlp::Span {
    let Question { url, sent, .. } = question;
    let mut told = Attributes::default();
    let method = told.method(match sent.body {
        Some(_) => "POST",
        None => "GET",
    });
    told.text("url.full", format!("{url}{}", without_tokens(&sent.target)));
    let path = sent.target.split('?').next().unwrap_or_default();
    let route = Route::find(path).ok().flatten().map(|route| route.row.path);
    told.perhaps("url.template", route);
    told.text("server.address", url.authority().host());
    told.number("server.port", Some(u64::from(url.port())));
    let code = question.status.map(u64::from);
    told.number("http.response.status_code", code);
    told.number("http.response.body.size", Some(question.received));
    let has_failed = match question.outcome {
        Outcome::Ok | Outcome::Abandoned => false,
        Outcome::Refused | Outcome::Error => {
            told.perhaps("error.type", code.map(|code| code.to_string()).as_deref());
            true
        }
        other => {
            told.text("error.type", other.word());
            true
        }
    };
    told.text("pdbmux.outcome", question.outcome.word());
    told.text("pdbmux.backend", &*question.backend);
    told.perhaps("pdbmux.member", question.member.as_deref());
    if let Some(after) = question.first_byte {
        told.seconds("pdbmux.first_byte.duration", after);
    }
    let name = name(method, route);
    otlp::Span {
        kind: SpanKind::Client.into(),
        status: status(has_failed),
        ..span(question.ids, question.began, question.took, name, told)
    }
}

/// What a span is called: of few words, whatever clients ask for.
fn name(method: &str, route: Option<&str>) -> String {
    match route {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    }
}

fn span(ids: Ids, began: SystemTime, took: Duration, name: String, told: Attributes) -> otlp::Span {
    let since = began.duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    let parent = ids.parent.map(|parent| parent.to_be_bytes().to_vec());
    otlp::Span {
        trace_id: ids.trace.to_be_bytes().to_vec(),
        span_id: ids.span.to_be_bytes().to_vec(),
        parent_span_id: parent.unwrap_or_default(),
        flags: SAMPLED | PARENT_IS_KNOWN,
        name,
        start_time_unix_nano: nanos(since),
        end_time_unix_nano: nanos(since + took),
        attributes: told.0,
        ..otlp::Span::default()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Only an error is told of: that all was well is for whoever reads to say.
fn status(has_failed: bool) -> Option<Status> {
    has_failed.then(|| Status {
        code: StatusCode::Error.into(),
        ..Status::default()
    })
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}

#[derive(Debug, Default)]
struct Attributes(Vec<KeyValue>);

impl Attributes {
    fn add(&mut self, name: &str, value: Value) {
        self.0.push(KeyValue {
            key: name.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
            ..KeyValue::default()
        });
    }

    fn text(&mut self, name: &str, text: impl Into<String>) {
        self.add(name, Value::StringValue(text.into()));
    }

    fn perhaps(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    fn number(&mut self, name: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.add(name, Value::IntValue(number.try_into().unwrap_or(i64::MAX)));
        }
    }

    fn seconds(&mut self, name: &str, duration: Duration) {
        self.add(name, Value::DoubleValue(duration.as_secs_f64()));
    }

    /// Where it holds.
    fn flag(&mut self, name: &str, holds: bool) {
        if holds {
            self.add(name, Value::BoolValue(true));
        }
    }

    fn list(&mut self, name: &str, texts: &[String]) {
        if texts.is_empty() {
            return;
        }
        let values = texts.iter().map(|text| AnyValue {
            value: Some(Value::StringValue(text.clone())),
        });
        self.add(
            name,
            Value::ArrayValue(ArrayValue {
                values: values.collect(),
            }),
        );
    }

    /// Tells the method. What it is called in the name of a span: clients make words up.
    fn method<'m>(&mut self, method: &'m str) -> &'m str {
        const KNOWN: [&str; 9] = [
            "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
        ];
        if KNOWN.contains(&method) {
            self.text("http.request.method", method);
            return method;
        }
        self.text("http.request.method", "_OTHER");
        self.text("http.request.method_original", method);
        "HTTP"
    }
}
