//! Which version of the kernels runs: the plain loops, or a SIMD set that this processor has.
//!
//! A [`Tier`] can only be obtained from this module, and only for a set that the processor reported; so a value of it is
//! the proof that the dispatch below needs. A new set is one more [`Kind`], one line in `detect` and one arm in
//! `dispatch!`; kernels without a version of their own may map it to a lower one there.

use std::fmt;
use std::sync::OnceLock;

/// A set of kernels that this processor can run.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tier(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Tier {
    /// The scalar reference; runs everywhere.
    pub const PLAIN: Tier = Tier(Kind::Plain);

    /// The tier in use: the best of this processor, or the one that `OMNI_FLOW_KERNELS` names, if the processor has it.
    /// Decided at the first call and then fixed for the life of the process.
    pub fn current() -> Tier {
        static CURRENT: OnceLock<Tier> = OnceLock::new();
        *CURRENT.get_or_init(|| Tier::choose(std::env::var("OMNI_FLOW_KERNELS").ok().as_deref()))
    }

    /// All tiers of this processor, the plainest first.
    pub fn available() -> &'static [Tier] {
        static AVAILABLE: OnceLock<Vec<Tier>> = OnceLock::new();
        AVAILABLE.get_or_init(detect)
    }

    /// The tier of this name (`plain`, `avx2`), if this processor has it.
    pub fn by_name(name: &str) -> Option<Tier> {
        Tier::available().iter().copied().find(|t| t.name().eq_ignore_ascii_case(name.trim()))
    }

    /// The name, as `OMNI_FLOW_KERNELS` takes it.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
        }
    }

    pub(crate) fn kind(self) -> Kind {
        self.0
    }

    /// An unknown or unavailable wish falls back to the best there is.
    fn choose(wish: Option<&str>) -> Tier {
        let best = Tier::available().last().copied().unwrap_or(Tier::PLAIN);
        wish.and_then(Tier::by_name).unwrap_or(best)
    }
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn detect() -> Vec<Tier> {
    #[allow(unused_mut)]
    let mut tiers = vec![Tier::PLAIN];
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
        tiers.push(Tier(Kind::Avx2));
    }
    tiers
}

/// Runs the version of a kernel that belongs to a tier.
macro_rules! dispatch {
    ($tier:expr, plain: $plain:expr, avx2: $avx2:expr $(,)?) => {
        match $tier.kind() {
            $crate::tier::Kind::Plain => $plain,
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Tier` of this kind is made only after the processor reported AVX2, FMA and F16C (`detect`).
            $crate::tier::Kind::Avx2 => unsafe { $avx2 },
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_always_there_and_can_be_forced() {
        assert_eq!(Tier::available()[0], Tier::PLAIN);
        assert_eq!(Tier::choose(Some("plain")), Tier::PLAIN);
        assert_eq!(Tier::choose(Some(" PLAIN ")), Tier::PLAIN);
    }

    #[test]
    fn without_a_wish_or_with_an_impossible_one_the_best_is_used() {
        let best = *Tier::available().last().unwrap();
        assert_eq!(Tier::choose(None), best);
        assert_eq!(Tier::choose(Some("avx9000")), best);
        assert_eq!(Tier::choose(Some("")), best);
    }

    #[test]
    fn each_tier_is_found_by_its_name() {
        for &tier in Tier::available() {
            assert_eq!(Tier::by_name(tier.name()), Some(tier));
            assert_eq!(format!("{tier}"), tier.name());
        }
    }
}
