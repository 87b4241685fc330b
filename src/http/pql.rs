//! PQL, which a backend translates into AST.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use http::Response;
use pdbmux_core::json::{Elements, ScanError};
use pdbmux_core::plan::{Ask, Turns};

use super::body::Body;
use super::fan::Conclusion;
use super::respond;
use super::serve::App;
use super::turns::Taken;
use crate::upstream::{Failure, Incoming};

/// How many translations are remembered. A client's texts are few, and each is asked often.
const MOST: usize = 512;

/// The longest question whose translation is remembered, in bytes of its path and query. With those
/// of [`MOST`] translations, which are shorter, it bounds what is kept.
const LONGEST: usize = 16 << 10;

/// The translations made so far, by the question that asks for one.
///
/// They do not age: a translation follows from its text, and what a backend of another version would
/// refuse, it refuses when the AST is put to it.
#[derive(Debug)]
pub(super) struct Translations(Mutex<LruCache<String, Arc<str>>>);

impl Default for Translations {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MOST)))
    }
}

impl Translations {
    fn get(&self, question: &str) -> Option<Arc<str>> {
        self.known().get(question).cloned()
    }

    fn put(&self, question: String, text: &Arc<str>) {
        if question.len() + text.len() <= LONGEST {
            self.known().insert(question, Arc::clone(text));
        }
    }

    fn known(&self) -> MutexGuard<'_, LruCache<String, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App {
    /// The AST that `ask` asks for: as it is remembered, or from the first backend that translates.
    /// The answer, if none does.
    pub(super) async fn translation(&self, ask: &Ask) -> Result<Arc<str>, Response<Body>> {
        let question = ask.target();
        if let Some(known) = self.translations.get(&question) {
            return Ok(known);
        }
        let taken = self.take_turns(ask, &Turns::Configured, |_, success| self.read_ast(success));
        match taken.await {
            Taken::Success(text, without, _) => {
                self.warn(&without);
                self.translations.put(question, &text);
                Ok(text)
            }
            Taken::Refused(received) => Err(respond::replayed(&received, &self.addresses)),
            Taken::Nothing(without) => Err(self.nothing(&without)),
            Taken::Full(lack) => Err(self.respond(Conclusion::Full(lack))),
        }
    }

    async fn read_ast(&self, success: Response<Incoming>) -> Result<Arc<str>, Failure> {
        let received = self.upstream.receive(success).await?;
        ast(&received.body).map_err(|error| Failure::Damaged(error.into()))
    }
}

/// The text of an answer that is one JSON array, as every translation is.
fn ast(body: &[u8]) -> Result<Arc<str>, ScanError> {
    Elements::new(body).try_for_each(|element| element.map(|_| ()))?;
    Ok(String::from_utf8_lossy(body).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_translations_are_kept_and_no_long_one() {
        let translations = Translations::default();
        let text: Arc<str> = "[]".into();
        translations.put("x".repeat(LONGEST), &text);
        for question in 0..=MOST {
            translations.put(question.to_string(), &text);
        }
        assert_eq!(translations.known().len(), MOST);
        assert_eq!(translations.get("0"), None);
        assert_eq!(translations.get("1"), Some(text));
    }
}
