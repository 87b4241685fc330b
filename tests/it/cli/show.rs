//! `config show` (R268, R290).

use tempfile::tempdir;

use super::{load, printed, program, write};

#[test]
fn r290_the_defaults_are_shown() {
    let dir = tempdir().unwrap();
    let loaded = load(&dir, &[], &[("HOME", "/her")]).unwrap();
    insta::assert_snapshot!(printed(loaded.to_string().as_bytes(), &dir));
}

const FILE: &str = "\
listen: ':1'
timeout: 5s
backends:
- name: pdb-a
  url: http://puppetdb1.example.com:8080
";

#[test]
fn r290_every_layer_and_every_note_is_shown() {
    let dir = tempdir().unwrap();
    write(&dir, "config.yaml", FILE);
    let run = |format| {
        let run = program(&dir)
            .env("PDBMUX_FACTS_TTL", "600s")
            .env("PDBMUX_SERVICE_HOST", "10.0.0.1")
            .env("PDBMUX_LOG_LEVLE", "debug")
            .args(["--listen", ":2", "config", "show", "--merge", "static"])
            .args(["--health-probe", "false", "--config", "config.yaml"])
            .args(["--format", format])
            .assert()
            .success()
            .stderr("");
        printed(&run.get_output().stdout, &dir)
    };
    insta::assert_snapshot!("show_layers_text", run("text"));
    insta::assert_snapshot!("show_layers_json", run("json"));
}

#[test]
fn r291_backends_alone_are_enough_to_show() {
    let dir = tempdir().unwrap();
    let list = "pdb-a=http://puppetdb1.example.com:8080,pdb-b=http://puppetdb2.example.com:8080";
    let run = program(&dir)
        .env("PDBMUX_BACKENDS", list)
        .args(["config", "show"])
        .assert()
        .success();
    let text = printed(&run.get_output().stdout, &dir);
    assert!(text.contains(&format!("\nbackends : {list}\n")), "{text}");
    assert!(!text.contains("# notes"), "{text}");
}

#[test]
fn what_is_set_of_each_backend_is_shown_without_secrets() {
    let dir = tempdir().unwrap();
    let file = "\
backend_ca: /etc/ca.pem
backends:
- name: a
  url: https://puppetdb1:8081/pre
  cert: /etc/cert.pem
  key: /etc/key.pem
  headers: X-Authentication=env:TOKEN
  user: reader
  password: file:/run/password
  timeout: 5s
  gzip: yes
  http2: yes
- {name: b, url: 'http://puppetdb2:8080'}
";
    write(&dir, "config.yaml", file);
    let show = |format| {
        let run = program(&dir)
            .env("TOKEN", "hush")
            .args([
                "config",
                "show",
                "--config",
                "config.yaml",
                "--format",
                format,
            ])
            .assert()
            .success()
            .stderr("");
        printed(&run.get_output().stdout, &dir)
    };
    let text = show("text");
    let a = "a=https://puppetdb1:8081/pre {cert: /etc/cert.pem, key: /etc/key.pem, timeout: 5s, \
             headers: x-authentication=env:TOKEN, user: reader, password: file:/run/password, \
             gzip: true, http2: true}";
    let line = format!("\nbackends : {a},b=http://puppetdb2:8080\n");
    assert!(text.contains(&line), "{text}");
    assert!(text.contains("\nbackend_ca : /etc/ca.pem\n"), "{text}");
    assert!(!text.contains("hush") && !show("json").contains("hush"));
}
