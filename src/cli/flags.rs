//! The flags of keys, made from the table of keys.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::config::{Flags, KEYS, Key, wrap};

const CONFIG: &str = "Config file to read, which must exist, or for config init to write";

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(ValueParser::path_buf())
            .global(true)
            .help(CONFIG)
            .long_help(format!("{CONFIG} (PDBMUX_CONFIG)"));
        let keys = KEYS
            .iter()
            .filter_map(|key| key.flag.map(|flag| arg(key, flag)));
        command.arg(config).args(keys)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn arg(key: &'static Key, flag: &'static str) -> Arg {
    let tail = format!("[default: {}] ({})", key.default_text(), key.env());
    Arg::new(key.name)
        .long(flag)
        .value_name(key.hint)
        .value_parser(Unchecked(key.choices))
        .global(true)
        .help(key.summary())
        .long_help(wrap(&format!("{} {tail}", key.doc), 88).join("\n"))
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.config = matches.get_one::<PathBuf>("config").cloned();
        for key in KEYS.iter().filter(|key| key.flag.is_some()) {
            if let Some(text) = matches.get_one::<String>(key.name) {
                self.values.insert(key.name, text.clone());
            }
        }
        Ok(())
    }
}

/// Takes any text and only tells the choices: a flag is checked as every layer is, with the same
/// words.
#[derive(Clone)]
struct Unchecked(&'static [&'static str]);

impl TypedValueParser for Unchecked {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        if self.0.is_empty() {
            return None;
        }
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}
