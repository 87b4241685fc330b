//! The application that serves now.

use std::sync::Arc;

use tokio::sync::watch;

use super::App;

/// The application that requests which begin now are answered by. A request keeps the one that it
/// began with to its last byte, whatever takes the place of that meanwhile.
#[derive(Debug)]
pub(crate) struct Current(watch::Sender<Arc<App>>);

impl Current {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self(watch::Sender::new(app))
    }

    /// The application for a request that begins.
    pub(crate) fn app(&self) -> Arc<App> {
        Arc::clone(&self.0.borrow())
    }

    /// Answers by another one from now on.
    pub(crate) fn replace(&self, app: Arc<App>) {
        self.0.send_replace(app);
    }
}
