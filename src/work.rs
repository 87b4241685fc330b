//! Where work on answers runs.

/// Bytes that are read on the spot: about 30 microseconds of scanning. More would hold up the other
/// requests of the same worker.
const ON_THE_SPOT: usize = 512 << 10;

/// Runs `task`, which reads about `size` bytes: at once if that is little, else on the pool for
/// blocking work. A panic in it goes on in the caller.
pub(crate) async fn run<T: Send + 'static>(
    size: usize,
    task: impl FnOnce() -> T + Send + 'static,
) -> T {
    if size <= ON_THE_SPOT {
        return task();
    }
    match tokio::task::spawn_blocking(task).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down; nobody waits for the result any more.
            Err(_) => std::future::pending().await,
        },
    }
}
