//! Help, version, manual, completions and docs/configuration.md.

use std::fs;
use std::path::Path;

use pdbmux::config::{KEYS, Key};
use tempfile::tempdir;

use super::{printed, program};

fn output(args: &[&str]) -> String {
    let dir = tempdir().unwrap();
    let run = program(&dir).args(args).assert().success().stderr("");
    printed(&run.get_output().stdout, &dir)
}

#[test]
fn r288_help_explains_every_flag_variable_and_key() {
    let help = output(&["--help"]);
    for key in KEYS {
        assert!(
            help.contains(&format!("\n  {}  {}", key.name, key.env())),
            "{}",
            key.name
        );
    }
    insta::assert_snapshot!("help_long", help);
    insta::assert_snapshot!("help_short", output(&["-h"]));
    insta::assert_snapshot!("help_config_init", output(&["config", "init", "--help"]));
}

#[test]
fn r287_version_is_printed_by_command_and_by_flag() {
    assert_eq!(output(&["version"]), "pdbmux [version]\n");
    assert_eq!(output(&["--version"]), "pdbmux [version]\n");
}

#[test]
fn the_manual_and_the_completions_name_every_flag_and_command() {
    let flags: Vec<_> = KEYS.iter().filter_map(|key| key.flag).collect();
    let flags = flags.into_iter().chain([
        "config", "force", "format", "help", "ready", "strict", "version",
    ]);
    let commands = [
        "serve",
        "demo",
        "config",
        "init",
        "show",
        "healthcheck",
        "check",
        "drift",
        "version",
        "completions",
        "man",
    ];
    let words: Vec<_> = flags.chain(commands).collect();
    for args in [
        &["man"][..],
        &["completions", "bash"],
        &["completions", "zsh"],
        &["completions", "fish"],
    ] {
        // Roff writes a dash of a flag as \-.
        let page = output(args).replace('\\', "");
        for word in &words {
            assert!(page.contains(word), "{args:?} lacks {word}");
        }
    }
    let manual = output(&["man"]).replace(r"\*(Aq", "'").replace('\\', "");
    for key in KEYS {
        assert!(manual.contains(&key.env()), "{}", key.name);
        assert!(manual.contains(key.doc), "{}", key.name);
    }
}

#[test]
fn a_mistyped_flag_or_command_ends_with_status_2() {
    let dir = tempdir().unwrap();
    for args in [
        &["--lisen", ":1"][..],
        &["serv"],
        &["config"],
        &["completions", "tcsh"],
    ] {
        program(&dir).args(args).assert().code(2).stdout("");
    }
}

const BEGIN: &str = "<!-- keys: written by `UPDATE_DOCS=1 cargo test`, not by hand -->\n";
const END: &str = "<!-- end of keys -->\n";

#[test]
fn the_table_in_the_documentation_is_the_table_of_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let right = format!("{before}{BEGIN}{}{END}{after}", table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &right).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap();
    assert!(
        page == right,
        "docs/configuration.md is out of date: run with UPDATE_DOCS=1"
    );
}

fn table() -> String {
    let rows: String = KEYS.iter().map(row).collect();
    format!("| Key | Variable | Flag | Default | Meaning |\n|---|---|---|---|---|\n{rows}")
}

fn row(key: &Key) -> String {
    let code = |text: &str| match text {
        "" => String::new(),
        text => format!("`{text}`"),
    };
    let flag = key.flag.map(|flag| format!("--{flag}")).unwrap_or_default();
    format!(
        "| {} | {} | {} | {} | {} |\n",
        code(key.name),
        code(&key.env()),
        code(&flag),
        code(&key.default_text()),
        key.doc
    )
}
