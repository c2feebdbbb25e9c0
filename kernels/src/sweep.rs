//! Inputs that every kernel is tested on: all small sizes, a long odd one, and values that break naive code.

/// Sizes around every block width, and one that is long and odd.
pub(crate) fn sizes() -> impl Iterator<Item = usize> {
    (0..=67).chain([127, 128, 129, 1021])
}

/// A repeatable stream of random bits (xorshift64*).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    /// Uniform in [-1.25, 1.25): some of it beyond full scale.
    pub(crate) fn sample(&mut self) -> f32 {
        ((self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * 1.25
    }
}

pub(crate) const SPECIAL: [f32; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.999_999_94,
    -1.000_000_1,
    0.5 / 32768.0,
    1.5 / 32768.0,
    2.5 / 32768.0,
    -0.5 / 32768.0,
    32767.0 / 32768.0,
    32767.5 / 32768.0,
    -32768.5 / 32768.0,
    1e30,
    -1e30,
    f32::MIN_POSITIVE,
    1e-45,
    f32::MAX,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    -f32::NAN,
];

/// Noise with a special value in about one place of three.
pub(crate) fn wild(n: usize, seed: u64) -> Vec<f32> {
    let mut noise = Noise::new(seed);
    (0..n)
        .map(|_| {
            let r = noise.bits() >> 33;
            if r.is_multiple_of(3) { SPECIAL[(r / 3) as usize % SPECIAL.len()] } else { noise.sample() }
        })
        .collect()
}

/// Finite noise.
pub(crate) fn tame(n: usize, seed: u64) -> Vec<f32> {
    let mut noise = Noise::new(seed);
    (0..n).map(|_| noise.sample()).collect()
}

/// Equal bit for bit (so that -0.0 differs from 0.0).
#[track_caller]
pub(crate) fn assert_bits(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert_eq!(x.to_bits(), y.to_bits(), "{what}: sample {i}: {x} and {y}");
    }
}
