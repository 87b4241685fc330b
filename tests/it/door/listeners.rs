//! Several addresses for clients.

use pdbmux::config::{Config, Listen};
use pdbmux::listener::Listener;
use pdbmux::names::Names;
use tokio::net::TcpListener;

use super::NODES;
use crate::client::Client;
use crate::harness::Pdbmux;
use crate::stub::Stub;

#[tokio::test]
async fn r269_clients_are_answered_alike_at_every_address() {
    let a = Stub::start().await;
    a.on(NODES, "[]");
    let any: Listen = "127.0.0.1:0".parse().unwrap();
    let mux = Pdbmux::with(&[&a], |config| config.listen = vec![any.clone(), any]).await;
    assert_eq!(mux.addresses().len(), 2);
    for address in mux.addresses() {
        let mut client = Client::connect(*address).await;
        assert_eq!(client.get(NODES).await.ok(), "[]");
    }
}

#[tokio::test]
async fn all_addresses_are_had_before_any_is_served_and_the_one_that_is_not_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, freed) = (taken.local_addr().unwrap(), free.local_addr().unwrap());
    drop(free);
    let config = Config {
        listen: [freed, address]
            .map(|at| at.to_string().parse().unwrap())
            .into(),
        ..Config::default()
    };
    let opened = Listener::open_all(&config, &Names::of_system()).await;
    let why = format!("cannot listen on {address}: the address is in use");
    assert_eq!(opened.unwrap_err().to_string(), why);
    assert!(TcpListener::bind(freed).await.is_ok());
}
