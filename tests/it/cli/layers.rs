//! Who wins, for every key and every set of layers (R263, R285).

use pdbmux::config::{KEYS, Key, Origin};
use tempfile::tempdir;

use super::{load, write};

/// Three values of a key, for file, variable and flag: each differs from the one before it, and the
/// first and last from the default.
fn samples(key: &Key) -> [&'static str; 3] {
    match key.hint {
        "HOST:PORT" | "HOST:PORT,..." => [":1", "127.0.0.1:2", "[::1]:3"],
        "NAME=URL,..." => ["a=http://f", "b=http://v", "c=http://g"],
        "MODE" => ["static", "freshness", "static"],
        "POLICY" => ["refuse", "serve", "refuse"],
        "DURATION" => ["1s", "2s", "3s"],
        "BYTES" => ["10001", "10002", "10003"],
        "COUNT" => ["11", "12", "13"],
        "ORIGIN,..." => ["*", "http://a,https://b:8443", "https://c"],
        "NAME" => ["of_file", "of_variable", "of_flag"],
        "NAME=SECRET,..." => ["a=env:F", "b=file:/v", "c=env:G"],
        "SECRET" => ["env:FILE", "file:/variable", "env:FLAG"],
        "BOOL" => ["false", "true", "false"],
        "FILE" | "PATH" => ["/file", "/variable", "/flag"],
        "URL" => ["http://f", "https://v:1/x", "http://g"],
        "RATIO" => ["0.25", "0.5", "1"],
        "FORMAT" => ["json", "text", "json"],
        "FILTER" => ["warn", "debug", "error"],
        other => panic!("no samples of {other}"),
    }
}

fn in_file(key: &Key, text: &str) -> String {
    match (key.name, text.split_once('=')) {
        ("backends", Some((name, url))) => format!("backends:\n- name: {name}\n  url: {url}\n"),
        (name, _) => format!("{name}: '{text}'\n"),
    }
}

#[test]
fn r263_r285_each_layer_wins_over_the_ones_below_it() {
    // A build that cannot do what a key is for does not take it.
    let is_built = |key: &&Key| cfg!(feature = "otlp") || !key.name.starts_with("otlp_");
    for key in KEYS.iter().filter(is_built) {
        let [file, variable, flag] = samples(key);
        for layers in 0..8 {
            let (by_file, by_env, by_flag) = (layers & 1 > 0, layers & 2 > 0, layers & 4 > 0);
            if by_flag && key.flag.is_none() {
                continue;
            }
            let dir = tempdir().unwrap();
            // The same line in every file, with another key above it, so that lines are counted.
            let text = if by_file {
                in_file(key, file)
            } else {
                String::new()
            };
            write(&dir, "etc.yaml", format!("# a comment\n{text}"));
            let env = key.env();
            let env: Vec<_> = by_env
                .then_some((env.as_str(), variable))
                .into_iter()
                .collect();
            let flags: Vec<_> = by_flag.then_some((key.name, flag)).into_iter().collect();

            let loaded = load(&dir, &flags, &env).unwrap();

            let path = dir.path().join("etc.yaml");
            let (value, origin) = match (by_flag, by_env, by_file) {
                (true, _, _) => (flag.to_owned(), Origin::Flag(key.flag.unwrap())),
                (_, true, _) => (variable.to_owned(), Origin::Env(key.env())),
                (_, _, true) => (file.to_owned(), Origin::File { path, line: 2 }),
                _ => (key.default_text(), Origin::Default),
            };
            assert_eq!(key.show(&loaded.config), value, "{} {layers}", key.name);
            assert_eq!(*loaded.origin(key), origin, "{} {layers}", key.name);
            for other in KEYS.iter().filter(|other| other.name != key.name) {
                // TLS takes the place of what is served by default.
                if (key.name, other.name) == ("tls_listen", "listen") {
                    continue;
                }
                assert_eq!(
                    other.show(&loaded.config),
                    other.default_text(),
                    "{}",
                    other.name
                );
                assert_eq!(*loaded.origin(other), Origin::Default, "{}", other.name);
            }
        }
    }
}

#[test]
fn r263_a_bad_value_is_refused_although_a_higher_layer_replaces_it() {
    let dir = tempdir().unwrap();
    write(&dir, "etc.yaml", "timeout: soon\n");
    let why = load(&dir, &[], &[("PDBMUX_TIMEOUT", "5s")]).unwrap_err();
    assert!(why.to_string().starts_with("timeout \"soon\""), "{why}");
}
