//! Random numbers from a seed: the same on every machine.

/// A generator of random numbers (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// A generator that starts at `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// Any number.
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of `bits` bits, 128 at most.
    pub(super) fn bits(&mut self, bits: u32) -> u128 {
        let both = u128::from(self.number()) << 64 | u128::from(self.number());
        both & ones(bits)
    }

    /// A number from 0 to `end` - 1; 0 where `end` is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.number() % end as u64) as usize }
    }

    /// A number from `first` to `last`.
    pub(super) fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// True in `percent` of 100 cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of them; none if there are none.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    /// One of them, each as often as its weight says.
    ///
    /// # Panics
    /// If no weight is above 0.
    pub(super) fn weighted<T: Copy>(&mut self, from: &[(usize, T)]) -> T {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for &(weight, value) in from {
            if left < weight {
                return value;
            }
            left -= weight;
        }
        panic!("a choice among nothing")
    }
}

/// As many ones as the low bits.
pub(super) fn ones(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}
