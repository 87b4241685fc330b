//! The long help, the manual page and the completion scripts.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::{Cli, Shell};
use crate::config::{KEYS, Key, SYSTEM_FILE, wrap};

const LAYERS: &str = "A value is taken from a flag, else from its PDBMUX_* variable, else from \
    the config file, else it is the default. `pdbmux config show` prints them all with their \
    origin. A variable that is set but empty is refused.";

const FORMS: &str = "A DURATION is written as 30s, 1m30s, 1.5s or 250ms; the units are h, m, s, \
    ms, us and ns, and 0 needs none. BYTES and COUNT are plain whole numbers. A BOOL is true or \
    false.";

const BACKENDS: &str = "In the file, backends is a list of entries with the keys name and url. \
    The variable PDBMUX_BACKENDS replaces that whole list:";

const EXAMPLE: &str =
    "PDBMUX_BACKENDS='pdb-a=http://pdb1.example.com:8080,pdb-b=https://pdb2.example.com'";

const EXITS: [(&str, &str); 4] = [
    ("0", "Done, or shut down as asked."),
    (
        "1",
        "Something failed: an address that cannot be bound, a file that cannot be written, a backend \
         that check finds unusable.",
    ),
    (
        "2",
        "The command line or the configuration cannot be used; one sentence on stderr says why.",
    ),
    ("3", "What drift --fail-if names is so."),
];

fn files() -> [(String, &'static str); 3] {
    [
        (
            "--config FILE, else PDBMUX_CONFIG".to_owned(),
            "A file named this way must exist, and no other is looked for.",
        ),
        (
            "$XDG_CONFIG_HOME/pdbmux/config.yaml".to_owned(),
            "Else $HOME/.config/pdbmux/config.yaml, where XDG_CONFIG_HOME is not set.",
        ),
        (
            SYSTEM_FILE.to_owned(),
            "Read where the one above does not exist; it may be missing too.",
        ),
    ]
}

/// What the long help says below the flags.
pub(super) fn reference() -> String {
    let mut lines = vec!["Configuration:".to_owned()];
    for paragraph in [LAYERS, FORMS, BACKENDS] {
        lines.extend(
            wrap(paragraph, 76)
                .into_iter()
                .map(|line| format!("  {line}")),
        );
    }
    lines.push(format!("  {EXAMPLE}"));
    lines.push("\nConfig file, the first of:".to_owned());
    for (file, doc) in files() {
        entry(&mut lines, &file, doc);
    }
    lines.push("\nKeys of the file, with variable and default:".to_owned());
    for key in KEYS {
        entry(&mut lines, &heading(key), key.doc);
    }
    lines.push("\nExit status:".to_owned());
    for (code, doc) in EXITS {
        entry(&mut lines, code, doc);
    }
    lines.join("\n")
}

fn entry(lines: &mut Vec<String>, head: &str, doc: &str) {
    lines.push(format!("  {head}"));
    lines.extend(
        wrap(doc, 70)
            .into_iter()
            .map(|line| format!("          {line}")),
    );
}

fn heading(key: &Key) -> String {
    match key.default_text().as_str() {
        "" => format!("{}  {}", key.name, key.env()),
        default => format!("{}  {}  {default}", key.name, key.env()),
    }
}

/// The script that completes commands, flags and choices in `shell`.
pub(super) fn completions(shell: Shell) -> Vec<u8> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "pdbmux", &mut script);
    script
}

/// Writes the manual page, section 8, with the commands and the keys in it.
pub(super) fn man(out: &mut dyn Write) -> io::Result<()> {
    let command = Cli::command().after_long_help("");
    let man = Man::new(command.clone()).section("8");
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    commands(&command).to_writer(out)?;
    man.render_options_section(out)?;
    configuration().to_writer(out)
}

fn commands(command: &clap::Command) -> Roff {
    let mut page = Roff::new();
    page.control("SH", ["COMMANDS"]);
    let mut built = command.clone();
    built.build();
    describe(&mut page, "", &built);
    page
}

/// Lists the commands below `command`, the ones with commands of their own by these.
fn describe(page: &mut Roff, before: &str, command: &clap::Command) {
    for sub in command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help")
    {
        let name = format!("{before}{}", sub.get_name());
        if sub.has_subcommands() {
            describe(page, &format!("{name} "), sub);
            continue;
        }
        let about = sub.get_long_about().or(sub.get_about());
        let about = about.map(ToString::to_string).unwrap_or_default();
        // Clap leaves the full stop off the first line, which the second paragraph then follows.
        item(page, &name, &about.replace("\n\n", ". "));
        for arg in sub.get_arguments().filter(|arg| !arg.is_global_set()) {
            if let (false, Some(help)) = (arg.get_id() == "help", arg.get_help()) {
                page.control("br", []);
                page.text([bold(arg.to_string()), roman(format!(": {help}"))]);
            }
        }
    }
}

fn configuration() -> Roff {
    let mut page = Roff::new();
    page.control("SH", ["CONFIGURATION"]);
    for paragraph in [LAYERS, FORMS, BACKENDS] {
        page.control("PP", []);
        page.text([roman(paragraph)]);
    }
    page.control("PP", []);
    page.control("nf", []);
    page.text([roman(EXAMPLE)]);
    page.control("fi", []);
    for key in KEYS {
        item(&mut page, &heading(key), key.doc);
    }
    page.control("SH", ["FILES"]);
    for (file, doc) in files() {
        item(&mut page, &file, doc);
    }
    page.control("SH", ["EXIT STATUS"]);
    for (code, doc) in EXITS {
        item(&mut page, code, doc);
    }
    page
}

fn item(page: &mut Roff, head: &str, doc: &str) {
    page.control("TP", []);
    page.text([bold(head)]);
    page.text([roman(doc)]);
}
