//! What `config show` prints (R268, R290).

use std::fmt;

use serde_json::json;

use super::file::FileChoice;
use super::key::{KEYS, Key};
use super::layer::Origin;
use super::load::Loaded;

/// Titles of the layers, the highest first.
const TITLES: [&str; 4] = [
    "from flags",
    "from PDBMUX_* variables",
    "from the config file",
    "defaults",
];

fn title(origin: &Origin) -> &'static str {
    match origin {
        Origin::Flag(_) => TITLES[0],
        Origin::Env(_) => TITLES[1],
        Origin::File { .. } => TITLES[2],
        Origin::Default => TITLES[3],
    }
}

/// For people: the file, then the values by the layer they come from.
impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            FileChoice::Loaded(path) => writeln!(f, "config file : {}", path.display())?,
            FileChoice::Searched(paths) => {
                let paths: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
                writeln!(f, "config file : none (searched {})", paths.join(", "))?;
            }
        }
        for group in TITLES {
            let mut keys = KEYS
                .iter()
                .filter(|key| title(self.origin(key)) == group)
                .peekable();
            if keys.peek().is_some() {
                writeln!(f, "\n# {group}")?;
            }
            for key in keys {
                let line = format!("{} : {}", key.name, self.value(key));
                writeln!(f, "{}", line.trim_end())?;
            }
        }
        if !self.notes.is_empty() {
            writeln!(f, "\n# notes")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

impl Loaded {
    /// For machines: the same as one JSON object, with the exact origin of each value.
    pub fn to_json(&self) -> serde_json::Value {
        let (file, searched) = match &self.file {
            FileChoice::Loaded(path) => (Some(path), &[][..]),
            FileChoice::Searched(paths) => (None, &paths[..]),
        };
        let values: serde_json::Map<_, _> = KEYS
            .iter()
            .map(|key| (key.name.to_owned(), self.entry(key)))
            .collect();
        json!({
            "file": file,
            "searched": searched,
            "values": values,
            "notes": self.notes,
        })
    }

    fn entry(&self, key: &Key) -> serde_json::Value {
        json!({
            "value": key.show(&self.config),
            "origin": self.origin(key).to_string(),
            "remark": self.remark(key),
        })
    }
}
