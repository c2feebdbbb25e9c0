//! Names of items and responses.

/// Makes names that are never used twice. The same seed gives the same names, for tests; a server seeds it at random.
#[derive(Clone, Debug)]
pub struct Ids {
    seed: u64,
    next: u64,
}

impl Ids {
    /// Names that follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, next: 0 }
    }
    /// 32 hexadecimal digits: a counter under a mixed seed, so that one session never repeats itself.
    fn hex(&mut self) -> String {
        self.next += 1;
        let mut z = self.seed ^ self.next.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        format!("{:016x}{:016x}", z ^ (z >> 31), self.seed.rotate_left(17).wrapping_add(self.next))
    }
    /// A name for an item of the user.
    pub fn item(&mut self) -> String {
        format!("item_{}", self.hex())
    }
    /// A name for a response. Its item is `item_` and that name.
    pub fn response(&mut self) -> String {
        format!("resp_{}", self.hex())
    }
    /// A name for a call that the model has not named.
    pub fn call(&mut self) -> String {
        format!("call_{}", self.hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_name_comes_twice() {
        let mut ids = Ids::new(7);
        let all: HashSet<String> = (0..10_000).map(|_| ids.item()).collect();
        assert_eq!(all.len(), 10_000);
        assert!(all.iter().all(|id| id.len() == 5 + 32));
        assert_eq!(Ids::new(7).item(), Ids::new(7).item());
        assert_ne!(Ids::new(7).item(), Ids::new(8).item());
    }
}
