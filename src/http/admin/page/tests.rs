use jiff::SignedDuration;
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::round::BackendId;

use super::*;

fn at(minute: i64) -> Timestamp {
    let noon: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
    noon + SignedDuration::from_mins(minute)
}

fn estate(bodies: &[&str]) -> drift::Estate {
    let parts: Vec<_> = (0..)
        .map(BackendId)
        .zip(bodies.iter().map(|body| body.as_bytes()))
        .collect();
    let (map, damaged) = FreshnessMap::build(&parts);
    assert!(damaged.is_empty());
    let names = ["pdb-old", "pdb-new"].map(str::to_owned).into();
    drift::Estate::of(map, names, Strategy::Exact, Vec::new(), at(0))
}

fn backend(name: &str, tone: Tone) -> Backend {
    Backend {
        name: name.to_owned(),
        state: "some state",
        tone,
        why: None,
        versions: Vec::new(),
        certificates: Vec::new(),
    }
}

fn view<'v>(nodes: Option<&'v drift::Estate>, history: &'v History, query: &str) -> View<'v> {
    View {
        at: at(0),
        backends: vec![
            backend("pdb-old", Tone::Good),
            backend("pdb-new", Tone::Good),
        ],
        certificates: Vec::new(),
        nodes,
        history,
        partials: None,
        slow: None,
        cache: None,
        strategy: Strategy::Exact,
        search: Search::of(query),
    }
}

const OLD: &str = r#"[{"certname":"a","report_timestamp":"2026-05-01T10:00:00.000Z"},
    {"certname":"b","report_timestamp":"2026-05-01T10:00:00.000Z"}]"#;
const NEW: &str = r#"[{"certname":"a","report_timestamp":"2026-05-01T12:00:00.000Z"},
    {"certname":"c<script>alert(1)</script>","report_timestamp":null,"expired":"2026-05-01T12:00:00.000Z"}]"#;

#[test]
fn whatever_comes_from_outside_is_shown_as_text() {
    let evil = r#"<script>alert("&")</script>"#;
    let mut history = History::of(vec![evil.to_owned()]);
    history.keep(at(0), vec![1]);
    let nodes = estate(&[OLD, NEW]);
    let mut view = view(Some(&nodes), &history, "");
    let certificate = |days| Certificate {
        what: evil.to_owned(),
        days,
    };
    view.certificates.push(certificate(20));
    view.backends[0] = Backend {
        why: Some(evil.to_owned()),
        versions: vec![evil.to_owned()],
        certificates: vec![certificate(1)],
        ..backend(evil, Tone::Bad)
    };
    let answered = Answered {
        at: evil.to_owned(),
        target: evil.to_owned(),
        status: 200,
        took: evil.to_owned(),
        note: evil.to_owned(),
    };
    (view.partials, view.slow) = (Some(vec![answered.clone()]), Some(vec![answered]));
    for certname in [
        evil,
        "c<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
    ] {
        view.search = Search {
            q: certname.to_owned(),
            state: certname.to_owned(),
            certname: Some(certname.to_owned()),
        };
        let html = page(&view).unwrap();
        assert!(
            !html.contains("<script") && !html.contains("<img"),
            "{html}"
        );
    }
    view.search = Search::default();
    let html = page(&view).unwrap();
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("/?certname=c%3Cscript%3Ealert%281%29%3C%2Fscript%3E"));
}

#[test]
fn the_days_that_certificates_have_left_are_shown_and_those_that_end_soon_stand_out() {
    let history = History::default();
    let mut view = view(None, &history, "");
    let html = page(&view).unwrap();
    assert!(!html.contains("Certificates"), "{html}");
    let certificate = |(what, days): (&str, _)| Certificate {
        what: what.to_owned(),
        days,
    };
    view.backends[1].certificates = [("server", 13), ("cert", 14)].map(certificate).into();
    view.certificates = [("tls_cert", -1), ("tls_client_ca", 3650)]
        .map(certificate)
        .into();
    let html = page(&view).unwrap();
    for chip in [
        "<span class=\"chip warn\">server: 13 days</span>",
        "<span class=\"chip\">cert: 14 days</span>",
        "<span class=\"chip warn\">tls_cert: ended</span>",
        "<span class=\"chip\">tls_client_ca: 3,650 days</span>",
    ] {
        assert!(html.contains(chip), "{chip}: {html}");
    }
}

#[test]
fn a_node_is_looked_up_and_a_list_narrowed_by_the_query() {
    let (nodes, history) = (estate(&[OLD, NEW]), History::default());
    let html = |query| page(&view(Some(&nodes), &history, query)).unwrap();
    let all = html("");
    assert!(all.contains("3 nodes.") && !all.contains("Who owns"));
    assert!(all.contains("report 2h behind"));
    assert!(html("q=b&state=").contains("One node."));
    assert!(html("state=shared").contains("<option value=\"shared\" selected>"));
    assert!(html("q=zzz").contains("No node is like that."));
    let found = html("certname=a");
    assert!(found.contains("<strong>pdb-new</strong> owns it. It has the newest report."));
    assert!(html("certname=nobody").contains("No backend that was asked holds it."));
    // A certname may hold what a query cannot.
    assert_eq!(Search::of("certname=a%2Bb+c").certname.unwrap(), "a+b c");
}

#[test]
fn a_long_list_is_cut_and_says_so() {
    let nodes: Vec<_> = (0..1_201)
        .map(|at| serde_json::json!({"certname": format!("n{at}")}))
        .collect();
    let (body, history) = (serde_json::to_string(&nodes).unwrap(), History::default());
    let nodes = estate(&[&body]);
    let html = page(&view(Some(&nodes), &history, "")).unwrap();
    assert!(html.contains("The first 200 of 1,201 nodes."));
    assert_eq!(html.matches("/?certname=").count(), 200);
}

#[test]
fn what_is_not_known_is_not_told_as_a_number() {
    let history = History::default();
    let html = page(&view(None, &history, "certname=a")).unwrap();
    assert!(html.contains("Its nodes are not known.") && !html.contains("<polyline"));
    let mut nodes = estate(&[OLD, NEW]);
    nodes.missing.push((BackendId(1), "refused".to_owned()));
    let html = page(&view(Some(&nodes), &history, "")).unwrap();
    assert_eq!(html.matches("Its nodes are not known.").count(), 1);
}

#[test]
fn the_headline_names_who_is_out_of_service_or_does_not_tell_its_nodes() {
    let (good, bad, watch) = (Tone::Good, Tone::Bad, Tone::Watch);
    for (tones, silent, text, tone) in [
        (&[good][..], &[][..], "The backend is in service", good),
        (&[good, good], &[], "Both backends are in service", good),
        (
            &[good, good],
            &["b1"],
            "The nodes of b1 are not known",
            watch,
        ),
        (
            &[good, watch, good],
            &[],
            "All 3 backends are in service",
            watch,
        ),
        (&[good, bad], &["b1"], "b1 is out of service", bad),
        (&[bad, watch, bad], &[], "b0 and b2 are out of service", bad),
        (&[bad, bad], &[], "No backend is in service", bad),
    ] {
        let names = tones.iter().enumerate();
        let backends: Vec<_> = names
            .map(|(at, tone)| backend(&format!("b{at}"), *tone))
            .collect();
        assert_eq!(headline(&backends, silent), (text.to_owned(), tone));
    }
}

#[test]
fn a_day_of_minutes_is_kept_and_a_minute_holds_one_sample() {
    let mut history = History::of(vec!["a".to_owned()]);
    for minute in 0..1_500 {
        history.keep(at(minute), vec![0]);
        history.keep(at(minute) + SignedDuration::from_secs(59), vec![1]);
    }
    assert_eq!(history.samples().len(), 1_440);
    assert_eq!(history.samples().next().unwrap().at, at(60));
    assert!(history.samples().all(|sample| sample.owned == [1]));
}

#[test]
fn a_line_goes_from_left_to_right_and_up_with_the_number() {
    let mut history = History::of(["a", "b"].map(str::to_owned).into());
    for (minute, owned) in [(0, [6, 0]), (30, [3, 3]), (60, [0, 6])] {
        history.keep(at(minute), owned.into());
    }
    let chart = Chart::of(&history).unwrap();
    assert_eq!(chart.ys, ["6", "4", "2", "0"]);
    assert_eq!(chart.xs, ["12:00", "12:30", "13:00"]);
    let lines: Vec<_> = chart.lines.iter().map(|it| it.points.as_str()).collect();
    assert_eq!(lines, ["0,0 500,50 1000,100", "0,100 500,50 1000,0"]);
    let changes: Vec<_> = chart.lines.iter().map(|it| it.change.as_str()).collect();
    assert_eq!(changes, ["−6 in 1h", "+6 in 1h"]);

    let mut one = History::of(vec!["a".to_owned()]);
    assert!(Chart::of(&one).is_none());
    one.keep(at(0), vec![0]);
    let chart = Chart::of(&one).unwrap();
    assert_eq!(chart.lines[0].points, "0,100 1000,100");
    assert_eq!((chart.ys.join(" "), chart.xs.len()), ("1 0".to_owned(), 1));
}

#[test]
fn numbers_have_their_thousands_apart() {
    for (value, text) in [
        (0, "0"),
        (999, "999"),
        (1_000, "1,000"),
        (12_345, "12,345"),
        (1_234_567, "1,234,567"),
    ] {
        assert_eq!(number(value), text);
    }
}

#[test]
fn the_policy_lets_nothing_in_but_the_style_of_the_page() {
    let html = page(&view(None, &History::default(), "")).unwrap();
    assert!(html.contains(&format!("<style>{STYLE}</style>")));
    assert!(!html.contains(" style=") && !html.contains("http://") && !html.contains("https://"));
    assert!(policy().starts_with("default-src 'none'; style-src 'sha256-"));
}
