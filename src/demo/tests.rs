use tokio::net::TcpStream;

use super::*;

/// A proxy that serves nothing and waits for the end.
async fn idle(_: Vec<BackendConfig>, _: Arc<TcpListener>, end: Shutdown) {
    end.await;
}

/// A listener for the proxy.
async fn listener() -> Arc<TcpListener> {
    Arc::new(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap())
}

/// Lines that are all typed at once, and then no more.
fn typed(lines: &[&str]) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(lines.len().max(1));
    for line in lines {
        sender.try_send((*line).to_owned()).unwrap();
    }
    receiver
}

/// The text with the number of every port left out.
fn without_ports(text: &[u8]) -> String {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let mut parts = text.split("127.0.0.1:");
    let mut filtered = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        filtered.push_str("127.0.0.1:PORT");
        filtered.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    filtered
}

#[tokio::test]
async fn the_console_prints_the_golden_text() {
    let lines = typed(&["", "1", "s", "pdb-new", "2", "1", "3", "h", "q"]);
    let mut out = Vec::new();
    run(
        listener().await,
        lines,
        &mut out,
        std::future::pending(),
        idle,
    )
    .await
    .unwrap();
    insta::assert_snapshot!(without_ports(&out));
}

#[tokio::test]
async fn the_proxy_gets_both_samples_in_order_and_a_toggle_stops_one() {
    let (sender, lines) = mpsc::channel(1);
    let (seen, mut answers) = mpsc::unbounded_channel();
    let mut out = Vec::new();
    let proxy = async move |backends: Vec<BackendConfig>, _, end: Shutdown| {
        let reach = async |backend: &BackendConfig| {
            TcpStream::connect(backend.url.authority().as_str())
                .await
                .is_ok()
        };
        for backend in &backends {
            seen.send((backend.name.clone(), reach(backend).await))
                .unwrap();
        }
        sender.send("2".to_owned()).await.unwrap();
        // The second line is taken only when the first has been obeyed.
        sender.send(String::new()).await.unwrap();
        sender.reserve().await.map(drop).unwrap();
        let stopped = &backends[1];
        seen.send((stopped.name.clone(), reach(stopped).await))
            .unwrap();
        sender.send("q".to_owned()).await.unwrap();
        end.await;
    };
    run(
        listener().await,
        lines,
        &mut out,
        std::future::pending(),
        proxy,
    )
    .await
    .unwrap();
    for (name, up) in [("pdb-old", true), ("pdb-new", true), ("pdb-new", false)] {
        assert_eq!(answers.recv().await, Some((name.to_owned(), up)));
    }
}

#[tokio::test]
async fn the_demo_outlives_its_input_and_ends_with_the_interrupt() {
    let (interrupt, interrupted) = oneshot::channel::<()>();
    let (first, lines) = mpsc::channel(1);
    drop(first);
    let mut out = Signal {
        text: Vec::new(),
        awaited: text::NO_TERMINAL,
        sender: Some(interrupt),
    };
    let stop = async move { interrupted.await.unwrap() };
    run(listener().await, lines, &mut out, stop, idle)
        .await
        .unwrap();
    let text = String::from_utf8(out.text).unwrap();
    assert!(
        text.ends_with(&format!("{}{}", text::NO_TERMINAL, text::GOODBYE)),
        "{text}"
    );
}

/// A terminal that interrupts once it has been shown a text.
struct Signal {
    text: Vec<u8>,
    awaited: &'static str,
    sender: Option<oneshot::Sender<()>>,
}

impl Write for Signal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        if self.text.ends_with(self.awaited.as_bytes())
            && let Some(sender) = self.sender.take()
        {
            let _ = sender.send(());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_listener_on_all_addresses_is_named_by_one_that_can_be_copied() {
    let text = Text::new(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8080)));
    assert!(text.state(&[]).contains("http://127.0.0.1:8080\n"));
}
