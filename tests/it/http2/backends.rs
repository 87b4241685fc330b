//! Backends that are asked by HTTP/2: many requests share a connection, and none pays for another.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Response;
use pdbmux::check::{self, Aspect};
use pdbmux::config::{Access, Protocol};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{ENVIRONMENTS, NODES};
use crate::client::{End, in_time};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Stub};
use crate::tls::{Authority, Files, Front};

/// A backend that does with its connections, numbered from 0, what it is made to.
struct Hand {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

type Conversation = Connection<TcpStream, Bytes>;
type Question = (http::Request<RecvStream>, SendResponse<Bytes>);

impl Hand {
    async fn new<F>(
        builder: Builder,
        does: impl Fn(usize, Conversation) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::<AtomicUsize>::default();
        let (count, mut serving) = (Arc::clone(&connections), JoinSet::new());
        serving.spawn(async move {
            let mut under_way = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::Relaxed);
                let conversation = builder.handshake(stream).await.unwrap();
                under_way.spawn(does(number, conversation));
            }
        });
        Self {
            address,
            connections,
            _serving: serving,
        }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    async fn behind(&self, timeout: Duration) -> Pdbmux {
        Pdbmux::with(&[&Stub::closed()], |config| {
            config.backends[0].url = format!("http://{}", self.address).parse().unwrap();
            config.backends[0].access.http2 = Some(Protocol::Http2);
            config.timeout = timeout;
        })
        .await
    }
}

/// Answers until the other side is gone.
async fn answer(mut conversation: Conversation, with: impl Fn(Question)) {
    while let Some(Ok(question)) = conversation.accept().await {
        with(question);
    }
}

fn nothing((_, mut respond): Question) {
    let mut body = respond.send_response(Response::new(()), false).unwrap();
    body.send_data(Bytes::from_static(b"[]"), true).unwrap();
}

async fn asked_by_http2() -> Stub {
    Stub::speaking(Protocol::Http2).await
}

#[tokio::test]
async fn many_questions_share_a_connection_and_a_name_takes_the_place_of_host() {
    let (a, gate) = (asked_by_http2().await, Gate::new());
    a.on(NODES, Answer::json("[]").behind(&gate));
    let mux = Pdbmux::start(&[&a]).await;
    let answers = join_all((0..20).map(|_| mux.get(NODES)));
    let opening = async {
        a.until_seen(20).await;
        gate.open();
    };
    let (answers, ()) = tokio::join!(answers, opening);
    assert!(answers.iter().all(|response| response.ok() == "[]"));
    assert_eq!((a.connections(), a.most_under_way()), (1, 20));
    let seen = a.seen().remove(0);
    let mut hosts = seen.headers.iter().filter(|(name, _)| name == "host");
    assert_eq!(hosts.next().unwrap().1, a.front().to_string());
    assert_eq!(hosts.next(), None);
}

#[tokio::test]
async fn by_tls_it_is_offered_and_http_1_1_spoken_with_whoever_does_not_take_it() {
    let (a, files, ca) = (
        asked_by_http2().await,
        Files::new(),
        Authority::new("Puppet CA"),
    );
    a.otherwise("[]")
        .on("/pdb/meta/v1/version", r#"{"version":"8.4.1"}"#);
    let (own, client) = (ca.identity("puppetdb"), ca.identity("pdbmux"));
    let access = Access {
        http2: Some(Protocol::Http2),
        ..files.access(&ca, &client)
    };
    let modern = Front::by_http2(&a, &own, Some(&ca)).await;
    let plain = Front::before(&a, &own, Some(&ca)).await;
    for (front, spoken) in [
        (&modern, "HTTP/2"),
        (
            &plain,
            "HTTP/1.1, since it does not take the offered HTTP/2",
        ),
    ] {
        let before = a.connections();
        let mut config = pdbmux::config::Config::default();
        let mux = Pdbmux::with(&[&Stub::closed()], |it| {
            it.backends[0].url = front.url().parse().unwrap();
            it.backends[0].access = access.clone();
            config = it.clone();
        })
        .await;
        for _ in 0..3 {
            assert_eq!(mux.get(NODES).await.ok(), "[]");
        }
        let fronted = a.connections() - before;
        assert_eq!(fronted, usize::from(spoken == "HTTP/2"));
        let report = check::run(&config, None).await.unwrap();
        let findings = &report.backends[0].findings;
        let found = findings.iter().find(|it| it.aspect == Aspect::Protocol);
        assert_eq!(found.unwrap().text, spoken);
    }
}

#[tokio::test]
async fn whom_it_does_not_let_in_is_told_why_as_by_http_1_1() {
    let (a, files, ca) = (
        asked_by_http2().await,
        Files::new(),
        Authority::new("Puppet CA"),
    );
    let front = Front::by_http2(&a, &ca.identity("puppetdb"), Some(&ca)).await;
    let strange = Authority::new("Another CA").identity("pdbmux");
    let cert = files.path("cert.pem").display().to_string();
    for (own, sentence) in [
        (
            Some(strange),
            format!(
                "it does not take the client certificate {cert}: it does not know who issued it"
            ),
        ),
        (
            None,
            "it wants a client certificate, and none is configured: set cert and key".to_owned(),
        ),
    ] {
        let shown = own.clone().unwrap_or(ca.identity("pdbmux"));
        let mut access = files.access(&ca, &shown);
        access.http2 = Some(Protocol::Http2);
        if own.is_none() {
            (access.cert, access.key) = (None, None);
        }
        let mux = Pdbmux::with(&[&Stub::closed()], |config| {
            config.backends[0].url = front.url().parse().unwrap();
            config.backends[0].access = access;
        })
        .await;
        let health = mux.get("/healthz").await.json();
        assert_eq!(health["backends"][0]["reachable"], sentence);
    }
}

#[tokio::test]
async fn one_that_speaks_http_1_1_alone_is_told_in_a_sentence() {
    let a = Stub::speaking(Protocol::Http1).await;
    a.otherwise(Answer::status(400, "no").close());
    let mux = Pdbmux::with(&[&a], |config| {
        config.backends[0].access.http2 = Some(Protocol::Http2);
    })
    .await;
    let response = mux.get(NODES).await;
    assert_eq!(response.missing(), ["pdb-a; reason=unreachable"]);
    let health = mux.get("/healthz").await.json();
    assert_eq!(
        health["backends"][0]["reachable"],
        "there is no answer by HTTP/2: does it speak that without TLS, as http2 says?"
    );
}

#[tokio::test]
async fn a_connection_that_ends_under_a_question_costs_no_answer() {
    // Each connection is good for one answer, and leaves the second question.
    let hand = Hand::new(Builder::new(), |_, mut conversation| async move {
        nothing(conversation.accept().await.unwrap().unwrap());
        let _left = conversation.accept().await;
    })
    .await;
    let mux = hand.behind(SHORT).await;
    for _ in 0..10 {
        assert_eq!(mux.get(NODES).await.ok(), "[]");
    }
    assert_eq!(hand.connections(), 10);
    // Ended in order, with what is under way finished.
    let hand = Hand::new(Builder::new(), |_, mut conversation| async move {
        nothing(conversation.accept().await.unwrap().unwrap());
        conversation.graceful_shutdown();
        answer(conversation, nothing).await;
    })
    .await;
    let mux = hand.behind(SHORT).await;
    let answers = join_all((0..50).map(|_| mux.get(NODES))).await;
    assert!(answers.iter().all(|response| response.ok() == "[]"));
}

#[tokio::test]
async fn what_is_refused_before_it_was_looked_at_is_asked_once_more_and_not_for_ever() {
    let refuses = |(_, mut respond): Question| respond.send_reset(Reason::REFUSED_STREAM);
    let hand = Hand::new(Builder::new(), move |number, conversation| async move {
        match number {
            0 => answer(conversation, refuses).await,
            _ => answer(conversation, nothing).await,
        }
    })
    .await;
    let mux = hand.behind(SHORT).await;
    assert_eq!(mux.get(NODES).await.ok(), "[]");
    let hand = Hand::new(Builder::new(), move |_, conversation| {
        answer(conversation, refuses)
    })
    .await;
    let mux = hand.behind(SHORT).await;
    let response = mux.get(NODES).await;
    assert_eq!(response.missing(), ["pdb-a; reason=unreachable"]);
    assert_eq!(hand.connections(), 2);
}

#[tokio::test]
async fn an_answer_that_is_taken_back_is_broken_whatever_the_reason() {
    for reason in [Reason::CANCEL, Reason::NO_ERROR, Reason::INTERNAL_ERROR] {
        let gate = Gate::new();
        let behind = gate.clone();
        let hand = Hand::new(Builder::new(), move |_, mut conversation| {
            let gate = behind.clone();
            async move {
                while let Some(Ok((_, mut respond))) = conversation.accept().await {
                    let mut body = respond.send_response(Response::new(()), false).unwrap();
                    body.send_data(Bytes::from_static(b"[]"), false).unwrap();
                    let gate = gate.clone();
                    tokio::spawn(async move {
                        gate.pass().await;
                        body.send_reset(reason);
                    });
                }
            }
        })
        .await;
        let mux = hand.behind(2 * SHORT).await;
        let opening = async {
            tokio::time::sleep(SHORT / 2).await;
            gate.open();
        };
        let asked = async { tokio::join!(mux.get(NODES), mux.get(ENVIRONMENTS)) };
        let ((merged, passed), ()) = tokio::join!(asked, opening);
        assert_eq!(merged.missing(), ["pdb-a; reason=cut"], "{reason:?}");
        assert_eq!(
            (passed.status, passed.end),
            (200, End::Broken),
            "{reason:?}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_has_gone_silent_is_used_no_more() {
    let hand = Hand::new(Builder::new(), |number, conversation| async move {
        match number {
            0 => {
                let _alive = conversation;
                std::future::pending::<()>().await;
            }
            _ => answer(conversation, nothing).await,
        }
    })
    .await;
    let mux = hand.behind(SHORT).await;
    let response = mux.get(NODES).await;
    assert_eq!(response.missing(), ["pdb-a; reason=timeout"]);
    assert_eq!(mux.get(NODES).await.ok(), "[]");
    assert_eq!(mux.get(NODES).await.ok(), "[]");
    assert_eq!(hand.connections(), 2);
}

#[tokio::test]
async fn a_backend_that_takes_few_at_one_time_gets_more_connections() {
    let (under_way, all) = (Arc::<AtomicUsize>::default(), Gate::new());
    let mut few = Builder::new();
    few.max_concurrent_streams(2);
    let hand = Hand::new(few, move |_, conversation| {
        let (under_way, all) = (Arc::clone(&under_way), all.clone());
        answer(conversation, move |question| {
            // The first is alone; of those after it each waits for all.
            if under_way.fetch_add(1, Ordering::Relaxed) == 6 {
                all.open();
            }
            if under_way.load(Ordering::Relaxed) == 1 {
                return nothing(question);
            }
            let all = all.clone();
            tokio::spawn(async move {
                all.pass().await;
                nothing(question);
            });
        })
    })
    .await;
    let mux = hand.behind(Duration::from_secs(10)).await;
    mux.get(NODES).await.ok();
    let answers = in_time(join_all((0..6).map(|_| mux.get(NODES)))).await;
    assert!(answers.iter().all(|response| response.ok() == "[]"));
    assert_eq!(hand.connections(), 3);
}
