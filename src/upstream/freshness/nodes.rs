//! The lists of nodes that the freshness map is built of, read while they arrive.

use http::Response;
use pdbmux_core::merge::owners::{ArrivingNodes, Nodes};
use pdbmux_core::plan::Ask;
use pdbmux_core::round::BackendId;
use tokio::task::yield_now;

use super::super::places::Stay;
use super::super::{Failure, Incoming, Turn, Upstream, Via};

/// How much of a list of nodes is read at once: those of several backends are read side by side.
const SLICE: usize = 64 << 10;

impl Upstream {
    /// The nodes of a backend; of a group, of the first member that tells them.
    pub(super) async fn nodes_of(
        &self,
        backend: BackendId,
        ask: &Ask,
    ) -> (Option<Via>, Result<Turn<Nodes>, Failure>) {
        loop {
            let take =
                |response: Response<Incoming>| self.read_nodes(backend, response.into_body());
            let asked = self.ask_staying(backend, ask, Stay::Short, take).await;
            // A backend that only pdbmux could not ask must not lose its nodes to others.
            let is_asked = |failure: &Failure| failure.lack().is_none();
            if asked.1.as_ref().err().is_none_or(is_asked) {
                return asked;
            }
        }
    }

    /// Reads the nodes while they arrive.
    async fn read_nodes(&self, backend: BackendId, mut body: Incoming) -> Result<Nodes, Failure> {
        let max = self.max_body();
        let mut nodes = ArrivingNodes::of(backend);
        while let Some(bytes) = self.next_bytes(&mut body).await.transpose()? {
            for slice in bytes.chunks(SLICE) {
                if let Err(error) = nodes.feed(slice) {
                    return Err(body.given_up(Failure::Damaged(error.into())));
                }
                if nodes.held() > max {
                    return Err(body.given_up(Failure::TooLong(max)));
                }
                // Other requests of this worker have their turn.
                yield_now().await;
            }
        }
        let nodes = nodes.finish();
        nodes.map_err(|error| body.given_up(Failure::Damaged(error.into())))
    }
}
