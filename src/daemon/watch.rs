//! Looking at the config file for changes.

use std::future;
use std::time::Duration;

use crate::config::Source;

/// What is known of the config file. Its bytes are compared, not its times: a file may be replaced by a
/// rename, or by a link to a folder that is, within the same second, and be touched without a change.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// What it held at the last look.
    seen: Option<Vec<u8>>,
}

impl Watch {
    /// Resolves when the file holds something else than was read; it is looked at each `pause`, never if
    /// that is 0.
    pub(super) async fn changed(&mut self, source: Option<&Source>, pause: Duration) {
        let Some(source) = source.filter(|_| !pause.is_zero()) else {
            return future::pending().await;
        };
        loop {
            tokio::time::sleep(pause).await;
            let looking = source.clone();
            let content = tokio::task::spawn_blocking(move || looking.content()).await;
            if self.is_steady(content.ok().flatten()) && source.is_news(self.seen.as_deref()) {
                return;
            }
        }
    }

    /// Takes in what the file holds now. Whether that was there at the look before already, so that
    /// nobody is writing it.
    fn is_steady(&mut self, content: Option<Vec<u8>>) -> bool {
        let steady = content == self.seen;
        self.seen = content;
        steady
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_being_written_is_not_read() {
        let content = |text: &str| (!text.is_empty()).then(|| text.as_bytes().to_vec());
        let mut watch = Watch::default();
        // It is there, and then truncated and written in two parts.
        let looks = ["a", "a", "a", "", "b", "bb", "bb", "bb"];
        let steady = looks.map(|text| watch.is_steady(content(text)));
        assert_eq!(steady, [false, true, true, false, false, false, true, true]);
    }
}
