//! Each key, by its name, variable, flag and default.

use pdbmux::config::{Config, Flags, KEYS};
use pdbmux_core::settings::{Settings, Strategy};
use tempfile::tempdir;

use super::{load, write};

/// The keys as they are specified; the ones without a number are our own.
const SPECIFIED: &[(&str, &str, &str, Option<&str>, &str)] = &[
    ("R269", "listen", "PDBMUX_LISTEN", Some("listen"), ":8080"),
    ("", "admin_listen", "PDBMUX_ADMIN_LISTEN", None, ""),
    ("", "tls_listen", "PDBMUX_TLS_LISTEN", None, ""),
    ("", "tls_cert", "PDBMUX_TLS_CERT", None, ""),
    ("", "tls_key", "PDBMUX_TLS_KEY", None, ""),
    ("", "tls_client_ca", "PDBMUX_TLS_CLIENT_CA", None, ""),
    ("", "tls_allowlist", "PDBMUX_TLS_ALLOWLIST", None, ""),
    ("", "tokens", "PDBMUX_TOKENS", None, ""),
    ("", "users", "PDBMUX_USERS", None, ""),
    ("", "base_path", "PDBMUX_BASE_PATH", None, ""),
    ("", "cors_origins", "PDBMUX_CORS_ORIGINS", None, ""),
    ("R271", "backends", "PDBMUX_BACKENDS", None, ""),
    ("", "backend_ca", "PDBMUX_BACKEND_CA", None, ""),
    ("", "backend_cert", "PDBMUX_BACKEND_CERT", None, ""),
    ("", "backend_key", "PDBMUX_BACKEND_KEY", None, ""),
    (
        "",
        "backend_server_name",
        "PDBMUX_BACKEND_SERVER_NAME",
        None,
        "",
    ),
    ("", "backend_headers", "PDBMUX_BACKEND_HEADERS", None, ""),
    ("", "backend_user", "PDBMUX_BACKEND_USER", None, ""),
    ("", "backend_password", "PDBMUX_BACKEND_PASSWORD", None, ""),
    ("", "backend_gzip", "PDBMUX_BACKEND_GZIP", None, ""),
    ("", "backend_http2", "PDBMUX_BACKEND_HTTP2", None, ""),
    (
        "",
        "backend_max_in_flight",
        "PDBMUX_BACKEND_MAX_IN_FLIGHT",
        None,
        "",
    ),
    ("", "backend_origin", "PDBMUX_BACKEND_ORIGIN", None, ""),
    ("R272", "merge", "PDBMUX_MERGE", Some("merge"), "freshness"),
    ("R273", "timeout", "PDBMUX_TIMEOUT", None, "10s"),
    ("R274", "freshness_ttl", "PDBMUX_FRESHNESS_TTL", None, "30s"),
    ("R275", "facts_ttl", "PDBMUX_FACTS_TTL", None, "30s"),
    (
        "R276",
        "facts_cache_bytes",
        "PDBMUX_FACTS_CACHE_BYTES",
        None,
        "67108864",
    ),
    (
        "R277",
        "source_fact",
        "PDBMUX_SOURCE_FACT",
        None,
        "pdbmux_source",
    ),
    (
        "R278",
        "source_fact_enabled",
        "PDBMUX_SOURCE_FACT_ENABLED",
        None,
        "true",
    ),
    (
        "R279",
        "health_probe_enabled",
        "PDBMUX_HEALTH_PROBE_ENABLED",
        Some("health-probe"),
        "true",
    ),
    (
        "R280",
        "health_probe_path",
        "PDBMUX_HEALTH_PROBE_PATH",
        None,
        "/status/v1/services",
    ),
    (
        "R281",
        "health_probe_interval",
        "PDBMUX_HEALTH_PROBE_INTERVAL",
        None,
        "10s",
    ),
    (
        "R282",
        "health_probe_timeout",
        "PDBMUX_HEALTH_PROBE_TIMEOUT",
        None,
        "5s",
    ),
    (
        "R283",
        "health_probe_failures",
        "PDBMUX_HEALTH_PROBE_FAILURES",
        None,
        "3",
    ),
    (
        "R284",
        "health_probe_successes",
        "PDBMUX_HEALTH_PROBE_SUCCESSES",
        None,
        "2",
    ),
    ("", "buffer_bytes", "PDBMUX_BUFFER_BYTES", None, "16777216"),
    (
        "",
        "max_body_bytes",
        "PDBMUX_MAX_BODY_BYTES",
        None,
        "1073741824",
    ),
    ("", "memory_bytes", "PDBMUX_MEMORY_BYTES", None, "0"),
    (
        "",
        "max_listed_nodes",
        "PDBMUX_MAX_LISTED_NODES",
        None,
        "20000",
    ),
    ("", "gzip", "PDBMUX_GZIP", None, "true"),
    ("", "gzip_min_bytes", "PDBMUX_GZIP_MIN_BYTES", None, "1024"),
    ("", "hedge_after", "PDBMUX_HEDGE_AFTER", None, "0s"),
    (
        "",
        "detect_shared_database",
        "PDBMUX_DETECT_SHARED_DATABASE",
        None,
        "true",
    ),
    ("", "eject_failures", "PDBMUX_EJECT_FAILURES", None, "0"),
    ("", "eject_time", "PDBMUX_EJECT_TIME", None, "30s"),
    ("", "partial", "PDBMUX_PARTIAL", None, "serve"),
    (
        "",
        "max_request_bytes",
        "PDBMUX_MAX_REQUEST_BYTES",
        None,
        "1048576",
    ),
    (
        "",
        "max_head_bytes",
        "PDBMUX_MAX_HEAD_BYTES",
        None,
        "417792",
    ),
    ("", "max_in_flight", "PDBMUX_MAX_IN_FLIGHT", None, "0"),
    ("", "queue_length", "PDBMUX_QUEUE_LENGTH", None, "100"),
    ("", "queue_timeout", "PDBMUX_QUEUE_TIMEOUT", None, "1s"),
    ("", "max_per_client", "PDBMUX_MAX_PER_CLIENT", None, "0"),
    ("", "header_timeout", "PDBMUX_HEADER_TIMEOUT", None, "10s"),
    ("", "idle_timeout", "PDBMUX_IDLE_TIMEOUT", None, "1m15s"),
    ("", "max_connections", "PDBMUX_MAX_CONNECTIONS", None, "0"),
    ("", "reload_interval", "PDBMUX_RELOAD_INTERVAL", None, "0s"),
    ("", "drain_delay", "PDBMUX_DRAIN_DELAY", None, "0s"),
    (
        "",
        "shutdown_timeout",
        "PDBMUX_SHUTDOWN_TIMEOUT",
        None,
        "30s",
    ),
    ("", "log_format", "PDBMUX_LOG_FORMAT", None, "text"),
    ("", "log_level", "PDBMUX_LOG_LEVEL", None, "info"),
    ("", "request_ids", "PDBMUX_REQUEST_IDS", None, "false"),
    ("", "access_log", "PDBMUX_ACCESS_LOG", None, "off"),
    ("", "slow_query", "PDBMUX_SLOW_QUERY", None, "0s"),
    ("", "otlp_endpoint", "PDBMUX_OTLP_ENDPOINT", None, ""),
    ("", "otlp_headers", "PDBMUX_OTLP_HEADERS", None, ""),
    ("", "otlp_sample", "PDBMUX_OTLP_SAMPLE", None, ""),
    ("", "core_dumps", "PDBMUX_CORE_DUMPS", None, "false"),
];

#[test]
fn r269_to_r284_every_key_has_its_specified_variable_flag_and_default() {
    let keys: Vec<_> = KEYS
        .iter()
        .map(|key| (key.name, key.env(), key.flag, key.default_text()))
        .collect();
    let specified: Vec<_> = SPECIFIED
        .iter()
        .map(|(_, name, env, flag, default)| {
            (*name, (*env).to_owned(), *flag, (*default).to_owned())
        })
        .collect();
    assert_eq!(keys, specified);
}

#[test]
fn r288_the_flags_of_keys_are_the_specified_three() {
    let flags: Vec<_> = KEYS.iter().filter_map(|key| key.flag).collect();
    assert_eq!(flags, ["listen", "merge", "health-probe"]);
}

#[test]
fn r270_r286_a_file_lists_backends_in_order_over_http_and_https() {
    let dir = tempdir().unwrap();
    let file = "backends:\n- name: z\n  url: http://h1:8080\n- {url: 'https://h2/', name: a}\n";
    write(&dir, "etc.yaml", file);
    let backends = load(&dir, &[], &[]).unwrap().config.backends;
    let pairs: Vec<_> = backends
        .iter()
        .map(|backend| (backend.name.as_str(), backend.url.to_string()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("z", "http://h1:8080".to_owned()),
            ("a", "https://h2".to_owned())
        ]
    );
}

#[test]
fn what_a_file_sets_of_a_backend_is_set_by_its_name() {
    let parts = [
        "ca: /ca",
        "cert: /cert",
        "key: /key",
        "server_name: puppetdb",
        "timeout: 5s",
        "headers: x-team=file:/team",
        "user: reader",
        "password: file:/password",
        "gzip: true",
        "max_in_flight: 8",
        "origin: true",
        "group: eu",
        "hedge_after: 200ms",
        "required: true",
    ];
    let dir = tempdir().unwrap();
    let file = format!(
        "backends:\n- name: a\n  url: http://h\n  {}\n",
        parts.join("\n  ")
    );
    write(&dir, "etc.yaml", file);
    let shown = load(&dir, &[], &[]).unwrap().to_string();
    let expected = format!("backends : a=http://h {{{}}}\n", parts.join(", "));
    assert!(shown.contains(&expected), "{shown}");
}

#[test]
fn r271_the_variable_replaces_the_whole_list() {
    let dir = tempdir().unwrap();
    write(
        &dir,
        "etc.yaml",
        "backends: [{name: a, url: 'http://h1'}, {name: b, url: 'http://h2'}]",
    );
    let loaded = load(&dir, &[], &[("PDBMUX_BACKENDS", "b=http://h3")]).unwrap();
    assert_eq!(loaded.config.backends.len(), 1);
    assert_eq!(loaded.config.backends[0].url.to_string(), "http://h3");
}

#[test]
fn r206_r207_r208_r275_facts_ttl_is_clamped_from_every_layer_that_sets_it() {
    for (typed, shown) in [
        ("600s", "facts_ttl : 30s (clamped from 600s, cap 30s)"),
        ("10m", "facts_ttl : 30s (clamped from 10m, cap 30s)"),
        ("30.001s", "facts_ttl : 30s (clamped from 30.001s, cap 30s)"),
        ("30s", "facts_ttl : 30s"),
        ("29s", "facts_ttl : 29s"),
        ("0", "facts_ttl : 0s"),
    ] {
        let dir = tempdir().unwrap();
        let by_env = load(&dir, &[], &[("PDBMUX_FACTS_TTL", typed)]).unwrap();
        write(&dir, "etc.yaml", format!("facts_ttl: {typed}\n"));
        let by_file = load(&dir, &[], &[]).unwrap();
        for loaded in [by_env, by_file] {
            assert!(loaded.config.facts_ttl <= std::time::Duration::from_secs(30));
            assert!(
                loaded.to_string().lines().any(|line| line == shown),
                "{loaded}"
            );
        }
    }
}

#[test]
fn a_clamped_value_that_a_higher_layer_replaces_leaves_no_note() {
    let dir = tempdir().unwrap();
    write(&dir, "etc.yaml", "facts_ttl: 600s\n");
    let loaded = load(&dir, &[], &[("PDBMUX_FACTS_TTL", "5s")]).unwrap();
    assert!(loaded.to_string().contains("\nfacts_ttl : 5s\n"));
}

#[test]
fn two_backends_of_one_url_are_noted() {
    let dir = tempdir().unwrap();
    let env = [("PDBMUX_BACKENDS", "a=http://h,b=http://i,c=HTTP://H/")];
    assert_eq!(
        load(&dir, &[], &env).unwrap().notes,
        ["the backends a and c have the same url: counts will be too high"]
    );
}

#[test]
fn r277_r278_settings_carry_the_source_fact_only_while_it_is_on() {
    let dir = tempdir().unwrap();
    let env = [
        ("PDBMUX_BACKENDS", "b=http://h1,a=http://h2"),
        ("PDBMUX_MERGE", "static"),
        ("PDBMUX_SOURCE_FACT", "origin"),
    ];
    let mut config: Config = load(&dir, &[], &env).unwrap().config;
    let settings = Settings {
        backends: vec!["b".to_owned(), "a".to_owned()],
        strategy: Strategy::Static,
        source: Some("origin".to_owned()),
    };
    assert_eq!(config.settings(), settings);
    config.source_fact_enabled = false;
    assert_eq!(config.settings().source, None);
}

#[test]
fn r269_a_file_lists_addresses_in_one_text_or_as_a_list() {
    for text in [
        ":1,[::1]:2",
        "[':1', '[::1]:2']",
        "\n  - ':1'\n  - '[::1]:2'",
        "':1, [::1]:2'",
    ] {
        let dir = tempdir().unwrap();
        write(&dir, "etc.yaml", format!("listen: {text}\n"));
        let loaded = load(&dir, &[], &[]).unwrap();
        assert!(
            loaded.to_string().contains("\nlisten : :1,[::1]:2\n"),
            "{text}"
        );
    }
}

#[test]
fn with_tls_nothing_is_served_without_it_unless_somebody_says_so() {
    let tls = ("PDBMUX_TLS_LISTEN", ":8081,[::1]:8082");
    let shown = |env: &[_]| {
        let config = load(&tempdir().unwrap(), &[], env).unwrap().config;
        let at: Vec<_> = pdbmux::listener::configured(&config)
            .iter()
            .map(|(at, _)| format!("{at} {:?}", at.transport))
            .collect();
        at.join(", ")
    };
    assert_eq!(shown(&[tls]), ":8081 Tls, [::1]:8082 Tls");
    assert_eq!(
        shown(&[tls, ("PDBMUX_LISTEN", ":8080")]),
        ":8080 Plain, :8081 Tls, [::1]:8082 Tls"
    );
}

#[test]
fn what_tls_needs_and_lacks_is_told_and_not_served_without() {
    let all = [
        ("PDBMUX_TLS_LISTEN", ":8081"),
        ("PDBMUX_TLS_CERT", "/cert"),
        ("PDBMUX_TLS_KEY", "/key"),
        ("PDBMUX_TLS_CLIENT_CA", "/ca"),
        ("PDBMUX_TLS_ALLOWLIST", "/list"),
        ("PDBMUX_BACKENDS", "a=http://h"),
        ("PDBMUX_CONFIG", "/dev/null"),
    ];
    let without = |missing: &[&str]| {
        let given = all.iter().filter(|(name, _)| !missing.contains(name));
        let env = given.copied().collect();
        pdbmux::config::load_to_serve(&Flags::default(), &env)
    };
    assert!(without(&[]).is_ok());
    assert!(without(&["PDBMUX_TLS_CLIENT_CA", "PDBMUX_TLS_ALLOWLIST"]).is_ok());
    let alone = ["PDBMUX_TLS_LISTEN", "PDBMUX_TLS_CERT", "PDBMUX_TLS_KEY"];
    for (missing, why) in [
        (
            &alone[..1],
            "tls_cert is set and tls_listen is not, which it needs",
        ),
        (
            &alone[1..2],
            "tls_listen is set and tls_cert is not, which it needs",
        ),
        (
            &alone[2..],
            "tls_listen is set and tls_key is not, which it needs",
        ),
        (
            &alone[..],
            "tls_client_ca is set and tls_listen is not, which it needs",
        ),
        (
            &["PDBMUX_TLS_CLIENT_CA"],
            "tls_allowlist is set and tls_client_ca is not, which it needs",
        ),
    ] {
        assert_eq!(without(missing).unwrap_err().to_string(), why);
    }
}
