//! Seeded Gaussian noise for the voice's two random tensors.
//!
//! Promises the same numbers for the same seed on every machine with the same libm. Not for cryptography.
//! SplitMix64 (Steele, Lea, Flood 2014) gives the uniform numbers, the Box-Muller transform the normal ones.

/// A stream of standard normal numbers.
pub(super) struct Noise {
    state: u64,
    spare: Option<f32>,
}

impl Noise {
    /// Starts the stream of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed, spare: None }
    }

    /// `len` numbers of mean 0 and variance 1.
    pub(super) fn take(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.normal()).collect()
    }

    fn normal(&mut self) -> f32 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        // (0, 1]: the logarithm stays finite.
        let u = 1.0 - self.uniform();
        let radius = (-2.0 * u.ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some((radius * sin) as f32);
        (radius * cos) as f32
    }

    /// Uniform in [0, 1) with 53 bits.
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_numbers_and_the_moments_of_a_normal() {
        let a = Noise::new(7).take(100_001);
        assert_eq!(a, Noise::new(7).take(100_001));
        assert_ne!(a[..8], Noise::new(8).take(8)[..]);
        let mean = a.iter().map(|&x| f64::from(x)).sum::<f64>() / a.len() as f64;
        let var = a.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / a.len() as f64;
        let tail = a.iter().filter(|x| x.abs() > 1.96).count() as f64 / a.len() as f64;
        assert!(mean.abs() < 0.02 && (var - 1.0).abs() < 0.03 && (tail - 0.05).abs() < 0.005, "{mean} {var} {tail}");
        assert!(a.iter().all(|x| x.is_finite()));
    }
}
