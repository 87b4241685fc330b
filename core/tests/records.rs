//! Records of nodes: plans and merges against simulated backends and a naive oracle.

// Helpers of tests may fail a test like the tests themselves.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

#[path = "records/estate.rs"]
mod estate;
#[path = "records/oracle.rs"]
mod oracle;

use pdbmux_core::answer::Answer;
use pdbmux_core::merge::drilldown::Drilldown;
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::merge::{Context, Outcome};
use pdbmux_core::params::Params;
use pdbmux_core::plan::{Plan, freshness_ask, plan};
use pdbmux_core::round::{BackendId, Part, Reply};
use pdbmux_core::route::Route;
use pdbmux_core::settings::{Settings, Strategy as Owners};
use proptest::prelude::*;

use estate::{Backend, FACTS, Record, Sent, estate, ids, names};
use oracle::{Path, Request, merged, read};

/// A served answer.
struct Served {
    records: Vec<Record>,
    text: String,
    total: Option<u64>,
    contributed: usize,
}

impl Served {
    fn new(answer: &Answer, bodies: &[&[u8]], drilldown: Option<&Drilldown>) -> Self {
        let whole = answer.pieces.assemble(bodies);
        let (body, total) = match drilldown {
            None => (whole, answer.total),
            Some(drilldown) => drilldown.apply(&whole).unwrap(),
        };
        let text = String::from_utf8(body).unwrap();
        Self {
            records: read(&text),
            text,
            total,
            contributed: answer.contributed,
        }
    }
}

/// Asks `estate` as the daemon does: one round, and more of whoever was cut off too early.
fn serve(
    estate: &[Backend],
    request: &Request,
    settings: &Settings,
    paging: &[(&str, String)],
) -> Served {
    let (path, mut params) = request.target();
    params.extend(paging.iter().map(|(name, value)| {
        let name = match *name {
            "limit" => "limit",
            "offset" => "offset",
            _ => "include_total",
        };
        (name, value.clone())
    }));
    let raw = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(&params)
        .finish();
    let route = Route::find(&path).unwrap().unwrap();
    let fan = match plan(&route, &Params::read(&raw).unwrap(), settings).unwrap() {
        Plan::Fan(fan) => fan,
        Plan::Nothing(total) => {
            return Served {
                records: Vec::new(),
                text: "[]".to_owned(),
                total,
                contributed: 0,
            };
        }
        other => panic!("{other:?}"),
    };
    let map = fan.merge.needs_freshness().then(|| freshness(estate));
    let mut sent: Vec<Sent> = estate
        .iter()
        .map(|backend| backend.answer(&fan.ask.target()))
        .collect();
    let mut limits = vec![fan.ask.limit(); sent.len()];
    for _ in 0..40 {
        let context = Context {
            backends: &settings.backends,
            freshness: map.as_ref(),
            shares: None,
        };
        let merged = fan.merge(&parts(&sent), &limits, context);
        assert_eq!(merged.damaged, []);
        let bodies: Vec<_> = sent.iter().map(|sent| sent.body.as_bytes()).collect();
        match merged.outcome {
            Outcome::Answer(answer) => {
                return Served::new(&answer, &bodies, fan.drilldown.as_deref());
            }
            Outcome::AskAgain(again) => {
                for again in again {
                    let at = again.backend.index();
                    let known = limits[at].expect("a complete answer is asked for again");
                    assert!(again.limit.is_none_or(|limit| limit > known));
                    limits[at] = again.limit;
                    sent[at] = estate[at].answer(&fan.ask.clone().with_limit(again.limit).target());
                }
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("no end of asking");
}

fn parts(sent: &[Sent]) -> Vec<Part<'_>> {
    let replies = sent.iter().map(|sent| Reply {
        status: 200,
        total: sent.total,
        body: sent.body.as_bytes(),
        scan: None,
    });
    (0..)
        .map(BackendId)
        .zip(replies)
        .map(|(backend, reply)| Part {
            backend,
            reply: Some(reply),
        })
        .collect()
}

fn freshness(estate: &[Backend]) -> FreshnessMap {
    let target = freshness_ask(Owners::Freshness).target();
    let told: Vec<_> = ids(estate)
        .filter(|(_, backend)| backend.tells_freshness)
        .map(|(id, backend)| (id, backend.answer(&target).body))
        .collect();
    let mut bodies: Vec<_> = told
        .iter()
        .map(|(id, body)| (*id, body.as_bytes()))
        .collect();
    // The order of arrival is irrelevant.
    bodies.reverse();
    FreshnessMap::build(&bodies).0
}

fn settings() -> impl Strategy<Value = (Owners, Option<String>)> {
    let owners = prop_oneof![3 => Just(Owners::Freshness), 1 => Just(Owners::Static)];
    let source = prop::option::weighted(0.8, Just("pdbmux_source".to_owned()));
    (owners, source)
}

fn configured(estate: &[Backend], (strategy, source): (Owners, Option<String>)) -> Settings {
    Settings {
        backends: names(estate),
        strategy,
        source,
    }
}

fn order_by(columns: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    let fields = prop::collection::vec((prop::sample::select(columns), any::<bool>()), 0..3);
    let text = fields.prop_map(|fields| {
        let items = fields.iter().map(|(field, descends)| {
            let order = if *descends { "DESC" } else { "asc" };
            serde_json::json!({ "field": field, "order": order.to_lowercase() })
        });
        items.collect::<serde_json::Value>().to_string()
    });
    prop::option::weighted(0.7, text)
}

fn request() -> impl Strategy<Value = Request> {
    const NODES: &[&str] = &["certname", "report_timestamp", "report_environment"];
    const COLUMNS: &[&str] = &["certname", "environment", "name", "value"];
    let shape = |columns: &'static [&'static str]| {
        let extract = prop::sample::subsequence(columns, 1..columns.len());
        let leads = prop_oneof![Just(&columns[..1]), Just(columns)];
        (
            prop::option::weighted(0.3, extract),
            leads.prop_flat_map(order_by),
        )
    };
    let nodes = shape(NODES).prop_map(|(extract, order_by)| Request {
        path: Path::Nodes,
        extract,
        filter: None,
        order_by,
    });
    let path = prop_oneof![
        4 => Just(Path::Facts),
        2 => prop::sample::select(&FACTS[..5]).prop_map(Path::Named),
    ];
    let filter = prop_oneof![
        3 => Just(None),
        1 => prop::sample::select(&FACTS[..]).prop_map(|name| Some(("name", name))),
        1 => Just(Some(("environment", "lab"))),
    ];
    let facts =
        (path, shape(COLUMNS), filter).prop_map(|(path, (extract, order_by), filter)| Request {
            path,
            extract,
            filter,
            order_by,
        });
    let source =
        (prop::option::of(0..1usize), shape(COLUMNS)).prop_map(|(only, (extract, order_by))| {
            Request {
                path: Path::Source(only),
                extract,
                filter: None,
                order_by,
            }
        });
    prop_oneof![3 => nodes, 4 => facts, 1 => source]
}

fn page(offset: usize, limit: usize) -> [(&'static str, String); 2] {
    [("offset", offset.to_string()), ("limit", limit.to_string())]
}

/// Without injection, the source fact's path is a fact's path like any other.
fn plain(mut request: Request, settings: &Settings) -> Request {
    if settings.source.is_none() && matches!(request.path, Path::Source(_)) {
        request.path = Path::Named("pdbmux_source");
    }
    request
}

/// The pages of `size` that a client meets, one after the other.
fn walk(estate: &[Backend], request: &Request, settings: &Settings, size: usize) -> Vec<Record> {
    let mut walked = Vec::new();
    loop {
        let served = serve(estate, request, settings, &page(walked.len(), size)).records;
        assert!(served.len() <= size);
        let is_last = served.len() < size;
        walked.extend(served);
        if is_last {
            return walked;
        }
    }
}

#[test]
fn t17_t18_a_stale_copy_inside_a_window_hides_behind_no_cut() {
    let settings = Settings {
        backends: vec!["pdb-0".into(), "pdb-1".into()],
        strategy: Owners::Freshness,
        source: None,
    };
    // By name, the first backend's newer facts of a1.x lie behind its cut when the second's stale
    // ones lie before its own.
    let facts = [
        Backend::of(&[(0, 1, &[1, 2]), (1, 2, &[4])]),
        Backend::of(&[(1, 1, &[1, 2])]),
    ];
    // By time, so does the newer node.
    let nodes = [
        Backend::of(&[(0, 1, &[]), (2, 1, &[]), (1, 9, &[])]),
        Backend::of(&[(1, 0, &[]), (3, 2, &[])]),
    ];
    let request = |path, field: &str| Request {
        path,
        extract: None,
        filter: None,
        order_by: Some(format!(r#"[{{"field":"{field}"}}]"#)),
    };
    for (estate, request) in [
        (&facts, request(Path::Facts, "name")),
        (&nodes, request(Path::Nodes, "report_timestamp")),
    ] {
        for size in 1..4 {
            let expected = merged(estate, &request, &settings, true);
            let walked = walk(estate, &request, &settings, size);
            assert_eq!(walked, expected, "pages of {size}");
        }
    }
}

#[test]
fn t17_a_dropped_record_at_a_cut_hides_no_holder() {
    let settings = Settings {
        backends: vec!["pdb-0".into(), "pdb-1".into()],
        strategy: Owners::Freshness,
        source: Some("pdbmux_source".into()),
    };
    // All that the owner sends of the node before its cut is a fact of the source fact's own name.
    let estate = [
        Backend::of(&[(0, 2, &[4, 5])]),
        Backend::of(&[(0, 1, &[0, 4])]),
    ];
    let request = Request {
        path: Path::Facts,
        extract: None,
        filter: None,
        order_by: Some(r#"[{"field":"certname"},{"field":"name","order":"desc"}]"#.into()),
    };
    let expected = merged(&estate, &request, &settings, true);
    assert_eq!(walk(&estate, &request, &settings, 1), expected);
}

fn is_source_fact(record: &Record) -> bool {
    record
        .get("name")
        .is_some_and(|name| name == "pdbmux_source")
}

/// The source facts behind all other records.
fn apart(records: Vec<Record>) -> Vec<Record> {
    let (facts, mut records): (Vec<_>, Vec<_>) = records.into_iter().partition(is_source_fact);
    records.extend(facts);
    records
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn r030_to_r058_the_answer_is_the_merged_set(
        estate in estate(),
        settings in settings(),
        request in request(),
    ) {
        let settings = configured(&estate, settings);
        let request = plain(request, &settings);
        let served = serve(&estate, &request, &settings, &[]);
        let expected = merged(&estate, &request, &settings, false);
        let is_ordered = request.order_by.is_some_and(|order_by| order_by != "[]");
        if is_ordered || settings.source.is_none() {
            prop_assert_eq!(served.records, expected);
            return Ok(());
        }
        // Without an order, all that is said of a source fact is that it stands with the node's
        // own facts (R051).
        for pair in served.records.windows(2).filter(|pair| is_source_fact(&pair[1])) {
            prop_assert!(is_source_fact(&pair[0]) || pair[0]["certname"] == pair[1]["certname"]);
        }
        prop_assert_eq!(apart(served.records), apart(expected));
    }

    #[test]
    fn r146_r147_r153_pages_hold_every_record_of_the_merged_set_once(
        estate in estate(),
        settings in settings(),
        request in request(),
        size in prop::sample::select(&[1_usize, 2, 7, 100][..]),
    ) {
        let settings = configured(&estate, settings);
        let request = plain(request, &settings);
        let expected = merged(&estate, &request, &settings, true);
        let walked = walk(&estate, &request, &settings, size);
        prop_assert_eq!(&walked, &expected);
        // The same by an offset alone (R154).
        let rest = serve(&estate, &request, &settings, &[("offset", "3".to_owned())]);
        let expected = expected.get(3..).unwrap_or_default();
        prop_assert_eq!(rest.records, expected);
    }

    #[test]
    fn r049_r050_each_certname_has_exactly_one_source_fact(estate in estate(), owners in settings()) {
        let settings = configured(&estate, (owners.0, Some("pdbmux_source".into())));
        let request = Request { path: Path::Facts, extract: None, filter: None, order_by: None };
        let served = serve(&estate, &request, &settings, &[]);
        let marks: Vec<_> = served.records.iter().filter(|r| r["name"] == "pdbmux_source").collect();
        for record in &served.records {
            let of_node = marks.iter().filter(|mark| mark["certname"] == record["certname"]);
            let of_node: Vec<_> = of_node.collect();
            prop_assert_eq!(of_node.len(), 1);
            prop_assert_eq!(&of_node[0]["environment"], &record["environment"]);
            prop_assert_eq!(of_node[0].len(), 4);
        }
        // R058: the fact's own path lists the same, R061: and by backend the backend's part of it.
        let bare = Request { path: Path::Source(None), ..request.clone() };
        let bare = serve(&estate, &bare, &settings, &[("include_total", "true".into())]);
        prop_assert_eq!(bare.records.iter().collect::<Vec<_>>(), marks);
        prop_assert_eq!(bare.total, Some(bare.records.len() as u64));
        let mut parts = Vec::new();
        for at in 0..estate.len() {
            let part = Request { path: Path::Source(Some(at)), ..request.clone() };
            parts.extend(serve(&estate, &part, &settings, &[]).records);
        }
        prop_assert_eq!(parts, bare.records);
    }

    #[test]
    fn r149_totals_are_added(estate in estate(), settings in settings(), request in request()) {
        let settings = configured(&estate, settings);
        let request = plain(request, &settings);
        prop_assume!(!matches!(request.path, Path::Source(_)));
        let paging = [("include_total", "true".to_owned()), ("limit", "1".to_owned())];
        let served = serve(&estate, &request, &settings, &paging);
        let (path, params) = request.target();
        let query = params.iter().filter(|(name, _)| *name == "query");
        let query = form_urlencoded::Serializer::new("include_total=true".to_owned())
            .extend_pairs(query)
            .finish();
        let totals = estate.iter().map(|backend| backend.answer(&format!("{path}?{query}")).total.unwrap());
        prop_assert_eq!(served.total, Some(totals.sum()));
        prop_assert_eq!(served.contributed, estate.len());
        prop_assert_eq!(serve(&estate, &request, &settings, &[]).total, None);
    }

    #[test]
    fn one_backend_in_is_the_same_bytes_out(
        estate in estate(),
        owners in settings(),
        request in request(),
        limit in prop::option::of(1..9_usize),
    ) {
        let estate = &estate[..1];
        let settings = configured(estate, (owners.0, None));
        let request = plain(request, &settings);
        let (path, params) = request.target();
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&params).finish();
        let paging = limit.map(|limit| page(0, limit));
        let served = serve(estate, &request, &settings, paging.as_ref().map_or(&[], |page| &page[..]));
        if limit.is_none() && request.extract.is_none() {
            prop_assert_eq!(served.text, estate[0].answer(&format!("{path}?{query}")).body);
        } else {
            let records = estate[0].answer(&format!("{path}?{query}")).body;
            let expected = read(&records).len().min(limit.unwrap_or(usize::MAX));
            prop_assert_eq!(served.records.len(), expected);
        }
    }

    #[test]
    fn an_empty_answer_changes_nothing(
        estate in estate(),
        settings in settings(),
        request in request(),
        at in any::<prop::sample::Index>(),
    ) {
        prop_assume!(estate.len() > 1);
        let settings = configured(&estate, settings);
        let request = plain(request, &settings);
        let (path, params) = request.target();
        let raw = form_urlencoded::Serializer::new(String::new()).extend_pairs(&params).finish();
        let route = Route::find(&path).unwrap().unwrap();
        let Plan::Fan(fan) = plan(&route, &Params::read(&raw).unwrap(), &settings).unwrap() else {
            return Ok(());
        };
        let map = freshness(&estate);
        let context = Context { backends: &settings.backends, freshness: Some(&map), shares: None };
        let mut sent: Vec<Sent> = estate.iter().map(|backend| backend.answer(&fan.ask.target())).collect();
        let limits = vec![None; sent.len()];
        let at = at.index(sent.len());
        sent[at] = Sent { body: " [ ] ".into(), total: Some(0) };
        let run = |parts: &[Part<'_>]| {
            let bodies: Vec<_> = parts.iter().filter_map(|part| Some(part.reply?.body)).collect();
            match fan.merge(parts, &limits[..parts.len()], context).outcome {
                Outcome::Answer(answer) => answer.pieces.assemble(&bodies),
                other => panic!("{other:?}"),
            }
        };
        let with = parts(&sent);
        let mut without = with.clone();
        without.remove(at);
        prop_assert_eq!(run(&with), run(&without));
        let mut failed = with.clone();
        failed[at].reply = None;
        prop_assert_eq!(run(&failed), run(&without));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn ruling_12_a_truncated_body_drops_its_backend_whole(
        estate in estate(),
        settings in settings(),
        request in request(),
        limit in prop::option::of(1..4_usize),
    ) {
        prop_assume!(estate.len() > 1);
        let settings = configured(&estate, settings);
        let request = plain(request, &settings);
        let (path, mut params) = request.target();
        params.extend(limit.map(|limit| ("limit", limit.to_string())));
        let raw = form_urlencoded::Serializer::new(String::new()).extend_pairs(&params).finish();
        let route = Route::find(&path).unwrap().unwrap();
        let Plan::Fan(fan) = plan(&route, &Params::read(&raw).unwrap(), &settings).unwrap() else {
            return Ok(());
        };
        let map = freshness(&estate);
        let context = Context { backends: &settings.backends, freshness: Some(&map), shares: None };
        let whole = estate[0].answer(&fan.ask.target()).body;
        let mut sent: Vec<Sent> = estate.iter().map(|backend| backend.answer(&fan.ask.target())).collect();
        let limits = vec![fan.ask.limit(); sent.len()];
        let expected = fan.merge(&parts(&sent)[1..], &limits[1..], context).outcome;
        for end in 0..whole.len() {
            sent[0].body = String::from_utf8_lossy(&whole.as_bytes()[..end]).into_owned();
            let got = fan.merge(&parts(&sent), &limits, context);
            // Nor does it matter when they were read.
            let scans: Vec<_> = sent.iter().map(|sent| fan.scan(sent.body.as_bytes())).collect();
            let read: Vec<_> = parts(&sent).into_iter().zip(&scans).map(|(part, scan)| Part {
                reply: part.reply.map(|reply| Reply { scan: scan.as_ref(), ..reply }),
                ..part
            }).collect();
            prop_assert_eq!(&fan.merge(&read, &limits, context), &got);
            prop_assert_eq!(got.damaged.len(), 1);
            prop_assert_eq!(got.damaged[0].0, BackendId(0));
            prop_assert_eq!(&got.outcome, &expected);
        }
    }
}
