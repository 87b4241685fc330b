//! What goes upstream is what came: paths, parameters, headers (ruling 13, R056, R258).

use crate::harness::Pdbmux;
use crate::stub::Stub;

/// Spellings that a careless proxy would change.
const SPELLINGS: [&str; 14] = [
    "a%2Fb",
    "a%2fb",
    "100%25",
    "a!%2Fb!!c",
    "a+b",
    "a%20b",
    "%C3%A9%c3%a9",
    "x;y=1,z",
    "%41%5a%7E~",
    "a:b@c&d=e'(f)*$",
    "%00%7F%ff",
    "...",
    "a//b",
    "%252e%252E",
];

#[tokio::test]
async fn ruling_13_the_raw_path_is_forwarded_byte_for_byte() {
    let a = Stub::start().await;
    a.otherwise("[]");
    let mux = Pdbmux::start(&[&a]).await;
    for spelling in SPELLINGS {
        for path in [
            "/pdb/query/v4/facts/",
            "/pdb/query/v4/facts/os/",
            "/pdb/query/v4/nodes/",
            "/pdb/query/v4/resources/File/",
            "/pdb/query/v4/environments/",
            "/metrics/v2/read/",
            "/metrics/v1/mbeans/",
        ] {
            let path = format!("{path}{spelling}");
            let before = a.asked().len();
            mux.get(&path).await;
            assert_eq!(a.asked()[before..], [path.as_str()]);
        }
    }
}

#[tokio::test]
async fn ruling_13_bytes_that_no_url_may_hold_arrive_as_they_came_or_are_refused() {
    let a = Stub::start().await;
    a.otherwise("[]");
    let mux = Pdbmux::start(&[&a]).await;
    for raw in [
        "/pdb/query/v4/environments/é",
        "/pdb/query/v4/environments?query=é",
        "/pdb/query/v4/environments?query=[\"=\",\"name\",\"x\"]",
        "/pdb/query/v4/environments/\"x\"{}|",
    ] {
        let response = mux.get(raw).await;
        match response.status {
            200 => assert_eq!(a.asked().pop().unwrap(), raw),
            status => assert_eq!(status, 400, "{raw}"),
        }
    }
}

#[tokio::test]
async fn ruling_13_dot_segments_are_refused_before_anyone_is_asked() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    for dots in ["..", ".", "%2e%2e", "%2E%2e", ".%2e", "%2e", "..;a=b", ".;"] {
        for path in [
            format!("/pdb/query/v4/{dots}/{dots}/admin/v1/archive"),
            format!("/pdb/query/v4/nodes/{dots}"),
            format!("/pdb/query/v4/facts/os/{dots}/x"),
            format!("/metrics/v2/read/{dots}/exec"),
            format!("/{dots}/pdb/query/v4/nodes"),
        ] {
            let response = mux.get(&path).await;
            assert_eq!(response.refusal(), "the path holds a dot segment", "{path}");
        }
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn ruling_13_malformed_escapes_are_refused_before_anyone_is_asked() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    for path in [
        "nodes",
        "facts",
        "facts/os",
        "nodes/n",
        "environments",
        "resources",
    ] {
        for escape in ["%", "%4", "%zz", "a%", "%%20"] {
            let response = mux
                .get(&format!("/pdb/query/v4/{path}?x=1&query={escape}"))
                .await;
            assert_eq!(
                response.refusal(),
                "the parameter 'query' holds a malformed percent-escape"
            );
            let response = mux.get(&format!("/pdb/query/v4/{path}/{escape}")).await;
            assert_eq!(
                response.refusal(),
                "the path holds a malformed percent-escape"
            );
        }
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn ruling_13_repeated_and_unknown_parameters_are_forwarded_as_they_came() {
    let a = Stub::start().await;
    a.fresh(&[]).otherwise("[]");
    let mux = Pdbmux::start(&[&a]).await;
    for path in [
        "nodes",
        "facts",
        "facts/os",
        "nodes/n",
        "environments",
        "resources",
    ] {
        for raw in [
            "limit=1&limit=2",
            "query=%5B%22%3D%22%5D&query=b&origin=a&origin=b",
            "order_by=x&order_by=y",
            "b=2&a=1&c&d=&%61=%5b",
        ] {
            let target = format!("/pdb/query/v4/{path}?{raw}");
            mux.get(&target).await.ok();
            assert_eq!(a.asked().pop().unwrap(), target);
        }
    }
}

#[tokio::test]
async fn t62_the_clients_headers_stay_here() {
    let a = Stub::start().await;
    a.fresh(&[]).otherwise("[]");
    let mux = Pdbmux::start(&[&a]).await;
    for path in [
        "nodes",
        "facts",
        "facts/os",
        "nodes/n",
        "environments",
        "resources",
    ] {
        let mut client = mux.connect().await;
        let head = format!(
            "GET /pdb/query/v4/{path} HTTP/1.1\r\nHost: evil\r\nAccept: text/html\r\n\
             Accept-Encoding: gzip, br\r\nAccept-Language: de\r\nX-PDB-Sync-Ver: 9\r\n\
             Authorization: Bearer secret\r\nX-Authentication: secret\r\nCookie: a=b\r\n\
             Range: bytes=0-1\r\nIf-None-Match: x\r\nX-Forwarded-For: 1.2.3.4\r\n\
             User-Agent: evil\r\nContent-Type: text/plain\r\n\r\n"
        );
        client.send(head).await;
        client.response().await.ok();
    }
    let address = a.address().to_string();
    for seen in a.seen() {
        assert_eq!(seen.method, "GET");
        let mut headers = seen.headers.clone();
        headers.sort();
        let agent = concat!("pdbmux/", env!("CARGO_PKG_VERSION"));
        let expected = [
            ("accept", "application/json"),
            ("host", &address),
            ("user-agent", agent),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers, expected, "{}", seen.target);
    }
}
