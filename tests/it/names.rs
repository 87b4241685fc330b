//! `/fact-names` over HTTP (R086-R092).

use serde_json::json;

use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const NAMES: &str = "/pdb/query/v4/fact-names";

async fn pair(a: &str, b: &str) -> (Stub, Stub, Pdbmux) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    first.on(NAMES, Answer::counted(90, a));
    second.on(NAMES, Answer::counted(9, b));
    let mux = Pdbmux::start(&[&first, &second]).await;
    (first, second, mux)
}

#[tokio::test]
async fn r086_r087_r091_the_union_is_sorted_with_the_source_fact_once() {
    let (a, _b, mux) = pair(r#"["os","a\/b","kernel"]"#, r#"["kernel","pdbmux_source"]"#).await;
    let up = r#"["a\/b","kernel","os","pdbmux_source"]"#;
    let response = mux.get(NAMES).await;
    assert_eq!(response.ok(), up);
    assert_eq!(response.backends(), Some("2/2"));
    assert_eq!(response.header("x-records"), None);
    assert_eq!(a.targets(), [NAMES]);
    // T20: no ordering leaves the list as it is by default.
    for none in ["[]", "", "null", r#"[{"field":"name","order":"ASC"}]"#] {
        assert_eq!(mux.ask(NAMES, &[("order_by", none)]).await.ok(), up);
    }
    let down = r#"[{"field":"name","order":"desc"}]"#;
    let down = mux.ask(NAMES, &[("order_by", down)]).await;
    assert_eq!(down.ok(), r#"["pdbmux_source","os","kernel","a\/b"]"#);
}

#[tokio::test]
async fn r088_any_other_column_is_refused_before_anyone_is_asked() {
    let (a, _b, mux) = pair("[]", "[]").await;
    for order in [
        r#"[{"field":"certname"}]"#,
        r#"[{"field":"name"},{"field":"value"}]"#,
    ] {
        let response = mux.ask(NAMES, &[("order_by", order)]).await;
        assert!(response.refusal().contains("name"));
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn r089_r090_the_window_is_cut_here_and_the_total_is_the_unions() {
    let (a, _b, mux) = pair(r#"["a","c","e"]"#, r#"["b","c"]"#).await;
    let page = [("limit", "2"), ("offset", "1"), ("include_total", "true")];
    let response = mux.ask(NAMES, &page).await;
    assert_eq!(response.ok(), r#"["b","c"]"#);
    assert_eq!(response.header("x-records"), Some("5"));
    for name in ["limit", "offset"] {
        assert_eq!(a.only().param(name), None);
    }
}

#[tokio::test]
async fn t12_pages_of_names_that_a_backend_orders_by_a_language_hold_each_once() {
    let (_a, _b, mux) = pair(r#"["isa","is_virtual","OS"]"#, r#"["os","OS"]"#).await;
    let all = ["OS", "is_virtual", "isa", "os", "pdbmux_source"];
    for size in [1, 2, 7] {
        let mut walked = Vec::new();
        while walked.len() < all.len() {
            let (limit, offset) = (size.to_string(), walked.len().to_string());
            let page = [("limit", &*limit), ("offset", &*offset)];
            let page = mux.ask(NAMES, &page).await.json();
            walked.extend(page.as_array().unwrap().iter().cloned());
        }
        assert_eq!(json!(walked), json!(all), "pages of {size}");
    }
}

#[tokio::test]
async fn r092_without_injection_the_source_name_is_not_added() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NAMES, r#"["os"]"#);
    b.on(NAMES, "[]");
    let mux = Pdbmux::with(&[&a, &b], |config| config.source_fact_enabled = false).await;
    assert_eq!(mux.get(NAMES).await.ok(), r#"["os"]"#);
    b.on(NAMES, r#"["pdbmux_source"]"#);
    let real = mux.get(NAMES).await;
    assert_eq!(real.ok(), r#"["os","pdbmux_source"]"#);
}

#[tokio::test]
async fn r008_r017_survivors_are_united_and_refusals_replayed() {
    let (a, b, mux) = pair("{}", r#"["os"]"#).await;
    let response = mux.get(NAMES).await;
    assert_eq!(response.ok(), r#"["os","pdbmux_source"]"#);
    assert_eq!(response.backends(), Some("1/2"));
    assert_eq!(response.missing(), ["pdb-a; reason=damaged"]);
    for stub in [&a, &b] {
        stub.on(NAMES, Answer::status(400, "[] is not well-formed"));
    }
    let response = mux.get(NAMES).await;
    assert_eq!(
        (response.status, response.text()),
        (400, "[] is not well-formed")
    );
    a.on(NAMES, Answer::status(500, "oh"));
    assert_eq!(mux.get(NAMES).await.status, 502);
}

#[tokio::test]
async fn t64_pretty_is_written_here_and_not_asked_for() {
    let (a, _b, mux) = pair(r#"[ "os" ]"#, "[]").await;
    let response = mux.ask(NAMES, &[("pretty", "true")]).await;
    assert_eq!(response.ok(), r#"[ "os", "pdbmux_source" ]"#);
    assert_eq!(a.targets(), [NAMES]);
    // PuppetDB's rule for booleans.
    let response = mux.ask(NAMES, &[("pretty", "1")]).await;
    assert_eq!(response.ok(), r#"["os","pdbmux_source"]"#);
}
