//! History: plans and merges of reports and events against simulated backends and a naive oracle.

// Helpers of tests may fail a test like the tests themselves.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

#[path = "union/estate.rs"]
mod estate;
#[path = "union/oracle.rs"]
mod oracle;

use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::merge::{Context, Fan, Outcome};
use pdbmux_core::params::Params;
use pdbmux_core::plan::{Plan, freshness_ask, plan};
use pdbmux_core::round::{BackendId, Part, Reply};
use pdbmux_core::route::Route;
use pdbmux_core::settings::{Settings, Strategy as Owners};
use proptest::prelude::*;

use estate::{Estate, Row, Sent, estate, read};
use oracle::{Request, union};

struct Served {
    rows: Vec<Row>,
    text: String,
    total: Option<u64>,
}

fn settings(estate: &Estate) -> Settings {
    Settings {
        backends: (0..estate.backends.len())
            .map(|at| format!("pdb-{at}"))
            .collect(),
        strategy: Owners::Freshness,
        source: Some("pdbmux_source".into()),
    }
}

fn planned(estate: &Estate, request: &Request, paging: &[(&str, String)]) -> Fan {
    let (path, params) = request.target();
    let raw = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(params)
        .extend_pairs(paging)
        .finish();
    let route = Route::find(path).unwrap().unwrap();
    match plan(&route, &Params::read(&raw).unwrap(), &settings(estate)).unwrap() {
        Plan::Fan(fan) => fan,
        other => panic!("{other:?}"),
    }
}

fn parts(sent: &[Sent]) -> Vec<Part<'_>> {
    let parts = sent.iter().zip(0..).map(|(sent, id)| Part {
        backend: BackendId(id),
        reply: Some(Reply {
            status: 200,
            total: sent.total,
            body: sent.body.as_bytes(),
            scan: None,
        }),
    });
    parts.collect()
}

/// Asks `estate` as the daemon does: one round, and more of whoever was cut off too early.
fn serve(estate: &Estate, request: &Request, paging: &[(&str, String)]) -> Served {
    let fan = planned(estate, request, paging);
    let answer = |at: usize, target: &str| estate.answer(&estate.backends[at], target);
    let map = fan.merge.needs_freshness().then(|| {
        let nodes = (0..estate.backends.len())
            .map(|at| answer(at, &freshness_ask(Owners::Freshness).target()));
        let nodes: Vec<_> = nodes.collect();
        let bodies = nodes.iter().zip(0..);
        let bodies: Vec<_> = bodies
            .map(|(sent, id)| (BackendId(id), sent.body.as_bytes()))
            .collect();
        FreshnessMap::build(&bodies).0
    });
    let all = 0..estate.backends.len();
    let mut sent: Vec<Sent> = all.map(|at| answer(at, &fan.ask.target())).collect();
    let mut limits = vec![fan.ask.limit(); sent.len()];
    let backends = settings(estate).backends;
    for _ in 0..40 {
        let context = Context {
            backends: &backends,
            freshness: map.as_ref(),
            shares: None,
        };
        let merged = fan.merge(&parts(&sent), &limits, context);
        assert_eq!(merged.damaged, []);
        let bodies: Vec<_> = sent.iter().map(|sent| sent.body.as_bytes()).collect();
        match merged.outcome {
            Outcome::Answer(answer) => {
                let text = String::from_utf8(answer.pieces.assemble(&bodies)).unwrap();
                return Served {
                    rows: read(&text),
                    text,
                    total: answer.total,
                };
            }
            Outcome::AskAgain(again) => {
                for again in again {
                    let at = again.backend.index();
                    let known = limits[at].expect("a complete answer is asked for again");
                    assert!(again.limit.is_none_or(|limit| limit > known));
                    limits[at] = again.limit;
                    sent[at] = answer(at, &fan.ask.clone().with_limit(again.limit).target());
                }
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("no end of asking");
}

fn request() -> impl Strategy<Value = Request> {
    const REPORTS: &[&str] = &[
        "hash",
        "certname",
        "status",
        "start_time",
        "receive_time",
        "noop",
    ];
    const EVENTS: &[&str] = &[
        "certname",
        "report",
        "resource_title",
        "property",
        "timestamp",
        "status",
        "new_value",
        "report_receive_time",
    ];
    let of = |path: &'static str, columns: &'static [&'static str]| {
        let extract = prop::sample::subsequence(columns, 1..columns.len());
        let field = (prop::sample::select(columns), any::<bool>());
        let order_by = prop::collection::vec(field, 0..3);
        let filter = prop::sample::select(&estate::CERTNAMES[..]);
        (
            prop::option::weighted(0.4, extract),
            prop::option::weighted(0.7, order_by),
            prop::option::weighted(0.2, filter),
        )
            .prop_map(move |(extract, order_by, certname)| Request {
                path,
                extract,
                order_by,
                certname,
            })
    };
    prop_oneof![
        of("/pdb/query/v4/reports", REPORTS),
        of("/pdb/query/v4/events", EVENTS),
    ]
}

fn page(offset: usize, limit: usize) -> [(&'static str, String); 2] {
    [("offset", offset.to_string()), ("limit", limit.to_string())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn r093_r094_r097_the_answer_is_the_union_each_record_once(
        estate in estate(),
        request in request(),
    ) {
        let served = serve(&estate, &request, &[]);
        prop_assert_eq!(served.rows, union(&estate, &request, false));
    }

    #[test]
    fn r096_r153_pages_hold_every_record_of_the_union_once(
        estate in estate(),
        request in request(),
        size in prop::sample::select(&[1_usize, 2, 7, 100][..]),
    ) {
        let expected = union(&estate, &request, true);
        let mut walked = Vec::new();
        loop {
            let served = serve(&estate, &request, &page(walked.len(), size)).rows;
            prop_assert!(served.len() <= size);
            let is_last = served.len() < size;
            walked.extend(served);
            if is_last {
                break;
            }
        }
        prop_assert_eq!(&walked, &expected);
        // The same by an offset alone (R154).
        let rest = serve(&estate, &request, &[("offset", "3".to_owned())]);
        prop_assert_eq!(rest.rows, expected.get(3..).unwrap_or_default());
    }

    #[test]
    fn t12_no_cut_by_text_is_relied_on(
        estate in estate(),
        descends in any::<bool>(),
        size in 1..4_usize,
    ) {
        let request = Request {
            path: "/pdb/query/v4/events",
            extract: None,
            order_by: Some(vec![("resource_title", descends)]),
            certname: None,
        };
        let served = serve(&estate, &request, &page(0, size)).rows;
        let expected = union(&estate, &request, true);
        prop_assert_eq!(served, &expected[..size.min(expected.len())]);
    }

    #[test]
    fn r149_totals_are_added(estate in estate(), request in request()) {
        let paging = [("include_total", "true".to_owned()), ("limit", "1".to_owned())];
        let served = serve(&estate, &request, &paging);
        let whole = estate.backends.iter().map(|backend| oracle::rows(&estate, backend, &request, &[]).len());
        prop_assert_eq!(served.total, Some(whole.sum::<usize>() as u64));
        prop_assert_eq!(serve(&estate, &request, &[]).total, None);
    }

    #[test]
    fn one_backend_in_is_the_same_bytes_out(estate in estate(), request in request()) {
        let mut estate = estate;
        estate.backends.truncate(1);
        let request = Request { extract: None, ..request };
        let sent = estate.answer(&estate.backends[0], &planned(&estate, &request, &[]).ask.target());
        prop_assert_eq!(serve(&estate, &request, &[]).text, sent.body);
    }

    #[test]
    fn the_order_of_backends_decides_no_more_than_whose_copy_is_served(
        estate in estate(),
        request in request(),
    ) {
        let counted = |estate: &Estate| {
            let request = Request { extract: None, ..request.clone() };
            let mut rows: Vec<_> = serve(estate, &request, &[])
                .rows
                .iter()
                .map(|row| format!("{:?}", oracle::identity(row, request.path)))
                .collect();
            rows.sort();
            rows
        };
        let mut turned = estate.clone();
        turned.backends.reverse();
        prop_assert_eq!(counted(&estate), counted(&turned));
    }
}
