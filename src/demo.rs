//! `pdbmux demo`: two sample PuppetDBs, pdbmux in front of them, and a small console.
//!
//! The proxy itself comes in as a function, so that this module knows neither its configuration nor
//! its server.

mod command;
mod text;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::SystemTime;

use pdbmux_samples::{Server, migration, serve};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use self::command::Command;
use self::text::Text;
use crate::config::{BackendConfig, UrlError};

/// Resolves when the demo is over and the proxy has to drain and return.
pub type Shutdown = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why the demo could not run, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A sample PuppetDB found no free loopback port.
    #[error("cannot start the sample PuppetDB {name}: {source}")]
    Sample {
        /// Its name.
        name: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A sample's address is none.
    #[error("a sample PuppetDB has no usable address: {0}")]
    Address(#[from] UrlError),
    /// The terminal is gone.
    #[error("cannot write to the terminal: {0}")]
    Write(#[from] io::Error),
    /// The proxy ended in a panic.
    #[error("the proxy broke: {0}")]
    Proxy(#[from] tokio::task::JoinError),
}

/// Runs the demo until `q`, or until `stop` resolves (an interrupt).
///
/// Hands `listener` to `proxy`, together with the samples as backends in configured order; `proxy` serves until its [`Shutdown`] resolves. `lines` are the commands; when they end the
/// demo goes on, since a demo without a terminal still serves. All text goes to `out`.
pub async fn run<P, F>(
    listener: Arc<TcpListener>,
    mut lines: mpsc::Receiver<String>,
    out: &mut impl Write,
    stop: impl Future<Output = ()>,
    proxy: P,
) -> Result<(), DemoError>
where
    P: FnOnce(Vec<BackendConfig>, Arc<TcpListener>, Shutdown) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let address = listener.local_addr()?;
    let mut backends = start_samples().await?;
    let samples = backends
        .iter()
        .map(Backend::config)
        .collect::<Result<_, _>>()?;
    let (over, ended) = oneshot::channel::<()>();
    let shutdown = Box::pin(async move {
        // The sender sends nothing: that it is gone is the signal.
        let _ = ended.await;
    });
    let mut proxy = tokio::spawn(proxy(samples, listener, shutdown));

    let text = Text::new(address);
    say(out, &text.welcome(&backends))?;
    let mut stop = pin!(stop);
    let mut listening = true;
    loop {
        tokio::select! {
            () = &mut stop => break,
            ended = &mut proxy => return Ok(ended?),
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
    Ok(proxy.await?)
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

impl Backend {
    fn config(&self) -> Result<BackendConfig, UrlError> {
        Ok(BackendConfig {
            name: self.name.to_owned(),
            url: self.server.url().parse()?,
            access: crate::config::Access::default(),
        })
    }
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

#[cfg(test)]
mod tests;
