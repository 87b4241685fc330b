//! One PuppetDB of the rig: its configuration folder, its process, its readiness.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::http::Client;
use crate::process::{Running, Service, StopBy, require_free};
use crate::settings::Lifetime;
use crate::tls::Identity;

/// The first start migrates an empty database; on a busy machine that takes a while.
const START: Duration = Duration::from_mins(3);

/// The rig's folder in another Debian's file system.
const INSIDE: &str = "/srv/pdbmux";

/// Output to standard output, which the rig sends to a file.
const LOGBACK: &str = r#"<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %-5p [%c{2}] %m%n</pattern></encoder>
  </appender>
  <logger name="org.eclipse.jetty" level="warn"/>
  <root level="info"><appender-ref ref="OUT"/></root>
</configuration>
"#;

/// Where a PuppetDB's program lies.
#[derive(Clone, Debug)]
pub enum Program {
    /// In this machine's own file system, its classes compiled into this folder.
    Packaged(PathBuf),
    /// In another Debian's, at this folder.
    Below(PathBuf),
}

/// What a PuppetDB's Java is to be good at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Java {
    /// To be there soon, and small.
    Start,
    /// To answer as fast as one that has been up for long: what is asked often gets compiled well.
    Work,
}

/// One PuppetDB.
#[derive(Clone, Debug)]
pub struct PuppetDb {
    /// Backend name and folder name in one.
    pub name: &'static str,
    /// The database that it keeps its data in.
    pub database: &'static str,
    /// Its program.
    pub program: Program,
    /// How its Java is run.
    pub java: Java,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// Where its log and pid file go, and all else unless it runs [`Program::Below`].
    pub folder: PathBuf,
    /// How it serves TLS as well, if it does.
    pub secure: Option<Secure>,
}

/// How a PuppetDB serves TLS: to those alone who show a certificate of its authority with a name
/// that is allowed.
#[derive(Clone, Debug)]
pub struct Secure {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// The authority's certificate, as PEM.
    pub authority: String,
    /// What it shows itself.
    pub identity: Identity,
    /// The names that are allowed.
    pub allowed: Vec<String>,
}

impl PuppetDb {
    /// A client of its API.
    pub fn client(&self) -> Client {
        Client::new(format!("http://127.0.0.1:{}", self.port))
    }

    /// The one an earlier run left running.
    pub fn find(&self, lifetime: Lifetime) -> Option<Running> {
        self.service().find(lifetime)
    }

    /// Starts it on its database; not ready yet.
    pub fn start(&self, database_port: u16, lifetime: Lifetime) -> Result<Running> {
        require_free(self.port, &format!("PuppetDB {}", self.name))?;
        let home = self.home();
        let seen = |path: &str| {
            self.seen_from_inside()
                .join(path)
                .to_string_lossy()
                .into_owned()
        };
        // Commands still queued would outlive the database they were meant for.
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir_all(home.join("conf.d"))?;
        fs::create_dir_all(home.join("var"))?;
        fs::write(home.join("logback.xml"), LOGBACK)?;
        fs::copy(
            self.packaged("etc/puppetdb/bootstrap.cfg"),
            home.join("bootstrap.cfg"),
        )
        .with_context(|| format!("PuppetDB {} is not installed: run e2e/setup.sh", self.name))?;
        fs::write(home.join("conf.d/auth.conf"), self.open_metrics()?)?;
        // Nothing may age away: the estate has fixed dates. The days are about the most that fit.
        fs::write(
            home.join("conf.d/database.ini"),
            format!(
                "[database]\nsubname = //127.0.0.1:{database_port}/{}\nusername = puppetdb\npassword = puppetdb\n\
                 gc-interval = 0\nnode-ttl = 0s\nnode-purge-ttl = 0s\nreport-ttl = 20000d\nresource-events-ttl = 20000d\n",
                self.database
            ),
        )?;
        let mut jetty = format!("[jetty]\nhost = 127.0.0.1\nport = {}\n", self.port);
        let mut allowlist = String::new();
        if let Some(secure) = &self.secure {
            for (file, text) in [
                ("ca.pem", secure.authority.clone()),
                ("cert.pem", secure.identity.certificate.clone()),
                ("key.pem", secure.identity.key.clone()),
                ("allowed", secure.allowed.join("\n")),
            ] {
                fs::write(home.join(file), text)?;
            }
            let (ca, cert, key) = (seen("ca.pem"), seen("cert.pem"), seen("key.pem"));
            write!(
                jetty,
                "ssl-host = 127.0.0.1\nssl-port = {}\nssl-ca-cert = {ca}\nssl-cert = {cert}\n\
                 ssl-key = {key}\n",
                secure.port
            )?;
            allowlist = format!("certificate-allowlist = {}\n", seen("allowed"));
        }
        fs::write(home.join("conf.d/jetty.ini"), jetty)?;
        fs::write(
            home.join("conf.d/config.ini"),
            format!(
                "[global]\nvardir = {}\nlogging-config = {}\n[puppetdb]\n\
                 disable-update-checking = true\n{allowlist}",
                seen("var"),
                seen("logback.xml")
            ),
        )?;
        self.service().start(&self.command(&seen), lifetime, &[])
    }

    /// Waits until every service says it is running; gives the version.
    pub fn wait(&self, running: &Running) -> Result<String> {
        let client = self.client();
        running.wait(&format!("PuppetDB {}", self.name), START, || {
            let answer = client.get("/status/v1/services", &[]).ok()?;
            (answer.status == 200 && is_running(&answer.json().ok()?)).then_some(())
        })?;
        version(&client)
    }

    fn command(&self, seen: &dyn Fn(&str) -> String) -> Vec<String> {
        let mut java: Vec<String> = match &self.program {
            Program::Packaged(_) => vec!["java".into()],
            // Its /proc is mounted in a namespace that ends with the process.
            Program::Below(root) => vec![
                "unshare".into(),
                "--mount".into(),
                "sh".into(),
                "-c".into(),
                "mount -t proc proc \"$0/proc\"; exec chroot \"$0\" java \"$@\"".into(),
                root.to_string_lossy().into_owned(),
            ],
        };
        java.extend(
            match self.java {
                Java::Start => ["-Xmx512m", "-XX:TieredStopAtLevel=1"].as_slice(),
                Java::Work => ["-Xmx1g"].as_slice(),
            }
            .iter()
            .map(|&option| option.to_owned()),
        );
        java.extend(
            [
                "-XX:+UseSerialGC",
                "-Djava.security.egd=/dev/urandom",
                "-cp",
                &format!(
                    "{}:/usr/share/puppetdb/puppetdb.jar",
                    self.classes().display()
                ),
                "clojure.main",
                "-m",
                "puppetlabs.puppetdb.core",
                "services",
                "-c",
                &seen("conf.d"),
                "-b",
                &seen("bootstrap.cfg"),
            ]
            .map(str::to_owned),
        );
        java
    }

    /// The packaged rules, with metrics open to plain HTTP, which has no certificate to show.
    fn open_metrics(&self) -> Result<String> {
        let packaged = fs::read_to_string(self.packaged("etc/puppetdb/conf.d/auth.conf"))?;
        ensure!(
            packaged.matches("\n            allow: \"*\"").count() == 1,
            "the packaged auth.conf of PuppetDB {} has another shape",
            self.name
        );
        Ok(packaged.replace("allow: \"*\"", "allow-unauthenticated: true"))
    }

    fn packaged(&self, path: &str) -> PathBuf {
        match &self.program {
            Program::Packaged(_) => Path::new("/").join(path),
            Program::Below(root) => root.join(path),
        }
    }

    /// Its configuration and queue, as this process sees them.
    fn home(&self) -> PathBuf {
        match &self.program {
            Program::Packaged(_) => self.folder.join(self.name),
            Program::Below(root) => root.join(INSIDE.trim_start_matches('/')).join(self.name),
        }
    }

    /// The same folder as the PuppetDB sees it.
    fn seen_from_inside(&self) -> PathBuf {
        match &self.program {
            Program::Packaged(_) => self.home(),
            Program::Below(_) => Path::new(INSIDE).join(self.name),
        }
    }

    /// What the set-up compiled ahead of time; without it a start takes half a minute more.
    fn classes(&self) -> PathBuf {
        match &self.program {
            Program::Packaged(classes) => classes.clone(),
            Program::Below(_) => Path::new(INSIDE).join("classes"),
        }
    }

    fn service(&self) -> Service<'_> {
        Service {
            name: self.name,
            folder: &self.folder,
            stop_by: StopBy::Kill,
        }
    }
}

/// Whether every service of a status answer is running.
fn is_running(services: &Value) -> bool {
    services
        .as_object()
        .is_some_and(|all| !all.is_empty() && all.values().all(|one| one["state"] == "running"))
}

/// The version a PuppetDB reports.
pub fn version(client: &Client) -> Result<String> {
    let answer: Value = client.get("/pdb/meta/v1/version", &[])?.json()?;
    answer["version"]
        .as_str()
        .map(str::to_owned)
        .context("no version in the answer")
}

/// Commands a PuppetDB has accepted and not yet processed; `None` while it cannot say.
pub fn queue_depth(client: &Client) -> Option<u64> {
    let services: Value = client.get("/status/v1/services", &[]).ok()?.json().ok()?;
    services["puppetdb-status"]["status"]["queue_depth"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_service_that_is_not_running_makes_it_not_ready() {
        assert!(is_running(&json!({"a": {"state": "running"}})));
        for not in [
            json!({}),
            json!({"a": {"state": "running"}, "b": {"state": "starting"}}),
        ] {
            assert!(!is_running(&not), "{not}");
        }
    }
}
