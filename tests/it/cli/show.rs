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
