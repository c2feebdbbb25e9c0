//! What a token takes from those before it: softmax attention over the keys and values of one layer, in f32.
//!
//! A few tokens walk over the cache row by row, which reads it once and copies nothing; long passes are matrix products.
//! Query heads in groups share a head of keys and values.

use omni_flow_kernels::Tier;

use super::{
    matmul::{View, matmul},
    weights::Shape,
};

/// Up to this many tokens walk; a matrix product packs the whole cache before it multiplies, which pays for more.
const FEW: usize = 4;

/// `mixed[m, heads * head]`: for each of the tokens `q[m, heads * head]` at the positions from `start` on, the values it
/// attends to. Keys and values are `[start + m, kv_heads * head]`; with a `window` a token sees so many, itself included.
/// `scores` holds `start + m` numbers per token and per head of a group, whichever are more.
pub(super) fn mix(
    s: &Shape,
    q: &[f32],
    cache: (&[f32], &[f32]),
    window: Option<usize>,
    start: usize,
    scores: &mut [f32],
    mixed: &mut [f32],
) {
    let m = q.len() / (s.heads * s.head);
    if m <= FEW {
        walk(s, q, cache, window, start, scores, mixed)
    } else {
        multiply(s, q, cache, window, start, scores, mixed)
    }
}

/// The first position that the token at `position` sees.
fn first_seen(window: Option<usize>, position: usize) -> usize {
    window.map_or(0, |w| (position + 1).saturating_sub(w))
}

fn walk(
    s: &Shape,
    q: &[f32],
    (keys, values): (&[f32], &[f32]),
    window: Option<usize>,
    start: usize,
    scores: &mut [f32],
    mixed: &mut [f32],
) {
    let (kv_width, group) = (s.kv_heads * s.head, s.heads / s.kv_heads);
    let scale = 1.0 / (s.head as f32).sqrt();
    let tier = Tier::current();
    let groups = q.chunks_exact(group * s.head).zip(mixed.chunks_exact_mut(group * s.head));
    for (i, (queries, out)) in groups.enumerate() {
        let position = start + i / s.kv_heads;
        let first = first_seen(window, position);
        let seen = position + 1 - first;
        let shared = i % s.kv_heads * s.head;
        let row = |t: usize| (first + t) * kv_width + shared..(first + t) * kv_width + shared + s.head;
        let scores = &mut scores[..group * seen];
        for t in 0..seen {
            let key = &keys[row(t)];
            for (h, query) in queries.chunks_exact(s.head).enumerate() {
                scores[h * seen + t] = scale * tier.dot(query, key);
            }
        }
        scores.chunks_exact_mut(seen).for_each(softmax);
        out.fill(0.0);
        for t in 0..seen {
            let value = &values[row(t)];
            for (h, out) in out.chunks_exact_mut(s.head).enumerate() {
                let weight = scores[h * seen + t];
                out.iter_mut().zip(value).for_each(|(o, v)| *o += weight * v);
            }
        }
    }
}

fn multiply(
    s: &Shape,
    q: &[f32],
    (keys, values): (&[f32], &[f32]),
    window: Option<usize>,
    start: usize,
    scores: &mut [f32],
    mixed: &mut [f32],
) {
    let (kv_width, q_width, group) = (s.kv_heads * s.head, s.heads * s.head, s.heads / s.kv_heads);
    let m = q.len() / q_width;
    let total = start + m;
    let scores = &mut scores[..m * total];
    let scale = 1.0 / (s.head as f32).sqrt();
    for h in 0..s.heads {
        let shared = h / group * s.head;
        let query = View::rows(&q[h * s.head..], m, s.head, q_width);
        matmul(query, View::rows(&keys[shared..], total, s.head, kv_width).t(), scale, scores, total);
        for (t, row) in scores.chunks_exact_mut(total).enumerate() {
            let position = start + t;
            let first = first_seen(window, position);
            row[..first].fill(0.0);
            row[position + 1..].fill(0.0);
            softmax(&mut row[first..=position]);
        }
        let weights = View::rows(scores, m, total, total);
        let seen = View::rows(&values[shared..], total, s.head, kv_width);
        matmul(weights, seen, 1.0, &mut mixed[h * s.head..], q_width);
    }
}

fn softmax(seen: &mut [f32]) {
    let max = seen.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for v in seen.iter_mut() {
        *v = (*v - max).exp();
        sum += *v;
    }
    seen.iter_mut().for_each(|v| *v /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(heads: usize, kv_heads: usize, head: usize) -> Shape {
        Shape {
            layers: 1,
            width: heads * head,
            hidden: 1,
            heads,
            kv_heads,
            head,
            rotated: head,
            vocab: 1,
            context: 64,
            epsilon: 1e-5,
            rope_base: (1e4, 1e4),
            rope_divisor: 1.0,
            neox: false,
            gemma: false,
            window: None,
        }
    }

    #[test]
    fn walking_and_multiplying_agree() {
        for (heads, kv, head) in [(1, 1, 2), (4, 2, 16), (9, 3, 64), (6, 1, 20)] {
            for (start, m) in [(0, 1), (0, 3), (7, 1), (7, 2), (30, 4)] {
                for window in [None, Some(1), Some(5)] {
                    let s = shape(heads, kv, head);
                    let noise =
                        |n: usize, k: usize| (0..n).map(|i| ((i * k % 29) as f32 - 14.0) / 9.0).collect::<Vec<_>>();
                    let (q, total) = (noise(m * heads * head, 7), start + m);
                    let (keys, values) = (noise(total * kv * head, 11), noise(total * kv * head, 13));
                    let (mut a, mut b) = (vec![9.0; q.len()], vec![9.0; q.len()]);
                    let mut scores = vec![9.0; m.max(heads / kv) * total];
                    walk(&s, &q, (&keys, &values), window, start, &mut scores, &mut a);
                    multiply(&s, &q, (&keys, &values), window, start, &mut scores, &mut b);
                    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                        assert!((a - b).abs() < 1e-4, "{heads}/{kv}x{head}, {start}+{m}, {window:?} at {i}: {a} {b}");
                    }
                }
            }
        }
    }
}
