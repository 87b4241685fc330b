//! Which rows an `extract` makes, and how they are ordered, cut and counted.

use pdbmux_samples::{Entity, Estate};
use serde_json::json;

use super::{ask, column, estate, get, lines};

#[test]
fn extracts_and_functions_make_the_rows_of_puppetdb() {
    for [path, query, body] in lines(ROWS) {
        assert_eq!(ask(path, query).body, body, "{path} {query}");
    }
}

const ROWS: &str = r#"
/nodes | ["extract","certname"] | [{"certname":"a"},{"certname":"b"},{"certname":"d"}]
/nodes | ["extract",["certname","certname"],["=","certname","a"]] | [{"certname":"a","certname_2":"a"}]
/nodes | ["extract",[["function","count"]]] | [{"count":3}]
/nodes | ["extract",[["function","count"]],["=","certname","x"]] | [{"count":0}]
/nodes | ["extract",[["function","count"],["function","count","report_timestamp"],["function","count","nope"]]] | [{"count":3,"count_2":2,"count_3":0}]
/nodes | ["extract",[["function","max","report_timestamp"],["function","min","certname"]]] | [{"max":"2026-11-13T00:01:00.014Z","min":"a"}]
/nodes | ["extract",[["function","max","certname"]],["=","certname","x"]] | [{"max":null}]
/facts | ["extract",[["function","sum","value"],["function","avg","value"],["function","min","value"],["function","max","value"],["function","count"]],["=","name","uptime"]] | [{"sum":12.5,"avg":6.2500000000000000,"min":2.5,"max":10,"count":2}]
/facts | ["extract",[["function","sum","value"],["function","avg","value"]],["=","name","x"]] | [{"sum":null,"avg":null}]
# A cast narrows the whole row to numeric facts.
/facts | ["extract",[["function","sum","value"],["function","count"]]] | [{"sum":12.5,"count":2}]
/facts | ["extract",[["function","count"]]] | [{"count":8}]
/reports | ["extract",["status",["function","count"]],null,["group_by","status"]] | [{"count":1,"status":"failed"},{"count":2,"status":"changed"},{"count":1,"status":"unchanged"}]
/reports | ["extract",[["function","count"]],["group_by","status"]] | [{"count":1},{"count":2},{"count":1}]
/reports | ["extract","status",["=","certname","a"],["group_by","status"]] | [{"status":"failed"},{"status":"changed"}]
/reports | ["extract",[["function","count"]],["=","certname","x"],["group_by","status"]] | []
/nodes | ["extract",[["function","count"],"deactivated"],["=","node_state","any"],["group_by","deactivated"]] | [{"count":3,"deactivated":null},{"count":1,"deactivated":"2026-11-13T00:00:00.000Z"}]
/facts/os | null | [{"certname":"d","environment":"production","name":"os","value":{"a":2,"bb":1}}]
/inventory | ["extract","facts",["=","certname","b"]] | [{"facts":{"os": {"family": "RedHat"}, "up": "5"}}]
"#;

#[test]
fn before_8_6_a_path_is_no_filter_that_narrows_to_numeric_facts() {
    let fact = |value| json!({"certname": "a", "name": "x", "value": value});
    let old = Estate::new("7.12.1").with(Entity::Facts, [fact(json!(1)), fact(json!("one"))]);
    let query = r#"["extract",[["function","sum","value"]]]"#;
    assert_eq!(get(&old, "/facts/x", &[("query", query)]).status, 500);
    let query = r#"["extract",[["function","sum","value"]],["~","certname","."]]"#;
    assert_eq!(
        get(&old, "/facts/x", &[("query", query)]).body,
        r#"[{"sum":1}]"#
    );
}

#[test]
fn order_limit_offset_and_total_work_together() {
    for [path, params, name, values, total] in lines(PAGES) {
        let params: Vec<_> = params
            .split('&')
            .filter_map(|it| it.split_once('='))
            .collect();
        let answer = get(&estate(), path, &params);
        assert_eq!(column(&answer, name), values, "{path} {params:?}");
        let told = answer.total.map_or_else(String::new, |it| it.to_string());
        assert_eq!(told, total, "{path} {params:?}");
    }
}

const PAGES: &str = r#"
/nodes | order_by=[{"field":"report_timestamp"}] | certname | d a b |
/nodes | order_by=[{"field":"report_timestamp","order":"desc"}] | certname | b a d |
/nodes | limit=2&include_total=true | certname | a b | 3
/nodes | limit=2&offset=2 | certname | d |
/nodes | offset=9&include_total=TRUE | certname |  | 3
/nodes | include_total=1 | certname | a b d |
/facts | order_by=[{"field":"value"}]&limit=3 | name | note kernel kernel |
/facts | order_by=[{"field":"name","order":"desc"},{"field":"certname"}]&limit=3 | name | virtual uptime uptime |
/reports | query=["extract",["status",["function","count"]],["group_by","status"]]&order_by=[{"field":"status","order":"desc"}]&limit=2&include_total=true | status | unchanged failed | 3
root | query=["from","nodes",["order_by",[["certname","desc"]]],["limit",2],["offset",1]] | certname | b a |
# Parameters beat the clauses in the query.
root | query=["from","nodes",["limit",2]]&limit=1 | certname | a |
"#;

#[test]
fn fact_names_are_sorted_strings_of_all_nodes() {
    let names = |params: &[(&str, &str)]| get(&estate(), "/fact-names", params).body;
    assert_eq!(names(&[]), r#"["kernel","note","os","uptime","virtual"]"#);
    assert_eq!(
        names(&[
            ("order_by", r#"[{"field":"name","order":"desc"}]"#),
            ("limit", "2")
        ]),
        r#"["virtual","uptime"]"#
    );
    assert_eq!(
        names(&[("pretty", "true"), ("limit", "2")]),
        r#"[ "kernel", "note" ]"#
    );
}

#[test]
fn event_counts_count_every_status_of_a_subject() {
    for [params, body] in lines(COUNTS) {
        let params: Vec<_> = params
            .split('&')
            .filter_map(|it| it.split_once('='))
            .collect();
        assert_eq!(get(&estate(), "/event-counts", &params).body, body);
    }
}

const COUNTS: &str = r#"
summarize_by=certname&query=["=","certname","a"] | [{"failures":1,"skips":0,"successes":2,"noops":0,"subject_type":"certname","subject":{"title":"a"}}]
summarize_by=certname&query=["and",["=","latest_report?",true],["~","certname","a|d"]] | [{"failures":0,"skips":0,"successes":2,"noops":0,"subject_type":"certname","subject":{"title":"a"}},{"failures":0,"skips":0,"successes":0,"noops":1,"subject_type":"certname","subject":{"title":"d"}}]
summarize_by=resource | [{"failures":1,"skips":1,"successes":2,"noops":1,"subject_type":"resource","subject":{"type":"Service","title":"ntp"}}]
summarize_by=containing_class&query=["=","status","noop"] | [{"failures":0,"skips":0,"successes":0,"noops":1,"subject_type":"containing_class","subject":{"title":null}}]
 | Missing required query parameter 'summarize_by'
summarize_by=certname,resource | Unsupported value for 'summarize_by': 'certname,resource'
summarize_by=certname&count_by=certname | This sample PuppetDB does not evaluate count_by=certname
"#;
