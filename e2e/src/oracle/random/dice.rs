//! Chance that is the same every time (SplitMix64).

/// A source of numbers.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Of question `number` under `seed`.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let mut dice = Self(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, 0 for 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }

    /// True this often of a hundred times.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of some; they must not be none.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64);
        &from[usize::try_from(at).unwrap_or(0)]
    }

    /// One to `most` different ones, in any order; none of none.
    pub(super) fn some<T: Clone>(&mut self, from: &[T], most: u64) -> Vec<T> {
        let mut left = from.to_vec();
        let mut picked = Vec::new();
        for _ in 0..=self.below(most) {
            if left.is_empty() {
                break;
            }
            let at = usize::try_from(self.below(left.len() as u64)).unwrap_or(0);
            picked.push(left.swap_remove(at));
        }
        picked
    }
}
