//! What the Dockerfile says, as far as it is made of plain instructions.

use std::fs;
use std::path::PathBuf;

/// The repository this is in.
pub(crate) fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// One stage: its `FROM` and what follows.
#[derive(Debug)]
pub(crate) struct Stage(Vec<(String, String)>);

impl Stage {
    /// The values of an instruction, in their order.
    pub(crate) fn all(&self, instruction: &str) -> Vec<&str> {
        let found = self.0.iter().filter(|(name, _)| name == instruction);
        found.map(|(_, value)| value.as_str()).collect()
    }

    /// The value of an instruction that stands once.
    pub(crate) fn one(&self, instruction: &str) -> &str {
        match self.all(instruction)[..] {
            [value] => value,
            ref other => panic!("{instruction} stands {} times", other.len()),
        }
    }

    /// The program and arguments of an instruction in its JSON form.
    pub(crate) fn command(&self, instruction: &str) -> Vec<String> {
        let value = self.one(instruction);
        serde_json::from_str(value.strip_prefix("CMD ").unwrap_or(value)).unwrap()
    }

    /// Sources and target of a `COPY`, without its flags.
    pub(crate) fn copies(&self) -> Vec<(Vec<&str>, &str)> {
        let copies = self.all("COPY").into_iter().map(|copy| {
            let words = copy.split_whitespace();
            let mut paths: Vec<_> = words.filter(|word| !word.starts_with("--")).collect();
            let target = paths.pop().unwrap();
            (paths, target)
        });
        copies.collect()
    }
}

/// The build stage and the image itself.
pub(crate) fn stages() -> [Stage; 2] {
    let text = fs::read_to_string(repository().join("Dockerfile")).unwrap();
    let mut stages: Vec<Stage> = Vec::new();
    for line in text.replace("\\\n", " ").lines() {
        let Some((name, value)) = line.trim().split_once(' ') else {
            continue;
        };
        if name == "FROM" {
            stages.push(Stage(Vec::new()));
        }
        if let (false, Some(Stage(stage))) = (name.starts_with('#'), stages.last_mut()) {
            stage.push((name.to_owned(), value.trim().to_owned()));
        }
    }
    stages.try_into().unwrap()
}
