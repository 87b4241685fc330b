//! Reading the answers of a round, each as soon as it is there.

use std::sync::Arc;

use pdbmux_core::merge::Fan;
use pdbmux_core::plan::Ask;
use pdbmux_core::round::BackendId;

use super::serve::App;
use crate::upstream::{Asked, Room};
use crate::work;

impl App {
    /// Asks the questions of a fan-out, and reads each answer as soon as it is there: what waits for
    /// others is then read already when they come.
    pub(super) async fn ask_reading(
        &self,
        fan: &Arc<Fan>,
        asks: &[(BackendId, Ask)],
        room: Room,
    ) -> Vec<Asked> {
        let fan = Arc::clone(fan);
        let read = move |asked| read(Arc::clone(&fan), asked);
        self.upstream.fan_out_to(asks, room, read).await
    }
}

/// Reads a part, if it is a whole success.
async fn read(fan: Arc<Fan>, mut asked: Asked) -> Asked {
    if fan.scans()
        && asked.rest.is_none()
        && asked.is_success()
        && let Ok(received) = &mut asked.result
    {
        let body = received.body.clone();
        let scan = work::run(body.len(), move || fan.scan(&body)).await;
        received.scan = scan.map(Box::new);
    }
    asked
}

/// How many bytes a merge of `round` comes to read. What was read by itself is half done.
pub(super) fn to_read(round: &[Asked]) -> usize {
    let received = round.iter().filter_map(|asked| asked.result.as_ref().ok());
    let each = received.map(|it| match it.scan {
        Some(_) => it.body.len() / 2,
        None => it.body.len(),
    });
    each.sum()
}
