//! What the demo prints.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use super::Backend;

/// Printed when the input ends.
pub(super) const NO_TERMINAL: &str = "There is no more input; serving until interrupted.\n";

/// Printed at the end.
pub(super) const GOODBYE: &str = "Stopping.\n";

const KEYS: &str = "\
Type and press Enter:
  1, 2   stop or restart a sample PuppetDB
  s      what is running
  h      this help
  q      quit
";

/// Texts that name pdbmux's own URL.
pub(super) struct Text {
    url: String,
}

impl Text {
    /// Texts for a pdbmux that listens on `address`.
    pub(super) fn new(mut address: SocketAddr) -> Self {
        // A listener on all addresses is reached on loopback too, and only that can be copied.
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        Self {
            url: format!("http://{address}"),
        }
    }

    /// The first screen.
    pub(super) fn welcome(&self, backends: &[Backend]) -> String {
        let picture = self.picture(backends);
        let tour = self.tour();
        format!(
            "\
pdbmux demo: two sample PuppetDBs in the middle of a migration, and one answer.

{picture}
Each sample holds eight nodes. Some live in one of them only, some in both:
most have moved to pdb-new, one went back, one reports to both at once.

Copy a line into another terminal:

{tour}
{KEYS}
"
        )
    }

    /// The answer to `h`.
    pub(super) fn help(&self, backends: &[Backend]) -> String {
        let picture = self.picture(backends);
        let tour = self.tour();
        format!("{picture}\n{tour}\n{KEYS}\n")
    }

    /// The answer to `s`.
    pub(super) fn state(&self, backends: &[Backend]) -> String {
        let mut text = format!("pdbmux     serves   {}\n", self.url);
        for (number, backend) in (1..).zip(backends) {
            let state = if backend.server.is_running() {
                "running"
            } else {
                "stopped"
            };
            let url = backend.server.url();
            let _ = writeln!(text, "{number} {:<8} {state}  {url}", backend.name);
        }
        let nodes = self.curl("-s", "nodes", &[]);
        let contributors = self.contributors();
        let _ = write!(text, "  {nodes}\n  {contributors}\n\n");
        text
    }

    /// Told when a sample has been stopped.
    pub(super) fn stopped(&self, name: &str, backends: &[Backend]) -> String {
        let effect = match running(backends) {
            0 => "No sample is left, so pdbmux has nothing to answer from:\n",
            _ => {
                "Nodes that only it holds are now missing; those that both hold\n\
                 come from the other one:\n"
            }
        };
        format!("{name} is stopped. {effect}{}", self.expected(backends))
    }

    /// Told when a sample runs again.
    pub(super) fn restarted(&self, name: &str, backends: &[Backend]) -> String {
        let expected = self.expected(backends);
        format!("{name} runs again, on its old port. Its nodes are back:\n{expected}")
    }

    fn picture(&self, backends: &[Backend]) -> String {
        let mut boxes = (1..).zip(backends).map(|(number, backend)| {
            let url = backend.server.url();
            format!("{number} {}  {:<6}  {url}", backend.name, backend.version)
        });
        let (first, second) = (boxes.next(), boxes.next());
        format!(
            "                                   +--> {}
    curl, Puppetboard --> pdbmux --+
                                   +--> {}

  pdbmux serves {}
",
            first.unwrap_or_default(),
            second.unwrap_or_default(),
            self.url
        )
    }

    fn tour(&self) -> String {
        let columns = r#" | grep -oE '"(certname|pdbmux_source)":"[^"]*"' | paste - -"#;
        let newest = r#"order_by=[{"field":"end_time","order":"desc"}]"#;
        let by_status =
            r#"query=["extract",["status",["function","count"]],["group_by","status"]]"#;
        let steps = [
            (
                "all nodes, and the PuppetDB that each was taken from",
                self.curl("-s", "nodes", &[]) + columns,
            ),
            (
                "one node's facts; pdbmux_source among them names their PuppetDB",
                self.curl(
                    "-s",
                    "facts",
                    &[r#"query=["=","certname","web-1.example.org"]"#],
                ),
            ),
            (
                "the nodes that pdb-new owns",
                self.curl("-s", "facts/pdbmux_source/pdb-new", &[]),
            ),
            (
                "the two newest reports of both, and in X-Records how many there are",
                self.curl("-si", "reports", &["limit=2", "include_total=true", newest]),
            ),
            (
                "reports by status, added up over both",
                self.curl("-s", "reports", &[by_status]),
            ),
            (
                "how many PuppetDBs an answer comes from; stop one and ask again",
                self.contributors(),
            ),
        ];
        let steps = steps.map(|(what, command)| format!("  # {what}\n  {command}\n"));
        steps.join("\n")
    }

    fn expected(&self, backends: &[Backend]) -> String {
        let (running, all) = (running(backends), backends.len());
        let command = self.contributors();
        match running {
            0 => format!("  {}\n  shows 502\n\n", self.curl("-si", "nodes", &[])),
            _ => format!("  {command}\n  shows X-Backends: {running}/{all}\n\n"),
        }
    }

    fn contributors(&self) -> String {
        self.curl("-si", "nodes", &[]) + " | grep -i x-backends"
    }

    fn curl(&self, flags: &str, path: &str, params: &[&str]) -> String {
        let get = if params.is_empty() { "" } else { "G" };
        let mut line = format!("curl {flags}{get} {}/pdb/query/v4/{path}", self.url);
        for param in params {
            let _ = write!(line, " --data-urlencode '{param}'");
        }
        line
    }
}

/// Told when a line is no command.
pub(super) fn unknown(line: &str) -> String {
    // What was typed may hold anything; only its printable part is repeated.
    let line: String = line.chars().filter(|c| !c.is_control()).take(40).collect();
    format!("'{line}' is neither a command nor a sample PuppetDB.\n\n{KEYS}\n")
}

/// Told when a sample's port has been taken by another program meanwhile.
pub(super) fn not_restarted(name: &str, error: &io::Error) -> String {
    format!("{name} cannot take its old port again: {error}\n\n")
}

fn running(backends: &[Backend]) -> usize {
    let up = backends.iter().filter(|it| it.server.is_running());
    up.count()
}
