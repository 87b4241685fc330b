//! The service manager that started this process, and is told how it is: sd_notify(3) of systemd.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::config::Environment;

/// Where a service manager listens for what its service tells.
#[derive(Debug)]
pub struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
    /// Within what time it must hear of this process again and again, if it must.
    watchdog: Option<Duration>,
}

/// Why a service manager cannot be told anything.
#[derive(Debug, thiserror::Error)]
#[error("the service manager cannot be told anything at NOTIFY_SOCKET: {0}")]
pub struct Unreachable(#[from] io::Error);

/// What happens to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event<'s> {
    /// It serves; this is worth knowing of it.
    Ready(&'s str),
    /// It begins to read its configuration again, which ends with `Ready`.
    Reloading,
    /// It ends.
    Stopping,
    /// It runs.
    Alive,
}

impl Manager {
    /// The one that the environment names; none where it names none.
    ///
    /// # Errors
    /// What it names is no address of a socket, or this process gets none.
    pub fn of(env: &Environment) -> Result<Option<Self>, Unreachable> {
        let Some(name) = env.get("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let socket = UnixDatagram::unbound()?;
        // Nobody waits for a manager that does not listen.
        socket.set_nonblocking(true)?;
        let number = |name| env.text(name)?.parse::<u64>().ok();
        let is_own = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|usec| is_own && *usec > 0);
        Ok(Some(Self {
            socket,
            address: address(name)?,
            watchdog: watchdog.map(Duration::from_micros),
        }))
    }

    /// Tells an event. A manager that is gone is no trouble of this process.
    pub(super) fn tell(&self, event: Event<'_>) {
        let sent = self
            .socket
            .send_to_addr(event.message().as_bytes(), &self.address);
        if let Err(error) = sent {
            tracing::debug!(%error, ?event, "the service manager could not be told");
        }
    }

    /// Tells, for ever, that this process runs, twice within the time in which it must.
    pub(super) async fn watch(&self) {
        let Some(within) = self.watchdog else {
            return std::future::pending().await;
        };
        let mut ticks = tokio::time::interval(within / 2);
        loop {
            ticks.tick().await;
            self.tell(Event::Alive);
        }
    }
}

/// A path, or after an `@` a name in the abstract namespace.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}

impl Event<'_> {
    fn message(self) -> String {
        match self {
            Self::Ready(status) => format!("READY=1\nSTATUS={}", status.replace('\n', " ")),
            Self::Reloading => format!(
                "RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reading the configuration",
                monotonic().as_micros()
            ),
            Self::Stopping => "STOPPING=1\nSTATUS=answers under way are finished".to_owned(),
            Self::Alive => "WATCHDOG=1".to_owned(),
        }
    }
}

/// The time since some moment, which is the same for all processes.
fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let whole = Duration::from_secs(now.tv_sec.unsigned_abs());
    whole + Duration::from_nanos(now.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut message = [0; 512];
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    }

    fn manager(address: &str, more: &[(&str, &str)]) -> Manager {
        let env = [("NOTIFY_SOCKET", address)];
        let env = env.iter().chain(more).copied().collect();
        Manager::of(&env).unwrap().unwrap()
    }

    #[test]
    fn a_manager_is_told_at_a_path_and_at_an_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("pdbmux-test-{}", std::process::id());
        let hidden = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, address) in [
            (UnixDatagram::bind(&path), path.display().to_string()),
            (UnixDatagram::bind_addr(&hidden), format!("@{name}")),
        ] {
            let (socket, manager) = (socket.unwrap(), manager(&address, &[]));
            manager.tell(Event::Ready("all\nis well"));
            assert_eq!(heard(&socket), "READY=1\nSTATUS=all is well");
            let before = monotonic();
            manager.tell(Event::Reloading);
            let message = heard(&socket);
            let mut lines = message.lines();
            assert_eq!(lines.next(), Some("RELOADING=1"));
            let stamp = lines
                .next()
                .and_then(|it| it.strip_prefix("MONOTONIC_USEC="));
            let stamp = Duration::from_micros(stamp.unwrap().parse().unwrap());
            assert!((before..=monotonic()).contains(&(stamp + Duration::from_micros(1))));
        }
    }

    #[test]
    fn nobody_is_told_where_nobody_asked() {
        for env in [&[][..], &[("NOTIFY_SOCKET", "")]] {
            assert!(
                Manager::of(&env.iter().copied().collect())
                    .unwrap()
                    .is_none()
            );
        }
        let gone = manager("/nowhere/notify", &[]);
        gone.tell(Event::Stopping);
        let long = ["/", &"x".repeat(200)].concat();
        let why = Manager::of(&[("NOTIFY_SOCKET", long)].into_iter().collect());
        assert!(why.unwrap_err().to_string().contains("NOTIFY_SOCKET"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_is_told_twice_in_its_time_and_only_by_whom_it_watches() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let own = std::process::id().to_string();
        for (pid, told) in [(own.as_str(), 5), ("1", 0)] {
            let more = [("WATCHDOG_USEC", "10000000"), ("WATCHDOG_PID", pid)];
            let manager = manager(path.to_str().unwrap(), &more);
            let watching = tokio::time::timeout(Duration::from_secs(21), manager.watch());
            assert!(watching.await.is_err());
            let mut message = [0; 64];
            let heard = std::iter::from_fn(|| socket.recv(&mut message).ok()).count();
            assert_eq!(heard, told, "{pid}");
        }
    }
}
