//! `config init` (R289).

use std::fs;

use pdbmux::config::KEYS;
use tempfile::tempdir;

use super::{load, program, write};

#[test]
fn r289_the_file_goes_to_the_flag_else_the_variable_else_the_user() {
    for (flag, variable, xdg, target) in [
        (
            Some("a/flag.yaml"),
            Some("variable.yaml"),
            Some("xdg"),
            "a/flag.yaml",
        ),
        (
            None,
            Some("b/variable.yaml"),
            Some("xdg"),
            "b/variable.yaml",
        ),
        (None, None, Some("xdg"), "xdg/pdbmux/config.yaml"),
        (None, None, None, ".config/pdbmux/config.yaml"),
    ] {
        let dir = tempdir().unwrap();
        let mut command = program(&dir);
        if let Some(flag) = flag {
            command.args(["--config", flag]);
        }
        if let Some(variable) = variable {
            command.env("PDBMUX_CONFIG", variable);
        }
        if let Some(xdg) = xdg {
            command.env("XDG_CONFIG_HOME", dir.path().join(xdg));
        }
        let run = command
            .args(["config", "init"])
            .assert()
            .success()
            .stderr("");
        let said = String::from_utf8(run.get_output().stdout.clone()).unwrap();
        assert!(
            said.starts_with("wrote ") && said.ends_with(&format!("{target}\n")),
            "{said}"
        );
        assert!(dir.path().join(target).is_file(), "{target}");
    }
}

#[test]
fn r289_without_any_place_to_write_it_says_so() {
    let dir = tempdir().unwrap();
    program(&dir)
        .env_remove("HOME")
        .args(["config", "init"])
        .assert()
        .code(2)
        .stderr(
            "pdbmux: there is no place for a config file: name one with --config, or set \
             XDG_CONFIG_HOME or HOME\n",
        );
}

#[test]
fn r289_what_is_written_loads_back_to_the_defaults() {
    let dir = tempdir().unwrap();
    program(&dir)
        .args(["config", "init", "--config", "etc.yaml"])
        .assert()
        .success();
    let file = fs::read_to_string(dir.path().join("etc.yaml")).unwrap();
    insta::assert_snapshot!("init_file", file);
    let loaded = load(&dir, &[], &[]).unwrap();
    for key in KEYS {
        assert_eq!(key.show(&loaded.config), key.default_text(), "{}", key.name);
        let line = format!("{}:", key.name);
        assert!(file.contains(&format!("\n{line}")) || file.contains(&format!("\n# {line}")));
    }
}

#[test]
fn r289_the_example_of_backends_in_it_is_one_to_use() {
    let dir = tempdir().unwrap();
    program(&dir)
        .args(["config", "init", "--config", "etc.yaml"])
        .assert()
        .success();
    let file = fs::read_to_string(dir.path().join("etc.yaml")).unwrap();
    let at = file.find("# backends:").unwrap();
    let (before, example) = file.split_at(at);
    write(
        &dir,
        "etc.yaml",
        format!("{before}{}", example.replacen("# ", "", 5)),
    );
    assert_eq!(load(&dir, &[], &[]).unwrap().config.backends.len(), 2);
}

#[test]
fn flags_given_to_init_stand_in_the_file() {
    let dir = tempdir().unwrap();
    program(&dir)
        .args([
            "config", "init", "--config", "etc.yaml", "--listen", "[::1]:9",
        ])
        .args(["--merge", "static", "--health-probe", "false"])
        .assert()
        .success();
    let config = load(&dir, &[], &[]).unwrap().config;
    assert_eq!(config.listen[0].to_string(), "[::1]:9");
    assert!(!config.health_probe_enabled);
    assert_eq!(config.merge, pdbmux_core::settings::Strategy::Static);
}

#[test]
fn a_file_that_is_there_is_replaced_by_force_alone() {
    let dir = tempdir().unwrap();
    write(&dir, "etc.yaml", "listen: ':1'\n");
    let args = ["config", "init", "--config", "etc.yaml"];
    program(&dir)
        .args(args)
        .assert()
        .code(1)
        .stderr("pdbmux: etc.yaml is there already: --force replaces it\n");
    assert_eq!(load(&dir, &[], &[]).unwrap().config.listen[0].port, 1);
    program(&dir).args(args).arg("--force").assert().success();
    assert_eq!(load(&dir, &[], &[]).unwrap().config.listen[0].port, 8080);
}

#[test]
fn a_folder_that_cannot_be_made_is_one_sentence() {
    let dir = tempdir().unwrap();
    write(&dir, "file", "");
    program(&dir)
        .args(["config", "init", "--config", "file/config.yaml"])
        .assert()
        .code(1)
        .stderr("pdbmux: file cannot be written: file exists\n");
}
