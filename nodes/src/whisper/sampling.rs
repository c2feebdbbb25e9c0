//! Greedy choice over logits.

/// The most probable id outside the `forbidden` lists and its log-probability among all ids; `None` if no number is
/// left (an empty row, or nothing but NaN).
pub(crate) fn choose(logits: &[f32], forbidden: &[&[u32]]) -> Option<(u32, f32)> {
    let mut allowed = logits.to_vec();
    for &id in forbidden.iter().copied().flatten() {
        if let Some(v) = allowed.get_mut(id as usize) {
            *v = f32::NEG_INFINITY;
        }
    }
    let (mut best, mut value) = (None, f32::NEG_INFINITY);
    for (id, &v) in allowed.iter().enumerate() {
        if v > value {
            (best, value) = (Some(id as u32), v);
        }
    }
    best.map(|id| (id, log_probability(logits, id)))
}

/// Log-softmax at `id`; minus infinity for an id outside the row.
pub(crate) fn log_probability(logits: &[f32], id: u32) -> f32 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits.iter().map(|v| (v - max).exp()).sum();
    logits.get(id as usize).map_or(f32::NEG_INFINITY, |v| v - max - sum.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chooses_what_is_allowed() {
        let logits = [0.5, 3.0, 2.0, f32::NAN];
        assert_eq!(choose(&logits, &[]).map(|c| c.0), Some(1));
        assert_eq!(choose(&logits, &[&[1, 99], &[]]).map(|c| c.0), Some(2));
        assert_eq!(choose(&[f32::NAN; 4], &[]), None);
        assert_eq!(choose(&[], &[]), None);
        assert!((log_probability(&[1., 1.], 0) - 0.5f32.ln()).abs() < 1e-6);
    }
}
