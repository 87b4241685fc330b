//! Spans, as a collector of traces is told of them.

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use pdbmux::config::{Config, RequestIds, Secret};
use prost::Message as _;

use super::logs::Running;
use super::{Scrape, request};
use crate::client::Response;
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Seen, Stub};
use crate::tls::Files;

const NODES: &str = "/pdb/query/v4/nodes";
const TRACES: &str = "/v1/traces";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn taken(rejected: i64) -> Answer {
    let answer = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: rejected,
            ..ExportTracePartialSuccess::default()
        }),
    };
    Answer::with(200, &[], answer.encode_to_vec())
}

async fn collector() -> Stub {
    let stub = Stub::start().await;
    stub.on(TRACES, taken(0));
    stub
}

async fn backend() -> Stub {
    let stub = Stub::start().await;
    stub.on(NODES, "[]");
    stub
}

async fn telling(collector: &Stub, stubs: &[&Stub], change: impl FnOnce(&mut Config)) -> Pdbmux {
    Pdbmux::with(stubs, |config| {
        config.otlp.endpoint = Some(collector.url().parse().unwrap());
        change(config);
    })
    .await
}

async fn ask(mux: &Pdbmux, target: &str, headers: &[(&str, &str)]) -> Response {
    let mut client = mux.connect().await;
    client.send(request(target, headers)).await;
    client.response().await
}

/// All that a collector was told, once pdbmux has ended.
async fn told(mux: Pdbmux, collector: &Stub) -> Vec<Span> {
    mux.stop();
    mux.until_stopped().await;
    told_to(collector)
}

/// All that a collector was told.
fn told_to(collector: &Stub) -> Vec<Span> {
    let seen = collector.seen();
    assert!(
        seen.iter()
            .all(|it| it.target == TRACES && it.method == "POST")
    );
    let batches = seen
        .iter()
        .map(|it| ExportTraceServiceRequest::decode(&*it.bytes).unwrap());
    let resources = batches.flat_map(|batch| batch.resource_spans);
    let scopes = resources.flat_map(|it| {
        let of_process = it.resource.unwrap().attributes;
        assert_eq!(value(&of_process, "service.name").unwrap(), "pdbmux");
        it.scope_spans
    });
    scopes.flat_map(|it| it.spans).collect()
}

fn of_kind(spans: &[Span], kind: SpanKind) -> Vec<&Span> {
    spans.iter().filter(|it| it.kind() == kind).collect()
}

/// An attribute as text.
fn value(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|it| it.key == name)?;
    Some(match found.value.clone()?.value? {
        Value::StringValue(text) => text,
        Value::BoolValue(flag) => flag.to_string(),
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => format!("{number:?}"),
        Value::ArrayValue(list) => format!("{:?}", list.values),
        other => format!("{other:?}"),
    })
}

fn assert_told(span: &Span, attributes: &[(&str, Option<&str>)]) {
    for (name, expected) in attributes {
        let told = value(&span.attributes, name);
        assert_eq!(told.as_deref(), *expected, "{name} of {span:#?}");
    }
}

fn header<'s>(seen: &'s Seen, name: &str) -> &'s str {
    let found = seen.headers.iter().find(|(known, _)| known == name);
    found.map_or("", |(_, value)| value)
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

#[tokio::test]
async fn a_request_is_a_span_of_its_clients_trace_and_each_question_one_below_it() {
    let (collector, a, b) = (collector().await, backend().await, backend().await);
    b.on(NODES, Answer::status(500, "oh"));
    let mux = telling(&collector, &[&a, &b], |config| {
        config.request_ids = RequestIds::On;
    })
    .await;
    let target = format!("{NODES}?token=hush");
    a.on(NODES, "[]");
    ask(
        &mux,
        &target,
        &[("traceparent", PARENT), ("X-Request-Id", "id-1")],
    )
    .await
    .ok();
    let spans = told(mux, &collector).await;
    let (served, asked) = (
        of_kind(&spans, SpanKind::Server),
        of_kind(&spans, SpanKind::Client),
    );
    assert_eq!((served.len(), asked.len()), (1, 2), "{spans:#?}");
    let served = served[0];
    assert_eq!(served.name, format!("GET {NODES}"));
    assert_eq!(hex(&served.trace_id), PARENT[3..35]);
    assert_eq!(hex(&served.parent_span_id), PARENT[36..52]);
    assert_eq!(served.status, None);
    assert_told(
        served,
        &[
            ("http.request.method", Some("GET")),
            ("http.route", Some(NODES)),
            ("http.response.status_code", Some("200")),
            ("url.path", Some(NODES)),
            ("url.query", Some("token=...")),
            ("server.address", Some("pdbmux")),
            ("client.address", Some("127.0.0.1")),
            ("error.type", None),
            ("pdbmux.backends", Some("1/2")),
            ("pdbmux.partial", Some("true")),
            ("pdbmux.request_id", Some("id-1")),
            ("pdbmux.cut", None),
        ],
    );
    let missing = value(&served.attributes, "pdbmux.missing").unwrap();
    assert!(missing.contains("pdb-b; reason=status-500"), "{missing}");
    assert!(value(&served.attributes, "pdbmux.merge.duration").is_some());
    for (stub, name, status, error) in [
        (&a, "pdb-a", "200", None),
        (&b, "pdb-b", "500", Some("500")),
    ] {
        let is_it = |it: &&&Span| value(&it.attributes, "pdbmux.backend").unwrap() == name;
        let span = asked.iter().find(is_it).unwrap();
        let port = stub.address().port().to_string();
        let url = format!("{}{NODES}?token=...", stub.url());
        assert_eq!(span.name, format!("GET {NODES}"));
        assert_eq!(span.trace_id, served.trace_id);
        assert_eq!(span.parent_span_id, served.span_id);
        assert!(span.start_time_unix_nano >= served.start_time_unix_nano);
        assert!(span.end_time_unix_nano > span.start_time_unix_nano);
        assert_eq!(span.status.is_some(), error.is_some());
        // What the backend was told is this span.
        let told = stub.only();
        let id = hex(&span.span_id);
        assert_eq!(
            header(&told, "traceparent"),
            PARENT.replace("00f067aa0ba902b7", &id)
        );
        assert_told(
            span,
            &[
                ("http.request.method", Some("GET")),
                ("http.response.status_code", Some(status)),
                ("server.address", Some("127.0.0.1")),
                ("server.port", Some(&port)),
                ("url.full", Some(&url)),
                ("url.template", Some(NODES)),
                ("error.type", error),
                ("pdbmux.member", None),
            ],
        );
    }
    let sent = collector.seen();
    let hush = |it: &Seen| String::from_utf8_lossy(&it.bytes).contains("hush");
    assert!(!sent.iter().any(hush));
}

#[tokio::test]
async fn the_clients_flag_decides_what_is_recorded_and_without_one_the_ratio_does() {
    let (collector, backend) = (collector().await, backend().await);
    let unsampled = PARENT.replace("-01", "-00");
    for (sample, headers, spans) in [
        (None, &[][..], 2),
        (None, &[("traceparent", &*unsampled)], 0),
        (Some("0"), &[], 0),
        (Some("0"), &[("traceparent", PARENT)], 2),
    ] {
        let before = collector.seen().len();
        let mux = telling(&collector, &[&backend], |config| {
            config.otlp.sample = sample.map(|text| text.parse().unwrap());
        })
        .await;
        ask(&mux, NODES, headers).await.ok();
        let told = told(mux, &collector).await.len();
        let already = 2 * before;
        assert_eq!(told, already + spans, "{sample:?} {headers:?}");
        // Whether it is recorded or not, the trace goes on.
        let seen = backend.seen().pop().unwrap();
        let flags = if spans > 0 { "-01" } else { "-00" };
        assert!(header(&seen, "traceparent").ends_with(flags));
    }
}

#[tokio::test]
async fn what_came_of_a_question_and_who_of_a_group_was_asked_is_told() {
    let (collector, a, b) = (collector().await, backend().await, backend().await);
    a.on(NODES, Answer::hung());
    let mux = telling(&collector, &[&a, &b], |config| {
        config.timeout = SHORT;
        for backend in &mut config.backends {
            backend.access.group = Some("eu".to_owned());
        }
    })
    .await;
    ask(&mux, NODES, &[]).await.ok();
    assert_eq!(ask(&mux, "/nowhere", &[]).await.status, 404);
    let spans = told(mux, &collector).await;
    let asked = of_kind(&spans, SpanKind::Client);
    let told = |member, outcome, error| {
        let is_it = |it: &&&Span| value(&it.attributes, "pdbmux.member").as_deref() == Some(member);
        let span = asked.iter().find(is_it).unwrap();
        let attributes = [
            ("pdbmux.backend", Some("eu")),
            ("pdbmux.outcome", Some(outcome)),
            ("error.type", error),
        ];
        assert_told(span, &attributes);
    };
    told("pdb-a", "timeout", Some("timeout"));
    told("pdb-b", "ok", None);
    let nowhere = of_kind(&spans, SpanKind::Server);
    let nowhere = nowhere.iter().find(|it| it.name == "GET").unwrap();
    assert_told(
        nowhere,
        &[
            ("http.route", None),
            ("http.response.status_code", Some("404")),
            ("error.type", None),
        ],
    );
}

#[tokio::test]
async fn what_the_cache_did_is_told_and_a_hit_asks_nobody() {
    let (collector, backend) = (collector().await, backend().await);
    let mux = telling(&collector, &[&backend], |config| {
        config.facts_ttl = std::time::Duration::from_secs(30);
    })
    .await;
    ask(&mux, NODES, &[]).await.ok();
    ask(&mux, NODES, &[]).await.ok();
    let spans = told(mux, &collector).await;
    let mut cache: Vec<_> = of_kind(&spans, SpanKind::Server)
        .iter()
        .map(|it| value(&it.attributes, "pdbmux.cache").unwrap())
        .collect();
    cache.sort();
    assert_eq!(cache, ["hit", "miss"]);
    assert_eq!(of_kind(&spans, SpanKind::Client).len(), 1);
}

#[tokio::test]
async fn a_collector_is_told_secrets_that_nobody_else_sees_and_what_it_rejects_is_counted() {
    let (collector, backend, files) = (collector().await, backend().await, Files::new());
    collector.on(TRACES, taken(1));
    let token = files.write("token", "hush\n");
    let mux = telling(&collector, &[&backend], |config| {
        let secret = Secret::File(token);
        config.otlp.access.headers = Some(vec![("x-token".parse().unwrap(), secret)]);
    })
    .await;
    ask(&mux, NODES, &[]).await.ok();
    let of = |scrape: &Scrape, result| scrape.sum("pdbmux_spans_total", &[("result", result)]);
    let scrape = Scrape::until(&mux, |scrape| of(scrape, "refused") == 1).await;
    assert_eq!(of(&scrape, "exported"), 1);
    let seen = collector.only();
    assert_eq!(header(&seen, "x-token"), "hush");
    assert_eq!(header(&seen, "content-type"), "application/x-protobuf");
    assert_eq!(header(&backend.only(), "x-token"), "");
    collector.on(TRACES, Answer::status(400, "no"));
    ask(&mux, NODES, &[]).await.ok();
    Scrape::until(&mux, |scrape| of(scrape, "refused") == 3).await;
}

#[tokio::test]
async fn a_batch_waits_for_a_collector_that_is_away_and_is_sent_then() {
    let (collector, backend) = (collector().await, backend().await);
    collector.on(TRACES, Answer::status(503, "starting"));
    let mux = telling(&collector, &[&backend], |_| {}).await;
    ask(&mux, NODES, &[]).await.ok();
    collector.until_seen(1).await;
    collector.on(TRACES, taken(0));
    collector.until_seen(2).await;
    let seen = collector.seen();
    assert_eq!(seen[0].bytes, seen[1].bytes);
    let exported = [("result", "exported")];
    Scrape::until(&mux, |scrape| {
        scrape.sum("pdbmux_spans_total", &exported) == 2
    })
    .await;
}

#[tokio::test]
async fn a_collector_that_says_nothing_holds_up_no_request_and_the_end_only_for_its_time() {
    let (collector, backend) = (Stub::start().await, backend().await);
    let gate = Gate::new();
    collector.on(TRACES, taken(0).behind(&gate));
    let mux = telling(&collector, &[&backend], |config| {
        config.shutdown_timeout = SHORT;
    })
    .await;
    for _ in 0..20 {
        ask(&mux, NODES, &[]).await.ok();
    }
    mux.stop();
    mux.until_stopped().await;
    assert_eq!(collector.seen().len(), 1);
}

#[tokio::test]
async fn another_collector_is_told_after_a_reload_and_the_first_of_what_was_before() {
    let (first, second, stub) = (collector().await, collector().await, backend().await);
    let file = crate::reload::File::with(
        "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\nhealth_probe_enabled: false\nfacts_ttl: 0s\n",
    );
    let backends = [("pdb-a", &stub)];
    let telling = |it: &Stub| format!("otlp_endpoint: {}\n", it.url());
    file.write(&backends, &telling(&first));
    let mux = Pdbmux::of_file(&file.path()).await;
    ask(&mux, NODES, &[]).await.ok();
    file.write(&backends, &telling(&second));
    crate::reload::reload(&mux, &mut 0).await;
    first.until_seen(1).await;
    ask(&mux, NODES, &[]).await.ok();
    // Health endpoints, which tests ask too, are requests as others.
    let nodes = |spans: &[Span]| {
        let served = of_kind(spans, SpanKind::Server);
        let is_it = |it: &&&Span| it.name == format!("GET {NODES}");
        served.iter().filter(is_it).count()
    };
    assert_eq!(nodes(&told(mux, &second).await), 1);
    assert_eq!(nodes(&told_to(&first)), 1);
}

#[test]
fn a_collector_that_is_not_there_is_one_warning() {
    let mut pdbmux = Running::start(&[
        ("PDBMUX_OTLP_ENDPOINT", "http://127.0.0.1:1"),
        ("PDBMUX_SHUTDOWN_TIMEOUT", "3s"),
    ]);
    pdbmux.ask("/livez", "");
    let line = pdbmux.logged("the collector takes no spans");
    assert!(line.contains("collector=\"http://127.0.0.1:1\""), "{line}");
    assert!(line.contains("no connection: "), "{line}");
    pdbmux.ask("/livez", "");
    let rest = pdbmux.ended();
    assert!(!rest.contains("the collector takes no spans"), "{rest}");
    assert!(
        rest.contains("the last spans could not be sent in time"),
        "{rest}"
    );
}
