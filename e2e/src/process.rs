//! Servers as child processes: started in the background, found again by pid file, stopped
//! without touching anything the rig did not start.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitOptions};

use crate::settings::Lifetime;

/// How often something that gives no event is looked at again.
const POLL: Duration = Duration::from_millis(50);

/// How long a server may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Calls `probe` until it has an answer; `None` when `deadline` passes first.
pub fn poll<T>(deadline: Instant, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(POLL);
    }
}

/// How a server of one kind is asked to end.
#[derive(Clone, Copy, Debug)]
pub enum StopBy {
    /// `SIGINT` to the process: PostgreSQL's fast shutdown, whose own children follow.
    Interrupt,
    /// `SIGKILL` to the process group: for what keeps nothing worth an orderly end.
    Kill,
}

/// What to run and how it ends.
#[derive(Debug)]
pub struct Service<'a> {
    /// Names the pid file and the log file.
    pub name: &'a str,
    /// Folder of the pid file and the log.
    pub folder: &'a Path,
    /// How it is stopped.
    pub stop_by: StopBy,
}

/// A running server. Dropping a [`Lifetime::Bound`] one stops it.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    pid_file: PathBuf,
    log: PathBuf,
    stop_by: StopBy,
    lifetime: Lifetime,
}

impl Service<'_> {
    /// Starts `command`'s program in a process group of its own, output to `<name>.log`;
    /// `who` are arguments of setpriv, none for this process's own user.
    ///
    /// A bound server also ends when this process dies without a word; call from the main
    /// thread, for the kernel watches the thread that started it.
    pub fn start(&self, command: &[String], lifetime: Lifetime, who: &[&str]) -> Result<Running> {
        fs::create_dir_all(self.folder)?;
        let log = self.log();
        let output =
            File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut setpriv = Command::new("setpriv");
        setpriv.args(who);
        if lifetime == Lifetime::Bound {
            setpriv.args([
                "--pdeathsig",
                match self.stop_by {
                    StopBy::Interrupt => "INT",
                    StopBy::Kill => "KILL",
                },
            ]);
        }
        let child = {
            use std::os::unix::process::CommandExt as _;
            setpriv
                .arg("--")
                .args(command)
                .current_dir("/")
                .process_group(0)
                .stdin(Stdio::null())
                .stderr(output.try_clone()?)
                .stdout(output)
                .spawn()
                .with_context(|| format!("cannot start {}", self.name))?
        };
        let running = Running {
            pid: Pid::from_child(&child),
            pid_file: self.pid_file(),
            log,
            stop_by: self.stop_by,
            lifetime,
        };
        fs::write(&running.pid_file, identity(running.pid).unwrap_or_default())?;
        Ok(running)
    }

    /// The server an earlier run left, if it is still the process that run started.
    pub fn find(&self, lifetime: Lifetime) -> Option<Running> {
        let written = fs::read_to_string(self.pid_file()).ok()?;
        let pid = Pid::from_raw(written.split_once(' ')?.0.parse().ok()?)?;
        (identity(pid)? == written).then(|| Running {
            pid,
            pid_file: self.pid_file(),
            log: self.log(),
            stop_by: self.stop_by,
            lifetime,
        })
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.join(format!("{}.pid", self.name))
    }

    fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }
}

impl Running {
    /// Its process, which leads a group of its own.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_pid()
    }

    /// Sends `signal` to the whole process group (`STOP` and `CONT` of a PuppetDB).
    pub fn signal(&self, signal: Signal) -> Result<()> {
        rustix::process::kill_process_group(self.pid, signal)
            .with_context(|| format!("cannot signal process {}", self.pid.as_raw_pid()))
    }

    /// Whether the process still runs. Collects it if it is an ended child of ours.
    pub fn is_alive(&self) -> bool {
        match rustix::process::waitpid(Some(self.pid), WaitOptions::NOHANG) {
            Ok(ended) => ended.is_none(),
            // Not our child: an earlier run started it.
            Err(_) => identity(self.pid).is_some(),
        }
    }

    /// Waits until `ready` has an answer; an error with the log's last lines if the server
    /// ends or `within` passes first.
    pub fn wait<T>(
        &self,
        what: &str,
        within: Duration,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<T> {
        let outcome = poll(Instant::now() + within, || match ready() {
            Some(found) => Some(Some(found)),
            None if self.is_alive() => None,
            None => Some(None),
        });
        match outcome {
            Some(Some(found)) => Ok(found),
            Some(None) => bail!("{what} ended while starting:\n{}", self.tail()),
            None => bail!("{what} is not ready after {within:?}:\n{}", self.tail()),
        }
    }

    /// Ends the server and waits until it is gone.
    pub fn stop(&self) -> Result<()> {
        let asked = match self.stop_by {
            StopBy::Interrupt => rustix::process::kill_process(self.pid, Signal::INT),
            StopBy::Kill => rustix::process::kill_process_group(self.pid, Signal::KILL),
        };
        if asked.is_ok()
            && poll(Instant::now() + GRACE, || (!self.is_alive()).then_some(())).is_none()
        {
            self.signal(Signal::KILL)?;
        }
        match fs::remove_file(&self.pid_file) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// All of its output so far.
    pub fn log(&self) -> Result<String> {
        fs::read_to_string(&self.log).with_context(|| format!("no log at {}", self.log.display()))
    }

    /// The last lines of its output.
    pub fn tail(&self) -> String {
        let text = self.log().unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.lifetime == Lifetime::Bound
            && let Err(error) = self.stop()
        {
            eprintln!("cannot stop process {}: {error:#}", self.pid.as_raw_pid());
        }
    }
}

/// Fails with one sentence when another process listens on `port`.
pub fn require_free(port: u16, of: &str) -> Result<()> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => Ok(()),
        Err(error) => bail!(
            "port {port} for {of} is taken by something else ({error}): set PDBMUX_RIG_PORT to the first of five free ports"
        ),
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// The pid with its start time, which together are never reused; `None` once it has ended.
fn identity(pid: Pid) -> Option<String> {
    let raw = pid.as_raw_pid();
    let stat = fs::read_to_string(format!("/proc/{raw}/stat")).ok()?;
    // The command in parentheses may hold blanks and parentheses itself.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let started = fields.nth(18)?;
    (state != "Z").then(|| format!("{raw} {started}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_live_process_has_an_identity() {
        let own = identity(rustix::process::getpid()).unwrap();
        assert_eq!(own, identity(rustix::process::getpid()).unwrap());
        assert!(identity(Pid::from_raw(i32::MAX).unwrap()).is_none());
    }

    #[test]
    fn a_pid_file_of_another_process_finds_nothing() {
        let folder = std::env::temp_dir().join(format!("pdbmux-pid-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let service = Service {
            name: "x",
            folder: &folder,
            stop_by: StopBy::Kill,
        };
        fs::write(service.pid_file(), format!("{} 1", std::process::id())).unwrap();
        assert!(service.find(Lifetime::Kept).is_none());
        fs::remove_dir_all(&folder).unwrap();
    }
}
