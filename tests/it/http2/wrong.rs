//! Clients that use HTTP/2 to do harm.

use super::NODES;
use crate::client::Client;
use crate::harness::Pdbmux;
use crate::stub::{Answer, Gate, Stub};

/// A frame as it stands on the wire (RFC 9113, 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A connection on which nothing was asked yet.
async fn connected(mux: &Pdbmux) -> Client {
    let mut client = mux.connect().await;
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    client.send(frame(SETTINGS, 0, 0, &[])).await;
    client
}

/// The head of a request: GET, http, a path and an authority, none of them compressed.
fn head(path: &str) -> Vec<u8> {
    let mut head = vec![0x82, 0x86];
    for (name, value) in [(0x04, path), (0x01, "x")] {
        head.extend([name, u8::try_from(value.len()).unwrap()]);
        head.extend(value.as_bytes());
    }
    head
}

/// Why the connection was ended, if the other side said so.
fn reason(mut received: &[u8]) -> Option<u32> {
    let mut reason = None;
    while received.len() >= 9 {
        let length = u32::from_be_bytes([0, received[0], received[1], received[2]]);
        let end = 9 + usize::try_from(length).unwrap();
        if received[3] == GOAWAY {
            reason = Some(u32::from_be_bytes(received[13..17].try_into().unwrap()));
        }
        received = received.get(end..)?;
    }
    reason
}

const ENHANCE_YOUR_CALM: u32 = 11;

#[tokio::test]
async fn whoever_asks_and_takes_back_without_end_is_cut_off() {
    let a = Stub::start().await;
    a.on(NODES, Answer::hung());
    let mux = Pdbmux::start(&[&a]).await;
    let mut client = connected(&mux).await;
    let mut flood = Vec::new();
    for stream in (1..2000).step_by(2) {
        flood.extend(frame(
            HEADERS,
            END_STREAM | END_HEADERS,
            stream,
            &head(NODES),
        ));
        flood.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
    }
    client.send_while_open(flood).await;
    let told = client.until_closed().await;
    assert_eq!(reason(&told), Some(ENHANCE_YOUR_CALM));
    // Of a thousand requests next to none was looked at.
    assert!(a.seen().len() <= 40, "{}", a.seen().len());
}

#[tokio::test]
async fn a_head_in_endless_pieces_is_cut_off() {
    let mux = Pdbmux::start(&[]).await;
    let mut client = connected(&mux).await;
    client
        .send(frame(HEADERS, END_STREAM, 1, &head(NODES)))
        .await;
    let piece = frame(CONTINUATION, 0, 1, &[]);
    client.send_while_open(piece.repeat(100_000)).await;
    client.until_closed().await;
}

#[tokio::test]
async fn no_more_is_answered_at_one_time_than_a_connection_may_ask() {
    let a = Stub::start().await;
    a.on(NODES, Answer::json("[]").behind(&Gate::new()));
    let mux = Pdbmux::start(&[&a]).await;
    let mut client = connected(&mux).await;
    let mut flood = Vec::new();
    for stream in (1..300).step_by(2) {
        flood.extend(frame(
            HEADERS,
            END_STREAM | END_HEADERS,
            stream,
            &head(NODES),
        ));
    }
    client.send_while_open(flood).await;
    a.until_seen(100).await;
    // Those beyond were refused: REFUSED_STREAM is 7.
    let refused = frame(RST_STREAM, 0, 299, &[0, 0, 0, 7]);
    client
        .until(|received| received.windows(refused.len()).any(|part| part == refused))
        .await;
    assert_eq!(a.most_under_way(), 100);
}
