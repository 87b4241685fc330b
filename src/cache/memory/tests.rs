use bytes::Bytes;
use futures_util::FutureExt;
use proptest::prelude::*;
use tokio::time::Instant;

use super::*;

const TTL: Duration = Duration::from_secs(30);

fn entry(length: usize, mark: usize) -> Entry {
    Entry {
        body: Bytes::from(vec![b'x'; length]),
        total: Some(mark as u64),
        contributed: 1,
        configured: 1,
        missing: Vec::new(),
        doubts: Vec::new(),
        stored: Instant::now(),
        gzip: None,
    }
}

/// What a store in memory does at once.
fn now<T>(done: impl Future<Output = T>) -> T {
    done.now_or_never().unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Get(usize),
    Put(usize, usize),
    /// A compressed body of this length for the entry, or for the one that was there before.
    Gzip(usize, usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..6usize;
    prop_oneof![
        key.clone().prop_map(Step::Get),
        (key.clone(), 0..12usize).prop_map(|(key, length)| Step::Put(key, length)),
        (key, 0..6usize, any::<bool>())
            .prop_map(|(key, length, is_late)| Step::Gzip(key, length, is_late)),
    ]
}

/// The same store as a list, the last used in front.
#[derive(Default)]
struct Naive(Vec<(usize, Entry)>);

impl Naive {
    fn get(&mut self, key: usize) -> Option<Entry> {
        let at = self.0.iter().position(|(known, _)| *known == key)?;
        let used = self.0.remove(at);
        self.0.insert(0, used);
        Some(self.0[0].1.clone())
    }

    fn put(&mut self, key: usize, entry: Entry, budget: usize) {
        if entry.body.len() > budget {
            return;
        }
        self.0.retain(|(known, _)| *known != key);
        self.0.insert(0, (key, entry));
        self.shrink(budget);
    }

    fn add_gzip(&mut self, key: usize, gzip: Bytes, budget: usize) {
        if self.get(key).is_none() {
            return;
        }
        let entry = &mut self.0[0].1;
        if entry.gzip.is_none() && entry.body.len() + gzip.len() <= budget {
            entry.gzip = Some(gzip);
            self.shrink(budget);
        }
    }

    fn shrink(&mut self, budget: usize) {
        while self.bytes() > budget {
            self.0.pop();
        }
    }

    fn bytes(&self) -> usize {
        let size = |entry: &Entry| entry.body.len() + entry.gzip.as_ref().map_or(0, Bytes::len);
        self.0.iter().map(|(_, entry)| size(entry)).sum()
    }
}

proptest! {
    #[test]
    fn r214_r215_r216_it_holds_what_a_plain_list_would_hold(
        budget in 0..30usize,
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let memory = Memory::new(budget);
        let mut naive = Naive::default();
        for (mark, step) in steps.into_iter().enumerate() {
            match step {
                Step::Get(key) => {
                    prop_assert_eq!(now(memory.get(&key.to_string())), naive.get(key));
                }
                Step::Put(key, length) => {
                    let entry = entry(length, mark);
                    now(memory.put(&key.to_string(), entry.clone()));
                    naive.put(key, entry, budget);
                }
                Step::Gzip(key, length, is_late) => {
                    let gzip = Bytes::from(vec![b'z'; length]);
                    let known = naive.get(key).map(|entry| entry.stored);
                    // `get` is what makes it the last used one, here and there.
                    now(memory.get(&key.to_string()));
                    let Some(stored) = known else { continue };
                    let before = stored - TTL;
                    let stored = if is_late { before } else { stored };
                    now(memory.add_gzip(&key.to_string(), stored, gzip.clone()));
                    if !is_late {
                        naive.add_gzip(key, gzip, budget);
                    }
                }
            }
            let stats = now(memory.stats(TTL));
            prop_assert_eq!((stats.entries, stats.bytes), (naive.0.len(), naive.bytes()));
            prop_assert!(stats.bytes <= budget);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r215_a_stale_entry_that_is_read_outlives_a_fresh_one_that_is_not() {
    let memory = Memory::new(20);
    memory.put("stale", entry(10, 0)).await;
    tokio::time::advance(TTL).await;
    memory.put("fresh", entry(10, 1)).await;
    assert!(memory.get("stale").await.is_some());
    memory.put("new", entry(10, 2)).await;
    assert!(memory.get("stale").await.is_some());
    assert_eq!(memory.get("fresh").await, None);
}

#[tokio::test(start_paused = true)]
async fn r199_entries_are_stale_from_the_end_of_their_time_on() {
    let memory = Memory::new(100);
    memory.put("a", entry(10, 0)).await;
    tokio::time::advance(TTL / 2).await;
    memory.put("b", entry(5, 0)).await;
    let stale = async || memory.stats(TTL).await.stale_entries;
    assert_eq!(stale().await, 0);
    tokio::time::advance(TTL / 2).await;
    assert_eq!(stale().await, 1);
    tokio::time::advance(TTL / 2).await;
    let expected = Stats {
        entries: 2,
        stale_entries: 2,
        bytes: 15,
    };
    assert_eq!(memory.stats(TTL).await, expected);
}

#[tokio::test]
async fn r216_a_body_over_the_budget_leaves_what_is_there() {
    let memory = Memory::new(10);
    memory.put("a", entry(10, 0)).await;
    memory.put("a", entry(11, 1)).await;
    memory.put("b", entry(11, 2)).await;
    assert_eq!(memory.get("a").await.and_then(|entry| entry.total), Some(0));
    assert_eq!(memory.stats(TTL).await.entries, 1);
}
