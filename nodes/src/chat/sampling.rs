//! How the next token is chosen.
//!
//! The same logits, options and seed give the same token on every machine with the same float rounding. Order: penalty
//! for repetition, temperature 0 takes the best; else the best `top_k`, temperature, `top_p`, `min_p`, a draw.

/// Options of one answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Above 1: flatter, below: sharper, 0: always the best token. Negative or not finite counts as 0.
    pub temperature: f32,
    /// Only the `top_k` best tokens; 0: all.
    pub top_k: usize,
    /// Only the best tokens that together have this probability; 1: all.
    pub top_p: f32,
    /// Only tokens of at least this share of the best one's probability; 0: all.
    pub min_p: f32,
    /// Divides positive (multiplies negative) logits of the answer's last 64 tokens (Keskar et al. 2019); 1: none.
    pub repetition_penalty: f32,
    /// Seed of the draw.
    pub seed: u64,
    /// Longest answer in tokens.
    pub max_tokens: usize,
    /// The answer ends before any of these.
    pub stop: Vec<String>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            seed: 0,
            max_tokens: 256,
            stop: Vec::new(),
        }
    }
}

/// How many of the answer's last tokens are penalised.
const PENALISED: usize = 64;

/// The state of the draw over one answer.
#[derive(Debug, Clone)]
pub struct Sampler {
    options: Sampling,
    random: u64,
    recent: Vec<u32>,
}

impl Sampler {
    /// Begins an answer.
    pub fn new(options: &Sampling) -> Self {
        Self { options: options.clone(), random: options.seed, recent: Vec::new() }
    }

    /// Picks the next token. `None` if no logit is a number. Changes `logits`.
    pub fn pick(&mut self, logits: &mut [f32]) -> Option<u32> {
        let o = &self.options;
        logits.iter_mut().filter(|l| l.is_nan()).for_each(|l| *l = f32::NEG_INFINITY);
        if o.repetition_penalty > 0.0 && o.repetition_penalty != 1.0 {
            let mut last: Vec<u32> = self.recent.iter().rev().take(PENALISED).copied().collect();
            last.sort_unstable();
            last.dedup();
            for t in last {
                if let Some(l) = logits.get_mut(t as usize) {
                    *l = if *l > 0.0 { *l / o.repetition_penalty } else { *l * o.repetition_penalty };
                }
            }
        }
        let token = match o.temperature.is_finite() && o.temperature > 0.0 {
            true => self.draw(logits)?,
            false => best(logits)?,
        };
        self.recent.push(token);
        Some(token)
    }

    fn draw(&mut self, logits: &[f32]) -> Option<u32> {
        let o = &self.options;
        let mut all: Vec<(u32, f32)> =
            logits.iter().enumerate().filter(|(_, l)| l.is_finite()).map(|(i, l)| (i as u32, *l)).collect();
        let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if o.top_k > 0 && o.top_k < all.len() {
            all.select_nth_unstable_by(o.top_k - 1, order);
            all.truncate(o.top_k);
        }
        all.sort_unstable_by(order);
        let top = all.first()?.1;
        let mut weights: Vec<f64> = all.iter().map(|(_, l)| f64::from((l - top) / o.temperature).exp()).collect();
        let total: f64 = weights.iter().sum();
        if o.top_p < 1.0 {
            let mut sum = 0.0;
            let enough = weights.iter().position(|w| {
                sum += w / total;
                sum >= f64::from(o.top_p)
            });
            weights.truncate(enough.map_or(weights.len(), |i| i + 1));
        }
        weights.retain(|w| *w >= f64::from(o.min_p.clamp(0.0, 1.0)));
        let mut left = self.uniform() * weights.iter().sum::<f64>();
        for ((token, _), w) in all.iter().zip(&weights) {
            left -= w;
            if left < 0.0 {
                return Some(*token);
            }
        }
        weights.len().checked_sub(1).map(|i| all[i].0)
    }

    /// SplitMix64 (Steele et al. 2014), as a number in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn best(logits: &[f32]) -> Option<u32> {
    let mut best = None;
    for (i, &l) in logits.iter().enumerate() {
        if l > best.map_or(f32::NEG_INFINITY, |(_, b)| b) {
            best = Some((i as u32, l));
        }
    }
    best.map(|(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(options: &Sampling, logits: &[f32], n: u64) -> Vec<usize> {
        let mut counts = vec![0; logits.len()];
        for seed in 0..n {
            let mut s = Sampler::new(&Sampling { seed, ..options.clone() });
            counts[s.pick(&mut logits.to_vec()).unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn greedy_takes_the_first_best_and_skips_what_is_no_number() {
        let mut s = Sampler::new(&Sampling::default());
        assert_eq!(s.pick(&mut [0.0, f32::NAN, 3.0, 3.0]), Some(2));
        assert_eq!(s.pick(&mut [f32::NAN, f32::NAN]), None);
        assert_eq!(s.pick(&mut []), None);
    }

    #[test]
    fn the_draw_follows_the_probabilities() {
        let logits = [0.0f32, 1.0, 2.0];
        let c = counts(&Sampling { temperature: 1.0, ..Default::default() }, &logits, 20_000);
        let total: f64 = logits.iter().map(|l| f64::from(*l).exp()).sum();
        for (n, l) in c.iter().zip(logits) {
            assert!((*n as f64 / 20_000.0 - f64::from(l).exp() / total).abs() < 0.015, "{c:?}");
        }
    }

    #[test]
    fn filters_leave_what_they_should() {
        let logits = [0.0f32, 1.0, 2.0, -1.0];
        let hot = Sampling { temperature: 1.0, ..Default::default() };
        let used = |o: &Sampling| counts(o, &logits, 2_000).iter().map(|c| *c > 0).collect::<Vec<_>>();
        assert_eq!(used(&Sampling { top_k: 2, ..hot.clone() }), [false, true, true, false]);
        assert_eq!(used(&Sampling { top_p: 0.6, ..hot.clone() }), [false, false, true, false]);
        assert_eq!(used(&Sampling { top_p: 0.7, ..hot.clone() }), [false, true, true, false]);
        assert_eq!(used(&Sampling { min_p: 0.2, ..hot.clone() }), [false, true, true, false]);
        assert_eq!(used(&hot), [true; 4]);
    }

    #[test]
    fn repetition_costs_and_the_seed_decides() {
        let mut s = Sampler::new(&Sampling { repetition_penalty: 2.0, ..Default::default() });
        assert_eq!(s.pick(&mut [3.0, 2.0]), Some(0));
        assert_eq!(s.pick(&mut [3.0, 2.0]), Some(1));
        let run = |seed| {
            let mut s = Sampler::new(&Sampling { temperature: 1.5, seed, ..Default::default() });
            (0..40).map(|_| s.pick(&mut [0.1, 0.2, 0.3, 0.4]).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }
}
