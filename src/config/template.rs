//! The commented file that `config init` writes.

use std::fmt;

use super::key::{KEYS, Key, Setter};
use super::{BackendConfig, Config};

const HEAD: &str = "\
# Configuration of pdbmux. A PDBMUX_* variable overrides the key of its name, and
# a flag overrides both; `pdbmux config show` tells what is in effect and why.
";

const EXAMPLE: &str = "\
# backends:
#   - name: pdb-a
#     url: http://puppetdb1.example.com:8080
#   - name: pdb-b
#     url: https://puppetdb2.example.com:8081
#     ca: /etc/pdbmux/ca.pem
#     cert: /etc/pdbmux/cert.pem
#     key: /etc/pdbmux/key.pem
";

/// A file that loads back to `config`, every key with its comment. Without backends an example of
/// some stands there as a comment.
pub fn template(config: &Config) -> impl fmt::Display {
    Template(config)
}

struct Template<'a>(&'a Config);

impl fmt::Display for Template<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for key in KEYS {
            writeln!(f)?;
            for line in wrap(&comment(key), 78) {
                writeln!(f, "# {line}")?;
            }
            match key.set {
                Setter::Scalar(_) | Setter::List(_) if key.show(self.0).is_empty() => {
                    writeln!(f, "# {}: {}", key.name, key.hint)?;
                }
                Setter::Scalar(_) | Setter::List(_) => {
                    writeln!(f, "{}: {}", key.name, scalar(&key.show(self.0)))?;
                }
                Setter::Backends if self.0.backends.is_empty() => f.write_str(EXAMPLE)?,
                Setter::Backends => {
                    writeln!(f, "backends:")?;
                    for BackendConfig { name, url, access } in &self.0.backends {
                        writeln!(f, "  - name: {}\n    url: {url}", scalar(name))?;
                        for (part, text) in access.shown() {
                            writeln!(f, "    {part}: {}", scalar(&text))?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn comment(key: &Key) -> String {
    let choices = match key.choices {
        [] => String::new(),
        choices => format!(" One of {}.", choices.join(", ")),
    };
    let flag = key.flag.map_or(String::new(), |flag| format!(", --{flag}"));
    format!("{}{choices} ({}{flag})", key.doc, key.env())
}

/// Quotes what YAML could take for anything but itself. JSON's quoting is YAML's too.
fn scalar(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
    if starts && text.bytes().all(plain) {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

/// Breaks a text into lines of at most `width` letters, longer words excepted.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
