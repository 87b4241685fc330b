//! What is known of the request that a task works for.
//!
//! A request carries this with its task, so that asking backends, counting and logging need no hand
//! in it. Work that is done for several goes on under the one that began it.

mod id;
mod trace_context;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use pdbmux_core::round::BackendId;
use tokio::time::Instant;

use crate::metrics::Route;
use crate::spans::{Recording, Sink};

pub(crate) use id::{Ids, unique};
pub(crate) use trace_context::TraceContext;

/// The header that an id comes and goes by.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

tokio::task_local! {
    static CURRENT: Option<Arc<Request>>;
}

/// One request of a client.
#[derive(Debug)]
pub(crate) struct Request {
    /// When its head had come.
    pub(crate) began: Instant,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    /// A token that says which one it is, here and at the backends, where requests have one.
    pub(crate) id: Option<HeaderValue>,
    /// The trace that it is part of, if its client told one or it is to be part of one.
    trace: Option<Box<TraceContext>>,
    /// Its span, if it is recorded.
    recording: Option<Recording>,
    /// The counts of the place that answers it, once that is known.
    route: OnceLock<Arc<Route>>,
    /// Whom it was let in as, once it was and if that has a name.
    user: OnceLock<Arc<str>>,
    questions: Option<Mutex<Vec<Question>>>,
}

/// Whether it is noted how long each backend took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notes {
    /// It is.
    Kept,
    /// It is not.
    Off,
}

/// What a backend was asked for a request.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) backend: BackendId,
    /// Which of those that answer for it, in configured order.
    pub(crate) member: usize,
    /// How long after the request began.
    pub(crate) began: Duration,
    /// How long the answer took.
    pub(crate) took: Duration,
    /// Its status, or one word why there was none.
    pub(crate) answer: Result<u16, String>,
}

impl Request {
    /// A request with this head. It has an id if there is something that makes `ids`, and may be
    /// recorded if there is somewhere that spans go.
    pub(crate) fn new<B>(
        head: &http::Request<B>,
        ids: Option<&Ids>,
        notes: Notes,
        spans: Option<&Sink>,
    ) -> Arc<Self> {
        let headers = head.headers();
        let told = headers.get(X_REQUEST_ID).filter(|id| id::is_sane(id));
        let id = |ids: &Ids| told.cloned().unwrap_or_else(|| ids.next());
        let told_trace = TraceContext::of(headers);
        let (trace, recording) = match spans {
            Some(sink) => sink.record(told_trace, headers),
            None => (told_trace, None),
        };
        Arc::new(Self {
            began: Instant::now(),
            method: head.method().clone(),
            uri: head.uri().clone(),
            id: ids.map(id),
            trace: trace.map(Box::new),
            recording,
            route: OnceLock::new(),
            user: OnceLock::new(),
            questions: match notes {
                Notes::Kept => Some(Mutex::default()),
                Notes::Off => None,
            },
        })
    }

    /// Its id as text, if it has one.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_ref()?.to_str().ok()
    }

    /// The counts of the place that answers it, if it has come to one.
    pub(crate) fn route(&self) -> Option<&Arc<Route>> {
        self.route.get()
    }

    /// Whom it was let in as, if that has a name.
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.get().map(|user| &**user)
    }

    /// Its span, if it is recorded.
    pub(crate) fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// What was asked for it, as far as that is noted.
    pub(crate) fn questions(&self) -> Vec<Question> {
        let noted = self.questions.as_ref();
        noted.map_or_else(Vec::new, |noted| {
            let noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.clone()
        })
    }

    /// Runs `work` for it.
    pub(crate) fn follow<T>(
        self: &Arc<Self>,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = T> {
        CURRENT.scope(Some(Arc::clone(self)), work)
    }

    /// Takes a step of work for it.
    pub(crate) fn step<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(Some(Arc::clone(self)), work)
    }
}

/// `work`, which goes on for this task's request in a task of its own.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let current = CURRENT.try_with(Option::clone).unwrap_or_default();
    CURRENT.scope(current, work)
}

/// Looks at this task's request, if it works for one.
pub(crate) fn current<T>(look: impl FnOnce(&Request) -> T) -> Option<T> {
    let looked = CURRENT.try_with(|current| current.as_deref().map(look));
    looked.unwrap_or_default()
}

/// Takes in where this task's request is answered.
pub(crate) fn found(route: &Arc<Route>) {
    current(|request| {
        request.route.get_or_init(|| Arc::clone(route));
    });
}

/// Takes in whom this task's request was let in as.
pub(crate) fn let_in(user: Arc<str>) {
    // It is let in once.
    current(|request| request.user.set(user).unwrap_or_default());
}

/// Counts something at the place that answers this task's request.
pub(crate) fn count(count: impl FnOnce(&Route)) {
    current(|request| request.route().map(|route| count(route)));
}

/// Takes in how long a merge took for this task's request.
pub(crate) fn merged(took: Duration) {
    current(|request| {
        if let Some(route) = request.route() {
            route.merged(took);
        }
        if let Some(recording) = request.recording() {
            recording.merged(took);
        }
    });
}

/// Looks at the span of this task's request, if that is recorded.
pub(crate) fn recorded<T>(look: impl FnOnce(&Recording) -> T) -> Option<T> {
    current(|request| request.recording().map(look)).flatten()
}

/// What a PuppetDB is told as `origin`: that it is pdbmux who asks, and for which request, if it works
/// for one that has an id.
pub(crate) fn origin() -> String {
    let id = current(|request| request.id().map(|id| format!("pdbmux:{id}")));
    id.flatten().unwrap_or_else(|| "pdbmux".to_owned())
}

/// Tells a backend for which request it is asked; `span` is that of the question, if it has one.
pub(crate) fn tell(headers: &mut HeaderMap, span: Option<u64>) {
    current(|request| {
        if let Some(id) = &request.id {
            headers.insert(X_REQUEST_ID, id.clone());
        }
        if let Some(trace) = &request.trace {
            trace.add_to(headers, span.unwrap_or_else(unique));
        }
    });
}

/// Notes what came of a question, if this task's request wants that.
pub(crate) fn note(
    backend: BackendId,
    member: usize,
    began: Instant,
    answer: impl FnOnce() -> Result<u16, String>,
) {
    current(|request| {
        let Some(questions) = &request.questions else {
            return;
        };
        let question = Question {
            backend,
            member,
            began: began.duration_since(request.began),
            took: began.elapsed(),
            answer: answer(),
        };
        let mut questions = questions.lock().unwrap_or_else(PoisonError::into_inner);
        questions.push(question);
    });
}
