//! `pdbmux demo`: two sample PuppetDBs, pdbmux in front of them, and a small console.
//!
//! The proxy itself comes in as a function, so that this module knows neither its configuration nor
//! its server.

mod command;
mod text;

use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::time::{Duration, SystemTime};

use pdbmux_samples::{Server, migration, serve};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use self::command::Command;
use self::text::Text;

/// Where the demo listens if nothing else is said.
pub const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// A health probe interval at which a stopped sample is noticed while one still looks.
pub const PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// Resolves when the demo is over and the proxy has to drain and return.
pub type Shutdown = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why the demo could not run, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// Another program has the port.
    #[error("{0} is already taken, choose another address with --listen")]
    Taken(SocketAddr),
    /// The address cannot be listened on for another reason.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A sample PuppetDB found no free loopback port.
    #[error("cannot start the sample PuppetDB {name}: {source}")]
    Sample {
        /// Its name.
        name: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The terminal is gone.
    #[error("cannot write to the terminal: {0}")]
    Write(#[from] io::Error),
    /// The proxy failed.
    #[error("{0}")]
    Proxy(Box<dyn Error + Send + Sync>),
}

/// Runs the demo until `q`, or until `stop` resolves (an interrupt).
///
/// Listens on `listen` and hands the listener to `proxy`, together with the name and base URL of
/// each sample in configured order; `proxy` serves until its [`Shutdown`] resolves. `lines` are the
/// commands; when they end the demo goes on, since a demo without a terminal still serves. All text
/// goes to `out`.
pub async fn run<P, F, E>(
    listen: SocketAddr,
    mut lines: mpsc::Receiver<String>,
    out: &mut impl Write,
    stop: impl Future<Output = ()>,
    proxy: P,
) -> Result<(), DemoError>
where
    P: FnOnce(Vec<(String, String)>, TcpListener, Shutdown) -> F,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<Box<dyn Error + Send + Sync>> + Send + 'static,
{
    let listener = bind(listen).await?;
    let address = listener.local_addr()?;
    let mut backends = start_samples().await?;
    let urls = backends
        .iter()
        .map(|it| (it.name.to_owned(), it.server.url()))
        .collect();
    let (over, ended) = oneshot::channel::<()>();
    let shutdown = Box::pin(async move {
        // The sender sends nothing: that it is gone is the signal.
        let _ = ended.await;
    });
    let mut proxy = tokio::spawn(proxy(urls, listener, shutdown));

    let text = Text::new(address);
    say(out, &text.welcome(&backends))?;
    let mut stop = pin!(stop);
    let mut listening = true;
    loop {
        tokio::select! {
            () = &mut stop => break,
            ended = &mut proxy => return proxy_end(ended),
            line = lines.recv(), if listening => match line.as_deref().map(Command::parse) {
                None => {
                    listening = false;
                    say(out, text::NO_TERMINAL)?;
                }
                Some(Command::Quit) => break,
                Some(command) => {
                    let answer = obey(command, &mut backends, &text).await;
                    say(out, &answer)?;
                }
            },
        }
    }
    say(out, text::GOODBYE)?;
    drop(over);
    proxy_end(proxy.await)
}

/// The lines of standard input, read on a thread of their own: a blocked read must not keep the
/// program from ending.
pub fn stdin_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// A sample under the name that pdbmux knows it by.
struct Backend {
    name: &'static str,
    version: String,
    server: Server,
}

async fn bind(address: SocketAddr) -> Result<TcpListener, DemoError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => DemoError::Taken(address),
            _ => DemoError::Listen { address, source },
        })
}

async fn start_samples() -> Result<Vec<Backend>, DemoError> {
    let mut backends = Vec::new();
    for sample in migration::samples(SystemTime::now().into()) {
        let name = sample.name;
        let version = sample.estate.version().to_owned();
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = serve(sample.estate, any_port)
            .await
            .map_err(|source| DemoError::Sample { name, source })?;
        backends.push(Backend {
            name,
            version,
            server,
        });
    }
    Ok(backends)
}

/// Carries out a command and tells what to expect of it.
async fn obey(command: Command<'_>, backends: &mut [Backend], text: &Text) -> String {
    let named = match command {
        Command::Nothing | Command::Quit => return String::new(),
        Command::Help => return text.help(backends),
        Command::State => return text.state(backends),
        Command::Toggle(name) => name,
    };
    let numbered =
        |it: &(usize, &mut Backend)| it.1.name == named || (it.0 + 1).to_string() == named;
    let Some((_, backend)) = backends.iter_mut().enumerate().find(numbered) else {
        return text::unknown(named);
    };
    let name = backend.name;
    if backend.server.is_running() {
        backend.server.stop().await;
        return text.stopped(name, backends);
    }
    match backend.server.restart().await {
        Ok(()) => text.restarted(name, backends),
        Err(error) => text::not_restarted(name, &error),
    }
}

fn say(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn proxy_end<E: Into<Box<dyn Error + Send + Sync>>>(
    ended: Result<Result<(), E>, tokio::task::JoinError>,
) -> Result<(), DemoError> {
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(DemoError::Proxy(error.into())),
        Err(panicked) => Err(DemoError::Proxy(panicked.into())),
    }
}

#[cfg(test)]
mod tests;
