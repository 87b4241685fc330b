//! Every refusal: one sentence on standard error, and status 2.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use tempfile::{TempDir, tempdir};

use super::{printed, program, write};

/// Runs the program and gives its one line of complaint.
fn sentence(command: &mut assert_cmd::Command, dir: &TempDir) -> String {
    let run = command.assert().code(2).stdout("");
    let text = printed(&run.get_output().stderr, dir);
    let line = text.strip_prefix("pdbmux: ").expect(&text);
    let line = line.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'), "more than a line: {text}");
    assert!(!line.contains("secret"), "a password: {text}");
    line.to_owned()
}

#[test]
fn each_bad_value_of_a_variable_is_one_sentence() {
    let mut golden = String::new();
    for (name, value) in [
        ("PDBMUX_LISTEN", "8080"),
        ("PDBMUX_LISTEN", ":http"),
        ("PDBMUX_LISTEN", ":1,"),
        ("PDBMUX_LISTEN", "::1:80"),
        ("PDBMUX_LISTEN", "a b:80"),
        ("PDBMUX_BACKENDS", ""),
        ("PDBMUX_BACKENDS", "http://h"),
        ("PDBMUX_BACKENDS", "=http://h"),
        ("PDBMUX_BACKENDS", "a="),
        ("PDBMUX_BACKENDS", "a=http://h,"),
        ("PDBMUX_BACKENDS", "a\nb=http://h"),
        ("PDBMUX_BACKENDS", "a=http://h,a=http://i"),
        ("PDBMUX_BACKENDS", "a=h:80"),
        ("PDBMUX_BACKENDS", "a=ftp://h"),
        ("PDBMUX_BACKENDS", "a=http://"),
        ("PDBMUX_BACKENDS", "a=http://h:99999"),
        ("PDBMUX_BACKENDS", "a=http://h/?token=secret"),
        ("PDBMUX_BACKENDS", "a=http://h/#top"),
        ("PDBMUX_BACKENDS", "a=http://user:secret@h"),
        ("PDBMUX_BACKENDS", "a=http://user:x,secret@h"),
        ("PDBMUX_BACKENDS", "a=http://h\u{7}"),
        ("PDBMUX_BACKENDS", "a=http://::1:80"),
        ("PDBMUX_MERGE", "newest"),
        ("PDBMUX_TIMEOUT", ""),
        ("PDBMUX_TIMEOUT", "30"),
        ("PDBMUX_TIMEOUT", "1d"),
        ("PDBMUX_TIMEOUT", "1 hour"),
        ("PDBMUX_TIMEOUT", "-5s"),
        ("PDBMUX_TIMEOUT", "soon"),
        ("PDBMUX_TIMEOUT", "9999999h"),
        ("PDBMUX_TIMEOUT", "0"),
        ("PDBMUX_FACTS_CACHE_BYTES", "64MiB"),
        ("PDBMUX_FACTS_CACHE_BYTES", "99999999999999999999"),
        ("PDBMUX_SOURCE_FACT", " "),
        ("PDBMUX_SOURCE_FACT", "a\tb"),
        ("PDBMUX_SOURCE_FACT_ENABLED", "maybe"),
        ("PDBMUX_HEALTH_PROBE_PATH", "status"),
        ("PDBMUX_HEALTH_PROBE_FAILURES", "0"),
        ("PDBMUX_HEALTH_PROBE_SUCCESSES", "-1"),
        ("PDBMUX_MAX_BODY_BYTES", "0"),
        ("PDBMUX_LOG_FORMAT", "xml"),
        ("PDBMUX_LOG_LEVEL", "verbose"),
        ("PDBMUX_LOG_LEVEL", "pdbmux=loud"),
        ("PDBMUX_BACKEND_CA", ""),
        ("PDBMUX_BACKEND_SERVER_NAME", "a:1"),
        ("PDBMUX_BACKEND_HEADERS", "x-a=secret"),
        ("PDBMUX_BACKEND_HEADERS", "secret"),
        ("PDBMUX_BACKEND_HEADERS", "host=secret"),
        ("PDBMUX_BACKEND_PASSWORD", "secret"),
        ("PDBMUX_BACKEND_GZIP", "9"),
        ("PDBMUX_BACKEND_MAX_IN_FLIGHT", "1"),
        ("PDBMUX_BASE_PATH", "/"),
        ("PDBMUX_CORS_ORIGINS", "https://a/,*"),
        ("PDBMUX_MAX_HEAD_BYTES", "8191"),
        ("PDBMUX_CONFIG", ""),
        ("PDBMUX_CONFIG", "/nonexistent/config.yaml"),
        ("PDBMUX_CONFIG", "."),
    ] {
        let dir = tempdir().unwrap();
        let line = sentence(
            program(&dir).env(name, value).args(["config", "show"]),
            &dir,
        );
        writeln!(golden, "{name}={value:?}\n    {line}").unwrap();
    }
    insta::assert_snapshot!(golden);
}

#[test]
fn each_bad_file_is_one_sentence_with_its_line() {
    let mut golden = String::new();
    for file in [
        "# a comment\nlisen: ':1'\n",
        "proxy: x\n",
        "listen: ':1'\nlisten: ':2'\n",
        "listen:\n",
        "listen: 8080\n",
        "listen: []\n",
        "listen: [':1', 'x']\n",
        "listen: {a: b}\n",
        "timeout: 5s\nmerge: newest\n",
        "timeout:\n",
        "timeout: 30\n",
        "timeout: [1s]\n",
        "backends: a=http://h\n",
        "backends:\n- http://h\n",
        "backends:\n- name: a\n  uri: http://h\n",
        "backends:\n- name: a\n- name: b\n  url: http://h\n",
        "backends:\n- url: http://h\n",
        "backends:\n- name: a\n  url: http://h\n- name: a\n  url: http://i\n",
        "backends:\n- name: a b\n  url: http://h\n",
        "backends:\n- name: a\n  url: http://user:secret@h\n",
        "backends:\n- name: a\n  url: http://h\n  timeout: 5\n",
        "backends:\n- name: a\n  url: http://h\n  password: secret\n  user: b\n",
        "backends:\n- name: a\n  url: http://h\n  headers:\n    x-a: secret\n",
        "backends:\n- name: a\n  url: http://h\n  cert: /c\n",
        "backend_user: me\nbackends:\n- name: a\n  url: http://h\n",
        "- listen\n",
        "listen\n",
        "timeout: '5s\n",
        "a: b: c\n",
        "timeout: 5s\n---\ntimeout: 6s\n",
    ] {
        let dir = tempdir().unwrap();
        write(&dir, "config.yaml", file);
        let args = ["config", "show", "--config", "config.yaml"];
        let line = sentence(program(&dir).args(args), &dir);
        writeln!(golden, "{file:?}\n    {line}").unwrap();
    }
    insta::assert_snapshot!(golden);
}

#[test]
fn each_bad_flag_is_one_sentence() {
    let mut golden = String::new();
    for args in [
        ["--listen", "8080"],
        ["--merge", "newest"],
        ["--merge", ""],
        ["--health-probe", "maybe"],
        ["--config", "gone.yaml"],
    ] {
        let dir = tempdir().unwrap();
        let line = sentence(program(&dir).args(args), &dir);
        writeln!(golden, "{args:?}\n    {line}").unwrap();
    }
    insta::assert_snapshot!(golden);
}

#[test]
fn bytes_that_are_no_text_are_one_sentence() {
    let dir = tempdir().unwrap();
    let bytes = OsStr::from_bytes(b"\xff");
    let line = sentence(program(&dir).env("PDBMUX_LISTEN", bytes), &dir);
    assert_eq!(line, "PDBMUX_LISTEN is not UTF-8 text");
    write(&dir, "config.yaml", b"listen: \xff\n");
    let line = sentence(program(&dir).env("PDBMUX_CONFIG", "config.yaml"), &dir);
    assert_eq!(line, "the config file config.yaml is not UTF-8 text");
}

#[test]
fn an_endless_file_is_not_read_to_its_end() {
    let dir = tempdir().unwrap();
    let line = sentence(program(&dir).env("PDBMUX_CONFIG", "/dev/zero"), &dir);
    assert_eq!(line, "the config file /dev/zero is larger than 1 MiB");
}

#[test]
fn serving_without_a_secret_is_one_sentence() {
    let dir = tempdir().unwrap();
    let mut command = program(&dir);
    command.env("PDBMUX_BACKENDS", "a=http://h");
    command.env("PDBMUX_BACKEND_HEADERS", "x-authentication=env:TOKEN");
    assert_eq!(
        sentence(&mut command, &dir),
        "the variable TOKEN is to hold a credential and is not set"
    );
}

#[cfg(feature = "otlp")]
#[test]
fn what_no_collector_of_traces_can_be_is_one_sentence() {
    for (variable, value, why) in [
        (
            "PDBMUX_OTLP_ENDPOINT",
            "collector:4318",
            "otlp_endpoint \"collector:4318\" (PDBMUX_OTLP_ENDPOINT) has no scheme: write \
             http://host:port or https://host:port",
        ),
        (
            "PDBMUX_OTLP_SAMPLE",
            "10%",
            "otlp_sample \"10%\" (PDBMUX_OTLP_SAMPLE) is not a number from 0 to 1",
        ),
        (
            "PDBMUX_OTLP_HEADERS",
            "x-token=hush",
            "otlp_headers (not shown: it may hold a password) (PDBMUX_OTLP_HEADERS) is neither \
             file:PATH nor env:NAME: what is in them is not taken here",
        ),
    ] {
        let dir = tempdir().unwrap();
        let line = sentence(program(&dir).env(variable, value), &dir);
        assert_eq!(line, why);
    }
    let dir = tempdir().unwrap();
    let mut command = program(&dir);
    command.env("PDBMUX_BACKENDS", "a=http://h");
    command.env("PDBMUX_OTLP_SAMPLE", "0.1");
    assert_eq!(
        sentence(&mut command, &dir),
        "otlp_sample is set and otlp_endpoint is not, which it needs"
    );
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_build_that_tells_no_collector_of_traces_says_so() {
    for (key, value) in [
        ("otlp_endpoint", "http://collector:4318"),
        ("otlp_headers", "x-token=env:TOKEN"),
        ("otlp_sample", "0.1"),
    ] {
        let (dir, variable) = (tempdir().unwrap(), format!("PDBMUX_{}", key.to_uppercase()));
        let line = sentence(program(&dir).env(&variable, value), &dir);
        let why = "needs a build of pdbmux with the cargo feature otlp, which this one is not";
        assert_eq!(line, format!("{key} \"{value}\" ({variable}) {why}"));
    }
}

#[test]
fn serving_without_a_backend_is_one_sentence() {
    let dir = tempdir().unwrap();
    let line = sentence(&mut program(&dir), &dir);
    assert_eq!(
        line,
        "no backend is configured: set PDBMUX_BACKENDS=name=url,... or list backends in a config \
         file"
    );
}
