//! Questions that travel in a body: a client's own, and those too long for a backend's request line.

mod upstream;
