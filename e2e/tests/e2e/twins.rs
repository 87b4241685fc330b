//! Two PuppetDBs on one database, the second of which serves TLS to those alone whom it allows.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pdbmux_e2e::daemon::{Daemon, configured};
use pdbmux_e2e::estate::Side;
use pdbmux_e2e::http::Client;
use pdbmux_e2e::process::{free_port, poll};
use pdbmux_e2e::puppetdb::Secure;
use pdbmux_e2e::rig::{Member, Plan};
use pdbmux_e2e::settings::Lifetime;
use pdbmux_e2e::tls::{Authority, Ends};

use crate::world::{World, bytes_by_certname, sorted};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![two_puppetdbs_on_one_database];

/// The configuration of who asks the twin over TLS, in the rig's folder.
const CONFIG: &str = "twin-tls.yaml";

/// What pdbmux is called by its own certificate.
const OURS: &str = "pdbmux.example.com";

/// The second PuppetDB, and what is needed to be let in.
struct Twin<'w> {
    world: &'w World,
    member: Member,
    secure: Secure,
    authority: Authority,
}

/// Two starts of a PuppetDB serve all stories.
fn two_puppetdbs_on_one_database(world: &World) -> Result<()> {
    let authority = Authority::new()?;
    let secure = Secure {
        port: free_port()?,
        authority: authority.certificate.clone(),
        identity: authority.identity("localhost")?,
        allowed: vec![OURS.to_owned()],
    };
    let member = Plan::new(&world.settings)?.start_twin(secure.clone(), Lifetime::Bound)?;
    let twin = Twin {
        world,
        member,
        secure,
        authority,
    };
    twin.lets_in_whom_it_allows()?;
    twin.certificates_are_replaced_under_load()?;
    twin.is_counted_once()?;
    twin.shows_a_certificate_that_has_ended()
}

/// What is configured of how the twin is reached, and what is said of a wrong one: in the log, and
/// by `pdbmux check`.
struct Way {
    name: &'static str,
    ca: &'static str,
    shown: Option<&'static str>,
    server_name: &'static str,
    complaint: Option<[&'static str; 2]>,
}

impl Twin<'_> {
    fn lets_in_whom_it_allows(&self) -> Result<()> {
        let foreign = Authority::new()?;
        self.write("ca.pem", &self.secure.authority)?;
        self.write("foreign-ca.pem", &foreign.certificate)?;
        self.identity("right", &self.authority, OURS)?;
        self.identity("stranger", &self.authority, "stranger.example.com")?;
        self.identity("foreign", &foreign, OURS)?;
        let ended = self.authority.identity_that(OURS, Ends::Ended)?;
        self.write("ended-key.pem", &ended.key)?;
        self.write("ended-cert.pem", &ended.certificate)?;
        for way in [
            Way {
                name: "right",
                ca: "ca",
                shown: Some("right"),
                server_name: "localhost",
                complaint: None,
            },
            Way {
                name: "nothing shown",
                ca: "ca",
                shown: None,
                server_name: "localhost",
                complaint: Some(["certificate", "certificate"]),
            },
            Way {
                name: "another authority",
                ca: "foreign-ca",
                shown: Some("right"),
                server_name: "localhost",
                complaint: Some(["ca", "ca"]),
            },
            Way {
                name: "a foreign certificate",
                ca: "ca",
                shown: Some("foreign"),
                server_name: "localhost",
                complaint: Some(["certificate", "certificate"]),
            },
            Way {
                name: "one that has ended",
                ca: "ca",
                shown: Some("ended"),
                server_name: "localhost",
                complaint: Some(["ended-cert.pem: it has expired", "ended on 2021-01-01"]),
            },
            Way {
                name: "not allowed",
                ca: "ca",
                shown: Some("stranger"),
                server_name: "localhost",
                complaint: Some(["allow-list", "certificate-allowlist"]),
            },
            Way {
                name: "another name",
                ca: "ca",
                shown: Some("right"),
                server_name: "other.example.com",
                complaint: Some(["name", "name"]),
            },
        ] {
            self.goes(&way).with_context(|| way.name)?;
        }
        Ok(())
    }

    fn goes(&self, way: &Way) -> Result<()> {
        let pdbmux = self.over_tls(way, &[])?;
        self.is_found_by_check(way)?;
        let answer = pdbmux.client.get("/pdb/query/v4/nodes", &[])?;
        let log = pdbmux.process.log()?;
        match way.complaint {
            None => {
                let direct = bytes_by_certname(&self.world.backend(Side::A).query("nodes", &[])?)?;
                ensure!(
                    answer.status == 200 && !direct.is_empty(),
                    "{}",
                    answer.body
                );
                ensure!(bytes_by_certname(&answer)?.keys().eq(direct.keys()));
                ensure!(!log.contains("WARN"), "{log}");
            }
            Some([complaint, _]) => {
                ensure!(answer.status >= 400, "{} {}", answer.status, answer.body);
                let warned = log.lines().filter(|line| line.contains("WARN"));
                let mut those = warned.filter(|line| line.contains(complaint));
                let said = those.next().with_context(|| format!("not said: {log}"))?;
                ensure!(said.contains("twin"), "{said}");
                ensure!(
                    !log.contains("PRIVATE KEY") && !answer.body.contains("127.0.0.1"),
                    "{log}"
                );
            }
        }
        Ok(())
    }

    /// `pdbmux check` says the same, with its exit status.
    fn is_found_by_check(&self, way: &Way) -> Result<()> {
        let checked = Command::new(self.world.settings.pdbmux_binary()?)
            .env_clear()
            .env("PDBMUX_CONFIG", self.folder().join(CONFIG))
            .arg("check")
            .output()?;
        let text = String::from_utf8_lossy(&checked.stdout);
        let mut failed = text.lines().filter(|line| line.contains("  fail "));
        match way.complaint {
            None => ensure!(
                checked.status.success() && failed.next().is_none(),
                "{text}"
            ),
            Some([_, complaint]) => {
                let failure = failed
                    .next()
                    .with_context(|| format!("none failed: {text}"))?;
                ensure!(
                    checked.status.code() == Some(1) && failure.contains(complaint),
                    "{text}"
                );
                ensure!(failed.next().is_none(), "one cause, one failure: {text}");
            }
        }
        Ok(())
    }

    fn certificates_are_replaced_under_load(&self) -> Result<()> {
        let way = Way {
            name: "replaced",
            ca: "ca",
            shown: Some("right"),
            server_name: "localhost",
            complaint: None,
        };
        // Nothing is answered from memory, and every connection is young.
        let pdbmux = self.over_tls(&way, &[("PDBMUX_FACTS_TTL", "0s")])?;
        let until = Instant::now() + Duration::from_secs(3);
        let asked = thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| ask_until(&pdbmux.client, until)))
                .collect();
            while Instant::now() < until {
                self.identity("right", &self.authority, OURS)?;
                thread::sleep(Duration::from_millis(50));
            }
            clients
                .into_iter()
                .map(|one| {
                    one.join()
                        .map_err(|_| anyhow::anyhow!("an asking thread died"))?
                })
                .sum::<Result<usize>>()
        })?;
        ensure!(asked > 20, "only {asked} requests");
        Ok(())
    }

    fn is_counted_once(&self) -> Result<()> {
        let [a, b] = &self.world.rig.backends;
        let backend = |name: &str, client: &Client, more: &str| {
            format!("  - name: {name}\n    url: {}\n{more}", client.base())
        };
        let text = format!(
            "timeout: 60s\nfacts_ttl: 0s\nbackends:\n{}{}{}",
            backend("a1", &a.client, "    group: a\n"),
            backend("b", &b.client, ""),
            backend("a2", &self.member.client, "    group: a\n"),
        );
        let wanted = told(&self.world.pdbmux)?;
        let pdbmux = configured(&self.world.settings, "twins.yaml", &text, &[])?;
        let is_counted_once = || -> Result<()> {
            let got = told(&pdbmux)?;
            for (got, wanted) in got.iter().zip(&wanted) {
                ensure!(got == wanted, "got {got:?}, wanted {wanted:?}");
            }
            Ok(())
        };
        is_counted_once()?;
        // Either may be away.
        let twin = self.member.server.as_ref().context("no server")?;
        let first = a.server.as_ref().context("no server")?;
        twin.stop()?;
        is_counted_once()?;
        // It comes back for what is looked at last; here it is asked without TLS.
        twin.show(self.authority.identity_that("localhost", Ends::Ended)?);
        twin.start()?;
        twin.wait()?;
        first.stop()?;
        let alone = is_counted_once();
        first.start()?;
        first.wait()?;
        alone?;
        // Who forgets to say so is told.
        let text = text.replace("    group: a\n", "");
        let pdbmux = configured(&self.world.settings, "twins.yaml", &text, &[])?;
        poll(Instant::now() + Duration::from_secs(30), || {
            let log = pdbmux.process.log().ok()?;
            let mut warned = log.lines().filter(|line| line.contains("WARN"));
            warned
                .any(|line| line.contains("a1") && line.contains("a2"))
                .then_some(())
        })
        .context("two backends on one database were not warned of")
    }

    fn shows_a_certificate_that_has_ended(&self) -> Result<()> {
        self.goes(&Way {
            name: "the twin's own has ended",
            ca: "ca",
            shown: Some("right"),
            server_name: "localhost",
            complaint: Some([
                "its certificate has expired (2021-01-01",
                "its certificate has expired (2021-01-01",
            ]),
        })
        .context("the twin's own has ended")
    }

    /// A pdbmux that asks the twin alone.
    fn over_tls(&self, way: &Way, variables: &[(&str, &str)]) -> Result<Daemon> {
        let folder = self.folder();
        let file = |name: &str| folder.join(name).display().to_string();
        let mut text = format!(
            "timeout: 60s\nbackends:\n  - name: twin\n    url: https://127.0.0.1:{}\n    ca: {}\n    \
             server_name: {}\n",
            self.secure.port,
            file(&format!("{}.pem", way.ca)),
            way.server_name,
        );
        if let Some(shown) = way.shown {
            let (cert, key) = (format!("{shown}-cert.pem"), format!("{shown}-key.pem"));
            writeln!(text, "    cert: {}\n    key: {}", file(&cert), file(&key))?;
        }
        configured(&self.world.settings, CONFIG, &text, variables)
    }

    fn identity(&self, file: &str, authority: &Authority, name: &str) -> Result<()> {
        let identity = authority.identity(name)?;
        self.write(&format!("{file}-key.pem"), &identity.key)?;
        self.write(&format!("{file}-cert.pem"), &identity.certificate)
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        // Replaced in one step, as whoever renews certificates does.
        let (path, part) = (self.folder().join(file), self.folder().join("part"));
        fs::write(&part, text)?;
        Ok(fs::rename(part, path)?)
    }

    fn folder(&self) -> std::path::PathBuf {
        self.world.settings.folder.join("run")
    }
}

/// An answer: to what, its total, its records.
type Told = (String, Option<String>, Vec<String>);

/// What a pdbmux answers to questions that count.
fn told(pdbmux: &Daemon) -> Result<Vec<Told>> {
    let total = ("include_total", "true");
    let count = ("query", r#"["extract",[["function","count"]]]"#);
    [
        ("nodes", total),
        ("reports", total),
        ("facts/kernel", total),
        ("nodes", count),
        ("reports", count),
        ("event-counts", ("summarize_by", "certname")),
    ]
    .into_iter()
    .map(|(entity, parameter)| {
        let answer = pdbmux.client.query(entity, &[parameter])?;
        let backends = answer.header("x-backends").unwrap_or("none");
        ensure!(backends == "2/2", "{}: {backends}", answer.asked);
        let total = answer.header("x-records").map(str::to_owned);
        Ok((entity.to_owned(), total, sorted(&answer.records()?)))
    })
    .collect()
}

/// Asks again and again; how often that was answered, or the first that was not.
fn ask_until(client: &Client, until: Instant) -> Result<usize> {
    let mut asked = 0;
    while Instant::now() < until {
        let answer = client.get("/pdb/query/v4/nodes", &[("limit", "1")])?;
        ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
        asked += 1;
    }
    Ok(asked)
}
