//! Metrics answers of several backends, by example and against a naive merge ([`naive`]).

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are tests

use pdbmux_core::merge::damage::Damage;
use pdbmux_core::merge::jolokia::{Body, Merged, ReadRequest, list, mbean, mbeans_index, read};

#[path = "jolokia/naive.rs"]
mod naive;

fn bytes(bodies: &[impl AsRef<str>]) -> Vec<&[u8]> {
    bodies.iter().map(|body| body.as_ref().as_bytes()).collect()
}

fn made(merged: Merged) -> String {
    match merged.body {
        Body::Made(body) => String::from_utf8(body).unwrap(),
        other => panic!("nothing was merged: {other:?}"),
    }
}

/// A good answer with this value.
fn answer(value: &str) -> String {
    format!(r#"{{"request":{{"type":"read"}},"value":{value},"timestamp":1,"status":200}}"#)
}

/// The merged value of a read of `path`.
fn value(path: &str, values: &[&str]) -> String {
    let bodies: Vec<_> = values.iter().map(|value| answer(value)).collect();
    let body = made(read(&ReadRequest::from_path(path), &bytes(&bodies)));
    let (before, after) = (answer("|"), body);
    let (head, tail) = before.split_once('|').unwrap();
    let value = after.strip_prefix(head).and_then(|v| v.strip_suffix(tail));
    value.unwrap().to_owned()
}

#[test]
fn r248_the_first_envelope_carries_the_merged_value_and_the_newest_timestamp() {
    let first = "{\"timestamp\":1700000000, \"request\":{\"mbean\":\"a:name=x\\/y\",\"type\":\"read\"},\n\"value\":{\"Value\":8},\"x\":1E2,\"status\":200}";
    let other =
        r#"{"request":{"mbean":"other"},"value":{"Value":5},"timestamp":1700000009,"status":200}"#;
    let older = r#"{"value":{"Value":1},"timestamp":1600000000,"status":200}"#;
    let merged = read(&ReadRequest::default(), &bytes(&[first, other, older]));
    assert_eq!(merged.contributed, [0, 1, 2]);
    assert_eq!(
        made(merged),
        first
            .replace("1700000000", "1700000009")
            .replace("\"Value\":8", "\"Value\":14")
    );
}

#[test]
fn r249_r261_objects_unite_in_first_seen_order_and_keep_their_bytes() {
    assert_eq!(
        value(
            "a:b=c",
            &[
                r#"{"B":{ "x":1.50 ,"s":"a\/b"},"Alone":1E2}"#,
                r#"{"New":{"z" : 7e0}, "B":{"y":-0,"x":1}}"#,
                r#"{"Newer":[1.0],"New":{"z":1}}"#,
            ]
        ),
        r#"{"B":{ "x":2.5 ,"s":"a\/b","y":-0},"Alone":1E2,"New":{"z" : 8.0},"Newer":[1.0]}"#
    );
}

#[test]
fn r249_keys_are_the_same_however_they_are_escaped_and_the_last_of_a_repeated_one_counts() {
    assert_eq!(
        value(
            "a:b=c",
            &[r#"{"a\/b":1,"k":1,"k":2}"#, r#"{"a/b":2,"\u006b":5,"k":3}"#]
        ),
        r#"{"a\/b":3,"k":1,"k":5}"#
    );
}

#[test]
fn r250_to_r255_each_kind_of_attribute_has_its_rule() {
    assert_eq!(
        value(
            "puppetlabs.puppetdb.mq:name=global.processing-time",
            &[
                r#"{"Count":10,"MeanRate":0.1,"Min":3,"Max":9,"Mean":4.0,"StdDev":1,"50thPercentile":2,"DurationUnit":"milliseconds","V":true,"N":null,"M":1}"#,
                r#"{"Count":5,"MeanRate":0.2,"Min":2.5,"Max":11.0,"Mean":5.0,"StdDev":2,"50thPercentile":3,"DurationUnit":"seconds","V":false,"N":4,"M":"x"}"#,
            ]
        ),
        r#"{"Count":15,"MeanRate":0.3,"Min":2.5,"Max":11.0,"Mean":4.5,"StdDev":1.5,"50thPercentile":2.5,"DurationUnit":"milliseconds","V":true,"N":null,"M":1}"#
    );
}

#[test]
fn t69_a_bare_value_is_combined_by_the_name_in_the_request() {
    for (path, expected) in [
        ("java.lang:type=Runtime/Uptime", "7"),
        ("java.lang%3Atype%3DRuntime/StartTime", "7"),
        ("a:name=!/pdb!/query.service-time/Min", "3"),
        ("a:name=%21%2Fpdb%21%2Fquery/75thPercentile", "5"),
        ("a:b=c/Value", "10"),
        ("a:b=c/Attribute/max", "7"),
        ("java.lang:type=Memory/HeapMemoryUsage/max", "10"),
        ("a:name=avg-x/Value", "5"),
    ] {
        assert_eq!(value(path, &["7", "3"]), expected, "{path}");
    }
}

#[test]
fn t69_an_unknown_request_is_read_from_the_first_good_answer() {
    let refused = r#"{"request":{"attribute":"Min"},"status":404}"#;
    let answer = |request: &str, value: u8| {
        format!(r#"{{"request":{request},"value":{value},"status":200}}"#)
    };
    for (request, expected) in [
        (r#"{"mbean":"a:b=c","attribute":"Uptime"}"#, 7),
        (r#"{"mbean":"a:name=pct-x","attribute":"Value"}"#, 5),
        (r#"{"mbean":"a:b=c","attribute":"x","path":"y\/min"}"#, 3),
        ("7", 10),
    ] {
        let bodies = [refused.into(), answer(request, 7), answer("null", 3)];
        let merged = read(&ReadRequest::default(), &bytes(&bodies));
        assert_eq!(made(merged), answer(request, expected));
    }
}

#[test]
fn t70_t71_averages_take_the_mean_of_their_ratios_also_when_read_by_pattern() {
    let values = [
        r#"{"p:name=avg-x":{"Value":"1\/2"},"p:name=num-x":{"Value":1}}"#,
        r#"{"p:name=num-x":{"Value":2},"p:name=avg-x":{"Value":1}}"#,
    ];
    let expected = r#"{"p:name=avg-x":{"Value":0.75},"p:name=num-x":{"Value":3}}"#;
    for pattern in ["p:*", "p:name=%2A", "p:name=???-x", "p:name=*/Value"] {
        assert_eq!(value(pattern, &values), expected, "{pattern}");
    }
    let values = [r#"{"Value":"-1\/9"}"#, r#"{"Value":"7\/2"}"#];
    assert_eq!(value("p:name=avg-x", &values), r#"{"Value":"7\/2"}"#);
}

#[test]
fn t72_t73_memory_adds_up_and_unknown_is_not_added() {
    assert_eq!(
        value(
            "java.lang:type=*",
            &[
                r#"{"java.lang:type=Memory":{"HeapMemoryUsage":{"init":1,"used":5,"committed":6,"max":8},"NonHeapMemoryUsage":{"used":1,"committed":1,"max":-1}}}"#,
                r#"{"java.lang:type=Memory":{"HeapMemoryUsage":{"init":1,"used":5,"committed":6,"max":9},"NonHeapMemoryUsage":{"used":1,"committed":1,"max":-1}}}"#,
            ]
        ),
        r#"{"java.lang:type=Memory":{"HeapMemoryUsage":{"init":2,"used":10,"committed":12,"max":17},"NonHeapMemoryUsage":{"used":2,"committed":2,"max":-1}}}"#
    );
    let usage = [
        r#"{"used":1,"committed":2,"max":3}"#,
        r#"{"used":1,"committed":2,"max":4}"#,
    ];
    assert_eq!(
        value("x:y=z/Usage", &usage),
        r#"{"used":2,"committed":4,"max":7}"#
    );
    let estimates = [r#"{"Value":-1}"#, r#"{"Value":70}"#, r#"{"Value":5}"#];
    assert_eq!(value("p:name=num-resources", &estimates), r#"{"Value":75}"#);
}

#[test]
fn r256_an_error_inside_http_200_is_skipped() {
    let error =
        r#"{"error_type":"javax.management.InstanceNotFoundException","error":"x","status":404}"#;
    let request = ReadRequest::from_path("a:b=c");
    let merged = read(
        &request,
        &bytes(&[error, &answer("1"), error, &answer("2")]),
    );
    assert_eq!(merged.skipped, [0, 2]);
    assert_eq!(merged.contributed, [1, 3]);
    assert_eq!(made(merged), answer("3"));
    assert_eq!(
        read(&request, &bytes(&[error, &answer("1")])).body,
        Body::Verbatim(1)
    );
}

#[test]
fn r257_if_all_report_an_error_the_first_one_is_replayed() {
    let bodies = [
        "<html>",
        r#"{"status":404}"#,
        r#"{"status":400,"error":"x"}"#,
    ];
    for merged in [
        read(&ReadRequest::default(), &bytes(&bodies)),
        list(&bytes(&bodies)),
    ] {
        assert_eq!(merged.body, Body::Verbatim(1));
        assert_eq!(merged.skipped, [1, 2]);
        assert!(merged.contributed.is_empty());
    }
}

#[test]
fn a_body_that_is_no_answer_is_damaged_and_nothing_is_made_of_damage_alone() {
    for (body, damage) in [
        ("", Damage::Malformed { line: 1, column: 0 }),
        ("<html>", Damage::Malformed { line: 1, column: 1 }),
        (
            "cb({\"value\":1,\"status\":200});",
            Damage::Malformed { line: 1, column: 1 },
        ),
        (
            "{\"value\":1-2,\"status\":200}",
            Damage::Malformed {
                line: 1,
                column: 11,
            },
        ),
        ("[]", Damage::NotAnEnvelope),
        ("\"No mbean\"", Damage::NotAnEnvelope),
        ("{\"value\":1}", Damage::NotAnEnvelope),
        ("{\"status\":200}", Damage::NotAnEnvelope),
        ("{\"value\":1,\"status\":\"200\"}", Damage::NotAnEnvelope),
    ] {
        let good = answer("1");
        let merged = list(&bytes(&[body, &good]));
        assert_eq!(merged.damaged, [(0, damage)], "{body}");
        assert_eq!(merged.body, Body::Verbatim(1), "{body}");
        assert_eq!(list(&bytes(&[body, body])).body, Body::Nothing, "{body}");
    }
    assert_eq!(list(&[]).body, Body::Nothing);
}

#[test]
fn a_cut_answer_is_damaged_wherever_it_was_cut() {
    let whole = answer(r#"{"a":{"b":[1,"x\/y"]},"c":-1.5e3}"#);
    for end in 0..whole.len() {
        let merged = read(&ReadRequest::default(), &[&whole.as_bytes()[..end]]);
        assert_eq!(merged.body, Body::Nothing, "cut at {end}");
    }
}

#[test]
fn hostile_nesting_is_damage() {
    let nest = |open: &str, middle: &str, close: &str, depth| {
        answer(&[open.repeat(depth).as_str(), middle, &close.repeat(depth)].concat())
    };
    let objects = |depth| nest("{\"a\":", "1", "}", depth);
    let (good, deep) = (objects(32), objects(33));
    assert_eq!(made(list(&bytes(&[&good, &good]))), good);
    let merged = list(&bytes(&[&good, &deep]));
    assert_eq!(merged.damaged, [(1, Damage::TooDeep { limit: 32 })]);
    for body in [
        objects(100_000),
        nest("[", "", "]", 100_000),
        nest("[{\"a\":", "1", "}]", 100_000),
    ] {
        let merged = list(&bytes(&[&good, &body]));
        assert_eq!(merged.contributed, [0]);
        let merged = mbean("a", &bytes(&["{}", &body]));
        assert_eq!(merged.contributed, [0]);
    }
}

#[test]
fn r259_listings_unite_and_the_first_wins_on_leaves() {
    let trees = [
        r#"{"java.lang":{"type=Memory":{"attr":{"Max":{"rw":false,"type":"long"}},"desc":"one"}}}"#,
        r#"{"java.lang":{"type=Memory":{"attr":{"Max":{"rw":true},"Min":{"n":1}},"desc":"two"}},"p":"1"}"#,
    ];
    assert_eq!(
        made(list(&bytes(&trees.map(answer)))),
        answer(
            r#"{"java.lang":{"type=Memory":{"attr":{"Max":{"rw":false,"type":"long"},"Min":{"n":1}},"desc":"one"}},"p":"1"}"#
        )
    );
}

#[test]
fn t75_a_listing_of_another_shape_is_the_first_backends() {
    for values in [
        ["5", "7"],
        ["\"1\"", "{}"],
        ["[1]", "[2]"],
        ["{\"a\":\"1\"}", "\"1\""],
    ] {
        assert_eq!(made(list(&bytes(&values.map(answer)))), answer(values[0]));
    }
}

#[test]
fn r260_the_legacy_index_is_united() {
    let bodies = [
        r#"{"a:b=c":"/mbeans/a"}"#,
        r#"{"d:e=f":"/mbeans/d","a:b=c":"x"}"#,
    ];
    assert_eq!(
        made(mbeans_index(&bytes(&bodies))),
        r#"{"a:b=c":"/mbeans/a","d:e=f":"/mbeans/d"}"#
    );
    let merged = mbeans_index(&bytes(&["\"No mbean\"", bodies[0]]));
    assert_eq!(merged.damaged, [(0, Damage::NotAnObject)]);
    assert_eq!(merged.body, Body::Verbatim(1));
}

#[test]
fn r260_the_legacy_mbean_is_merged_without_an_envelope() {
    for (name, bodies, expected) in [
        (
            "a%3Aname%3Dnum-x",
            ["{\n  \"Value\" : 1\n}\n", r#"{"Value":2}"#],
            "{\n  \"Value\" : 3\n}",
        ),
        (
            "a%3Aname%3Davg-x",
            [r#"{"Value":1}"#, r#"{"Value":"4/2"}"#],
            r#"{"Value":1.5}"#,
        ),
        (
            "a",
            [r#"{"Max":1,"status":404}"#, r#"{"Max":2,"value":1}"#],
            r#"{"Max":2,"status":404,"value":1}"#,
        ),
        ("a", ["{ }", "{\"a\":1,\"b\":2}"], "{\"a\":1,\"b\":2 }"),
    ] {
        assert_eq!(made(mbean(name, &bytes(&bodies))), expected, "{name}");
    }
}
