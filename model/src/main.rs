//! The flights, the very file of the product, under many schedules (R217-R219).
//!
//! `src/flight.rs` names `std::sync`, `tokio::sync` and `tokio::spawn`. Here these names lead to
//! the stand-ins of shuttle, which hand control to another task wherever threads could interleave,
//! and tell of a hang as a deadlock. A model that fails prints the schedule; `shuttle::replay` repeats
//! it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "models are tests")]

mod models;

extern crate self as std;
extern crate self as tokio;
extern crate std as real;

use futures_util::FutureExt;

// What the modelled file imports.
pub use real::{collections, future};

/// `std::sync` and `tokio::sync`.
pub mod sync {
    pub use real::sync::{Arc, Weak};
    pub use shuttle::sync::{Mutex, MutexGuard, PoisonError};
    pub use shuttle_tokio::sync::watch;
}

/// `tokio::task`.
pub mod task {
    pub use shuttle_tokio::task::JoinHandle;
}

/// `tokio::spawn`: a panic ends the task alone, where shuttle's own would end the model.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> task::JoinHandle<()> {
    let work = real::panic::AssertUnwindSafe(work).catch_unwind();
    shuttle_tokio::spawn(async { drop(work.await) })
}

#[path = "../../src/flight.rs"]
mod flight;

/// Schedules that are tried of each model by each scheduler.
const SCHEDULES: usize = 10_000;

fn main() {
    let only = real::env::args().nth(1).unwrap_or_default();
    for &(name, model) in models::ALL {
        if name.contains(&only) {
            let began = real::time::Instant::now();
            shuttle::check_random(model, SCHEDULES);
            // Few preemptions, placed at random: what needs one unlucky moment.
            shuttle::check_pct(model, SCHEDULES, 3);
            println!(
                "{name}: {} schedules in {:.1?}",
                2 * SCHEDULES,
                began.elapsed()
            );
        }
    }
}
