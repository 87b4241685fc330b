//! Host names of backends, for the connector.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use crate::names::{LookupError, Names};

/// Looks a backend's host up, each time a connection to it is made.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct Resolve(Arc<Names>);

impl Resolve {
    pub(super) fn new(names: Names) -> Self {
        Self(Arc::new(names))
    }
}

impl Service<Name> for Resolve {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = LookupError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, LookupError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LookupError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let names = Arc::clone(&self.0);
        Box::pin(async move {
            let found = names.addresses(name.as_str()).await?;
            // The connector puts its own port in the place of 0.
            let found: Vec<_> = found.into_iter().map(|it| SocketAddr::new(it, 0)).collect();
            Ok(found.into_iter())
        })
    }
}
