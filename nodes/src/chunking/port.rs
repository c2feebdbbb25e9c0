//! The `chunk` key of a node, and a chunk policy in the words of `omni-flow check`.

use omni_flow::OptionError;
use omni_flow::units::Dur;
use serde_json::{Map, Value};

use super::{ChunkConfig, ChunkConfigError, Initial, Load, Policy, check_ramp, dynamic_initial, largest_step};

/// What the `chunk` key of a node says for its output `port`: what stands under the port's name, or for all. Keys are
/// read with `-` or `_`, `margin` as a duration or `margin_ms` as a number.
///
/// # Errors
/// [`OptionError`] of the option `chunk`, or of the key below it that cannot be meant.
pub fn of_port(chunk: &Value, port: &str) -> Result<ChunkConfig, OptionError> {
    let bad = |what: String| OptionError::new("chunk.", what, "the keys are those of `omni-flow nodes util.chunk`");
    let Value::Object(given) = chunk.get(port).unwrap_or(chunk) else {
        return Err(bad("`chunk` takes a map".to_owned()));
    };
    let mut all = Map::new();
    for (key, value) in given {
        match (key.replace('-', "_"), value.as_str()) {
            (key, Some(text)) if key == "margin" => {
                let time: Dur = text.parse().map_err(|e: omni_flow::units::UnitError| {
                    OptionError::new("chunk.margin", e.to_string(), "write for instance `50ms`")
                })?;
                all.insert("margin_ms".to_owned(), (time.0.as_secs_f64() * 1e3).into());
            }
            (key, _) => drop(all.insert(key, value.clone())),
        }
    }
    serde_json::from_value(Value::Object(all)).map_err(|e| bad(e.to_string()))
}

/// A refused block as an error of the option that it names; `under` is what its keys stand below (`chunk.` or nothing).
pub fn option_error(e: &ChunkConfigError, under: &str) -> OptionError {
    let text = e.to_string();
    // The key that is at fault is named first.
    let place = |key: &&str| text.find(&format!("`chunk.{}", key.replace('-', "_")));
    let keys = ["initial", "ramp", "margin", "min", "divisor", "delta-min", "factor", "max", "rtf", "size"];
    let key = keys.into_iter().filter(|k| place(k).is_some()).min_by_key(place).unwrap_or("size");
    OptionError::new(&format!("{under}{key}"), text.replace("chunk.", under), "see `omni-flow nodes util.chunk`")
}

/// What a policy means for a listener, in one line; with the speed at which frames are made (`rtf`), whether that is
/// fast enough.
pub fn in_words(policy: &Policy, rtf: Option<f64>) -> String {
    let first = |initial: &Initial, size: u32| match initial {
        Initial::Frames(0) => size,
        Initial::Frames(n) => *n,
        Initial::Dynamic => dynamic_initial(Load { active: 0, slots: 1 }, largest_step(size)),
    };
    let (sizes, size) = match policy {
        Policy::Adaptive { rule, .. } => {
            let (min, size) = (rule.min, rule.size);
            return format!("{min} to {size} frames, as the listener's headroom allows");
        }
        Policy::TwoPhase { initial, size } => (vec![first(initial, *size)], *size),
        Policy::Ramp { sizes, size } => (sizes.clone(), *size),
        Policy::Double { base, factor, max } => {
            let grown = (0..64).map(|i| (f64::from(*base) * factor.powi(i)).min(f64::from(*max)) as u32);
            (grown.take_while(|n| n < max).collect(), *max)
        }
    };
    let shown: Vec<String> = sizes.iter().chain([&size]).take(8).map(u32::to_string).collect();
    let more = if sizes.len() > 7 { ", ..." } else { "" };
    let chunks = format!("frames {}{more}", shown.join(", "));
    match rtf {
        None => {
            format!("{chunks}; no gap while a frame is made within {:.2} of its playing time", slowest(&sizes, size))
        }
        Some(g) => match check_ramp(&sizes, size, 1.0, g).first_gap() {
            None => format!("{chunks}; no gap at rtf {g}"),
            Some(gap) => format!(
                "{chunks}; at rtf {g} chunk {} comes late: it has {} frames, at most {} would be in time",
                gap.chunk, gap.size, gap.limit
            ),
        },
    }
}

/// The largest time per frame, in playing times, that leaves no gap: it lies between 0 and 1, and less is never worse.
fn slowest(sizes: &[u32], size: u32) -> f64 {
    let fits = |g: f64| check_ramp(sizes, size, 1.0, g).first_gap().is_none();
    let (mut low, mut high) = (0.0, 1.0);
    if fits(high) {
        return high;
    }
    for _ in 0..20 {
        let mid = (low + high) / 2.0;
        if fits(mid) { low = mid } else { high = mid }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(json: &str) -> String {
        let config = of_port(&serde_json::from_str(json).unwrap(), "latents").unwrap();
        in_words(&config.policy().unwrap().0, config.rtf)
    }

    #[test]
    fn a_policy_says_what_it_needs_and_what_a_speed_means() {
        // From C = 4 frames out, the next 4 need 4 >= 4 * g / (1 - g + g): the worst is the step from 16 to 16 frames.
        assert_eq!(
            words("{\"ramp\": [4, 4, 8, 16, 25], \"size\": 25}"),
            "frames 4, 4, 8, 16, 25, 25; no gap while a frame is made within 0.57 of its playing time"
        );
        assert_eq!(
            words("{\"latents\": {\"ramp\": [4, 4, 8, 16, 25], \"size\": 25, \"rtf\": 0.625}}"),
            "frames 4, 4, 8, 16, 25, 25; at rtf 0.625 chunk 3 comes late: it has 16 frames, at most 13 would be in time"
        );
        assert_eq!(
            words("{\"ramp\": [4, 4, 8, 13, 21, 25], \"rtf\": 0.625}"),
            "frames 4, 4, 8, 13, 21, 25, 25; no gap at rtf 0.625"
        );
        assert_eq!(
            words("{\"initial\": 0}"),
            "frames 25, 25; no gap while a frame is made within 1.00 of its playing time"
        );
        assert_eq!(words("{\"adaptive\": true}"), "2 to 25 frames, as the listener's headroom allows");
    }
    #[test]
    fn keys_are_read_in_both_spellings_and_wrong_ones_are_named() {
        let json = |s: &str| serde_json::from_str::<Value>(s).unwrap();
        let a = of_port(&json("{\"adaptive\": true, \"delta-min\": 3, \"margin\": \"20ms\"}"), "x").unwrap();
        let b = of_port(&json("{\"adaptive\": true, \"delta_min\": 3, \"margin_ms\": 20}"), "x").unwrap();
        assert_eq!(a, b);
        assert_eq!(of_port(&json("{\"margin\": \"soon\"}"), "x").unwrap_err().option, "chunk.margin");
        assert!(of_port(&json("{\"sice\": 3}"), "x").unwrap_err().message.contains("sice"));
        assert!(of_port(&json("3"), "x").is_err());
        let short = of_port(&json("{\"ramp\": [3]}"), "x").unwrap().policy().unwrap_err();
        assert_eq!(option_error(&short, "chunk.").option, "chunk.ramp");
        let both = of_port(&json("{\"factor\": 2.0, \"initial\": 3}"), "x").unwrap().policy().unwrap_err();
        assert_eq!(option_error(&both, "").option, "factor");
    }
}
