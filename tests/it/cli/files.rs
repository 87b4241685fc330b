//! Which file is read.

use pdbmux::config::FileChoice;
use tempfile::tempdir;

use super::{load, program, write};

/// Each file sets another port, so that the port tells which one was read.
fn port_of(setup: &[(&str, u16)], flag: Option<&'static str>, env: &[(&str, &str)]) -> u16 {
    let dir = tempdir().unwrap();
    for (name, port) in setup {
        write(&dir, name, format!("listen: ':{port}'\n"));
    }
    let at = |value: &str| value.replace("[dir]", dir.path().to_str().unwrap());
    let env: Vec<_> = env.iter().map(|(name, value)| (*name, at(value))).collect();
    let env: Vec<_> = env
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let flags: Vec<_> = flag.into_iter().map(|file| ("config", file)).collect();
    load(&dir, &flags, &env).unwrap().config.listen[0].port
}

const ALL: [(&str, u16); 5] = [
    ("flag.yaml", 1),
    ("variable.yaml", 2),
    ("xdg/pdbmux/config.yaml", 3),
    ("home/.config/pdbmux/config.yaml", 4),
    ("etc.yaml", 5),
];
const VARIABLE: (&str, &str) = ("PDBMUX_CONFIG", "[dir]/variable.yaml");
const XDG: (&str, &str) = ("XDG_CONFIG_HOME", "[dir]/xdg");
const HOME: (&str, &str) = ("HOME", "[dir]/home");

#[test]
fn r265_the_file_is_the_first_of_the_documented_places() {
    let flag = Some("flag.yaml");
    for (port, files, flag, env) in [
        (1, &ALL[..], flag, &[VARIABLE, XDG, HOME][..]),
        (2, &ALL, None, &[VARIABLE, XDG, HOME]),
        (3, &ALL, None, &[XDG, HOME]),
        (4, &ALL, None, &[HOME]),
        (5, &ALL, None, &[]),
        // Missing ones on the default path are passed over (R267)...
        (5, &ALL[4..], None, &[XDG, HOME]),
        (5, &ALL[4..], None, &[HOME]),
        // ...but XDG_CONFIG_HOME stands in the place of HOME, not before it.
        (5, &ALL[3..], None, &[XDG, HOME]),
        // The base directory specification takes an empty variable for an unset one.
        (4, &ALL, None, &[("XDG_CONFIG_HOME", ""), HOME]),
        (5, &ALL, None, &[("HOME", "")]),
        (8080, &[], None, &[XDG, HOME]),
    ] {
        assert_eq!(port_of(files, flag, env), port, "{env:?}");
    }
}

#[test]
fn r264_r267_no_file_at_all_is_fine() {
    let dir = tempdir().unwrap();
    let loaded = load(&dir, &[], &[("HOME", "/her")]).unwrap();
    let searched = [
        "/her/.config/pdbmux/config.yaml".into(),
        dir.path().join("etc.yaml"),
    ];
    assert_eq!(loaded.file, FileChoice::Searched(searched.to_vec()));
}

#[test]
fn r266_a_named_file_must_exist_even_where_another_one_does() {
    let dir = tempdir().unwrap();
    write(&dir, ".config/pdbmux/config.yaml", "listen: ':1'\n");
    for named in ["flag", "variable"] {
        let mut command = program(&dir);
        match named {
            "flag" => command.args(["--config", "gone.yaml"]),
            _ => command.env("PDBMUX_CONFIG", "gone.yaml"),
        };
        let by = if named == "flag" {
            "--config"
        } else {
            "PDBMUX_CONFIG"
        };
        command
            .args(["config", "show"])
            .assert()
            .code(2)
            .stderr(format!(
                "pdbmux: the config file gone.yaml does not exist ({by} names it)\n"
            ));
    }
}

#[test]
fn r268_show_tells_the_file_or_the_paths_searched() {
    let dir = tempdir().unwrap();
    let first_line = |loaded: pdbmux::config::Loaded| {
        let text = loaded.to_string();
        super::printed(text.lines().next().unwrap().as_bytes(), &dir)
    };
    let none = load(&dir, &[], &[("XDG_CONFIG_HOME", "/x")]).unwrap();
    assert_eq!(
        first_line(none),
        "config file : none (searched /x/pdbmux/config.yaml, [dir]/etc.yaml)"
    );
    write(&dir, "etc.yaml", "");
    let some = load(&dir, &[], &[("XDG_CONFIG_HOME", "/x")]).unwrap();
    assert_eq!(first_line(some), "config file : [dir]/etc.yaml");
}

#[test]
fn r268_a_user_file_is_found_by_the_program_itself() {
    let dir = tempdir().unwrap();
    write(&dir, ".config/pdbmux/config.yaml", "listen: ':1'\n");
    let run = program(&dir).args(["config", "show"]).assert().success();
    let text = super::printed(&run.get_output().stdout, &dir);
    assert!(text.starts_with("config file : [dir]/.config/pdbmux/config.yaml\n"));
    assert!(text.contains("\nlisten : :1\n"));
}
