//! The closed sets of words that labels can be. No label takes what a client sent.

/// One of few words.
pub(super) trait Words: Copy + 'static {
    /// All of them, in the order of their places.
    const WORDS: &'static [&'static str];

    /// Its place among them.
    fn at(self) -> usize;
}

/// An enum without data whose variants are words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$about])* $variant,)+
        }

        impl $crate::metrics::names::Words for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn at(self) -> usize {
                self as usize
            }
        }

        impl $name {
            /// Its word.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}
pub(super) use words;

words! {
    /// How a request was made, as far as that is told apart.
    Method {
        /// GET, and HEAD which is answered alike.
        Get = "GET",
        /// POST.
        Post = "POST",
        /// Anything else, whatever a client calls it.
        Other = "other",
    }
}

impl From<&http::Method> for Method {
    fn from(method: &http::Method) -> Self {
        match *method {
            http::Method::GET | http::Method::HEAD => Self::Get,
            http::Method::POST => Self::Post,
            _ => Self::Other,
        }
    }
}

words! {
    /// The class of an answer's status.
    Status {
        /// Success.
        Success = "2xx",
        /// See elsewhere.
        Redirect = "3xx",
        /// The client's mistake.
        Refused = "4xx",
        /// A fault of pdbmux or of the backends.
        Failed = "5xx",
        /// None: the client left before the answer began.
        Left = "left",
    }
}

impl From<http::StatusCode> for Status {
    fn from(status: http::StatusCode) -> Self {
        match status.as_u16() {
            ..300 => Self::Success,
            300..400 => Self::Redirect,
            400..500 => Self::Refused,
            500.. => Self::Failed,
        }
    }
}

words! {
    /// What the cache had to do with an answer.
    Tier {
        /// A fresh entry.
        Hit = "hit",
        /// The backends were asked.
        Miss = "miss",
        /// An entry past its time, since no backend answered.
        Stale = "stale",
        /// Nothing, though the route's answers can be kept.
        Bypass = "bypass",
    }
}

words! {
    /// What there was too little of for a request.
    Shed {
        /// Memory for the backends' answers.
        Memory = "memory",
        /// File descriptors for connections to the backends.
        Descriptors = "descriptors",
        /// Places in the queue for those that others end.
        QueueLength = "queue_length",
        /// Time: it waited there for as long as it may.
        QueueTime = "queue_time",
        /// Places of its client.
        PerClient = "per_client",
    }
}

words! {
    /// Why who asks may not.
    Denied {
        /// Nothing shows who it is.
        Bare = "bare",
        /// What shows it is of nobody.
        Unknown = "unknown",
        /// The certificate is of somebody who may not ask.
        Unlisted = "unlisted",
    }
}

words! {
    /// What came of reading the configuration again.
    Reload {
        /// It is in use.
        Succeeded = "success",
        /// The one before it stays in use.
        Failed = "failure",
    }
}

words! {
    /// What became of a span.
    Fate {
        /// The collector has taken it.
        Exported = "exported",
        /// Too many waited already.
        Dropped = "dropped",
        /// The collector does not want it.
        Refused = "refused",
        /// The collector was away when pdbmux was told to send spans elsewhere.
        Unsent = "unsent",
    }
}

/// How whole an answer was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// Nothing is missing in it.
    Whole,
    /// A backend is missing in it.
    Partial,
    /// It was refused, since a backend would have been missing.
    Refused,
}
