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
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..6usize;
    prop_oneof![
        key.clone().prop_map(Step::Get),
        (key, 0..12usize).prop_map(|(key, length)| Step::Put(key, length)),
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
        while self.bytes() > budget {
            self.0.pop();
        }
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, entry)| entry.body.len()).sum()
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
