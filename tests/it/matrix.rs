//! Every kind of route against every kind of fault in every place (rulings 1 and 12).
//!
//! What must come back is derived here from the rulings alone, so that no cell is forgotten.

use futures_util::future::join_all;

use crate::client::{End, Response};
use crate::harness::{NAMES, Pdbmux, SHORT};
use crate::stub::{Answer, FRESHNESS, Stub};

const CEILING: usize = 4096;
const REFUSAL: &str = "in the backend's own words";

/// How a route takes its answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// From all, merged.
    Merged,
    /// From the first that succeeds.
    Passed,
    /// The same, the owner first.
    Owned,
    /// From one that holds it; a 404 says that a backend does not.
    Held,
}

struct Route {
    target: &'static str,
    kind: Kind,
    /// What a sound backend sends.
    sound: &'static str,
    /// What is served of one, two or three of them, more or less: a part that tells them apart
    /// from nothing.
    telling: [&'static str; 3],
}

const fn route(
    target: &'static str,
    kind: Kind,
    sound: &'static str,
    telling: [&'static str; 3],
) -> Route {
    Route {
        target,
        kind,
        sound,
        telling,
    }
}

const COUNT: &str = "?query=%5B%22extract%22,%5B%5B%22function%22,%22count%22%5D%5D%5D";

fn routes() -> Vec<Route> {
    use Kind::{Held, Merged, Owned, Passed};
    const NODE: &str = r#"[{"certname":"n","report_timestamp":null}]"#;
    const FACT: &str = r#"[{"certname":"n","environment":null,"name":"os","value":"x"}]"#;
    const REPORT: &str = r#"[{"hash":"h"}]"#;
    const EVENT: &str = r#"[{"report":"r"}]"#;
    let failures = [r#""failures":2"#, r#""failures":4"#, r#""failures":6"#];
    let counted = [r#"[{"count":2}]"#, r#"[{"count":4}]"#, r#"[{"count":6}]"#];
    let count = r#"[{"count":2}]"#;
    let mut routes = vec![
        route(
            "/pdb/query/v4/nodes",
            Merged,
            NODE,
            [r#""certname":"n""#; 3],
        ),
        route("/pdb/query/v4/facts", Merged, FACT, [r#""name":"os""#; 3]),
        route("/pdb/query/v4/facts/os", Merged, FACT, [FACT; 3]),
        route("/pdb/query/v4/environments", Passed, "[1]", ["[1]"; 3]),
        route("/pdb/query/v4/nodes/n", Owned, "{}", ["{}"; 3]),
        route(
            "/pdb/meta/v1/version",
            Merged,
            r#"{"version":"8.0.0"}"#,
            [r#""8.0.0""#; 3],
        ),
        route(
            "/pdb/meta/v1/server-time",
            Merged,
            r#"{"server_time":"x"}"#,
            [r#""x""#; 3],
        ),
        route(
            "/metrics/v2/read/java.lang:type=Threading/Count",
            Merged,
            r#"{"value":2,"timestamp":1,"status":200}"#,
            [r#""value":2"#, r#""value":4"#, r#""value":6"#],
        ),
        route(
            "/metrics/v2/list",
            Merged,
            r#"{"value":{"a":{}},"timestamp":1,"status":200}"#,
            [r#""value":{"a":{}}"#; 3],
        ),
        route(
            "/metrics/v1/mbeans",
            Merged,
            r#"{"a":"b"}"#,
            [r#"{"a":"b"}"#; 3],
        ),
        route(
            "/metrics/v1/mbeans/a",
            Merged,
            r#"{"Count":2}"#,
            [r#"{"Count":2}"#, r#"{"Count":4}"#, r#"{"Count":6}"#],
        ),
        route(
            "/pdb/query/v4/fact-names",
            Merged,
            r#"["os"]"#,
            [r#""os""#; 3],
        ),
        route("/pdb/query/v4/reports", Merged, REPORT, [REPORT; 3]),
        route("/pdb/query/v4/events", Merged, EVENT, [EVENT; 3]),
        route(
            "/pdb/query/v4/events?pretty=true",
            Merged,
            EVENT,
            ["\"report\" : \"r\"\n} ]"; 3],
        ),
        route(
            "/pdb/query/v4/event-counts",
            Merged,
            r#"[{"failures":2,"subject_type":"x","subject":"y"}]"#,
            failures,
        ),
        route(
            "/pdb/query/v4/aggregate-event-counts",
            Merged,
            r#"[{"failures":2,"summarize_by":"x"}]"#,
            failures,
        ),
        route("/pdb/query/v4/reports/h/logs", Held, "[1]", ["[1]"; 3]),
        route("/pdb/query/v4/reports/h/metrics", Held, "[1]", ["[1]"; 3]),
        route("/pdb/query/v4/reports/h/events", Held, "[1]", ["[1]"; 3]),
    ];
    for path in [
        "nodes",
        "facts",
        "facts/os",
        "resources",
        "reports",
        "events",
    ] {
        let target = format!("/pdb/query/v4/{path}{COUNT}").leak();
        routes.push(route(target, Merged, count, counted));
    }
    routes
}

/// What a broken backend does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Status(u16),
    NoType,
    Redirect,
    Refused,
    Hung,
    CutLength,
    CutChunked,
    Empty,
    Html,
    TooLong,
}

impl Fault {
    async fn stub(self) -> Stub {
        if self == Self::Refused {
            return Stub::closed();
        }
        let stub = Stub::start().await;
        let address = stub.url();
        stub.otherwise(match self {
            Self::Status(status) => Answer::with(
                status,
                &[("Content-Type", "text/x-own"), ("X-Backend", &address)],
                format!("{REFUSAL} at {address}"),
            ),
            Self::NoType => Answer::with(503, &[], REFUSAL),
            Self::Redirect => {
                let location = format!("{address}/pdb/dashboard");
                Answer::with(302, &[("Location", &location)], REFUSAL)
            }
            Self::Refused | Self::Hung => Answer::hung(),
            Self::CutLength => Answer::promising(500)
                .send("[{\"certname\":\"n\"}]")
                .close(),
            Self::CutChunked => Answer::chunked().chunk("[{\"certname\":\"n\"}]").close(),
            Self::Empty => Answer::json(""),
            Self::Html => Answer::with(
                200,
                &[("Content-Type", "text/html")],
                format!("<html>{address}</html>"),
            ),
            Self::TooLong => Answer::json(format!("[{}]", " ".repeat(CEILING))),
        });
        stub
    }

    /// The status it stands for; `None` if it is no answer.
    fn status(self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(status),
            Self::NoType => Some(503),
            Self::Redirect => Some(404),
            _ => None,
        }
    }

    fn reason(self) -> String {
        if let Some(status) = self.status() {
            return format!("status-{status}");
        }
        let word = match self {
            Self::Status(_) | Self::NoType | Self::Redirect => "status",
            Self::Refused => "unreachable",
            Self::Hung => "timeout",
            Self::CutLength | Self::CutChunked => "cut",
            Self::Empty | Self::Html => "damaged",
            Self::TooLong => "too-long",
        };
        word.to_owned()
    }

    /// Whether its first bytes are an answer's, so that a route that passes them on has begun to.
    fn begins_well(self) -> bool {
        matches!(self, Self::CutLength | Self::CutChunked | Self::TooLong)
    }
}

/// Which of the backends are broken.
const PLACES: [&[bool]; 4] = [
    &[true, false],
    &[false, true],
    &[true, true],
    &[false, true, false],
];

async fn cell(fault: Fault, broken: &[bool]) {
    let routes = routes();
    let mut stubs = Vec::new();
    for broken in broken {
        stubs.push(if *broken {
            fault.stub().await
        } else {
            sound(&routes).await
        });
    }
    let all: Vec<_> = stubs.iter().collect();
    let mux = Pdbmux::with(&all, |config| {
        config.max_body_bytes = CEILING;
        if fault == Fault::Hung {
            config.timeout = 3 * SHORT;
        }
    })
    .await;
    join_all(routes.iter().map(async |route| {
        let response = mux.get(route.target).await;
        let cell = format!("{fault:?} at {broken:?}, {}: {response:#?}", route.target);
        check(route, fault, broken, &response, &cell);
    }))
    .await;
}

async fn sound(routes: &[Route]) -> Stub {
    let stub = Stub::start().await;
    stub.fresh(&[("n", "")]);
    for route in routes {
        let path = route.target.split("?pretty").next().unwrap_or_default();
        stub.on(path, route.sound);
    }
    assert!(routes.iter().all(|route| route.target != FRESHNESS));
    stub
}

fn check(route: &Route, fault: Fault, broken: &[bool], response: &Response, cell: &str) {
    let of = broken.len();
    let sound = broken.iter().filter(|broken| !**broken).count();
    let is_missed = route.kind != Kind::Held || fault.status() != Some(404);
    let missing: Vec<_> = broken
        .iter()
        .zip(NAMES)
        .filter(|(broken, _)| **broken && is_missed)
        .map(|(_, name)| format!("{name}; reason={}", fault.reason()))
        .collect();
    let passes = matches!(route.kind, Kind::Passed | Kind::Owned);
    // The first backend asked: on an owner's route one of those whose nodes are known.
    let first_is_broken = match route.kind {
        Kind::Owned => sound == 0,
        Kind::Passed | Kind::Merged | Kind::Held => broken[0],
    };
    if passes && first_is_broken && fault.begins_well() {
        let whole = fault == Fault::TooLong;
        assert_eq!(response.status, 200, "{cell}");
        assert_eq!(response.end == End::Whole, whole, "{cell}");
        return;
    }
    assert_eq!(response.end, End::Whole, "{cell}");
    if sound > 0 {
        assert_eq!(response.status, 200, "{cell}");
        assert_eq!(
            response.header("content-type"),
            Some("application/json;charset=utf-8"),
            "{cell}"
        );
        let heard = if route.kind == Kind::Merged { sound } else { 1 };
        assert!(response.text().contains(route.telling[heard - 1]), "{cell}");
        if !passes {
            assert_eq!(
                response.backends(),
                Some(&*format!("{heard}/{of}")),
                "{cell}"
            );
            assert_eq!(response.missing(), missing, "{cell}");
        }
    } else if let Some(status) = fault.status() {
        assert_eq!(response.status, status, "{cell}");
        assert!(response.text().starts_with(REFUSAL), "{cell}");
        let content_type = match fault {
            Fault::Status(_) => "text/x-own",
            _ => "text/plain;charset=utf-8",
        };
        assert_eq!(
            response.header("content-type"),
            Some(content_type),
            "{cell}"
        );
    } else {
        assert_eq!(response.status, 502, "{cell}");
        assert_eq!(response.missing(), missing, "{cell}");
        assert_eq!(
            response.header("content-type"),
            Some("application/json;charset=utf-8"),
            "{cell}"
        );
        assert!(response.json()["error"].is_string(), "{cell}");
    }
}

async fn row(fault: Fault) {
    join_all(PLACES.map(|broken| cell(fault, broken))).await;
}

/// One test a fault, so that a failure names it.
macro_rules! rows {
    ($($name:ident: $fault:expr,)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                row($fault).await;
            }
        )*
    };
}

rows! {
    status_400: Fault::Status(400),
    status_404: Fault::Status(404),
    status_500: Fault::Status(500),
    status_503_without_content_type: Fault::NoType,
    redirect: Fault::Redirect,
    refused: Fault::Refused,
    hung: Fault::Hung,
    cut_mid_body: Fault::CutLength,
    cut_mid_chunks: Fault::CutChunked,
    empty_body: Fault::Empty,
    html_200: Fault::Html,
    larger_than_the_ceiling: Fault::TooLong,
}
