//! The `chunk:` block of a port, and the policy it stands for.
//!
//! [`ChunkConfig`] is what the graph file says, key by key; [`ChunkConfig::policy`] turns it into a [`Policy`] that can
//! no longer hold a mistake. A ramp that cannot work is refused: nothing is switched off silently.

use serde::Deserialize;
use thiserror::Error;

/// Frames of a chunk when the port says nothing.
const SIZE: u32 = 25;
/// Defaults of the adaptive policy: smallest chunk (frames), margin (ms), divisor, smallest growth (frames).
const MIN: u32 = 2;
const MARGIN_MS: f64 = 50.0;
const DIVISOR: u32 = 15;
const DELTA_MIN: u32 = 2;
/// Defaults of the doubling policy: growth per chunk, and largest chunk as a multiple of the size.
const FACTOR: f64 = 2.0;
const MAX_SIZES: u32 = 4;

/// The keys under `chunk:` of a port; unknown keys are refused. Counts are frames.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkConfig {
    /// Frames of a full chunk, default 25.
    pub size: Option<i64>,
    /// Frames of the first chunk; 0 = the same as `size`; default: by load, see [`super::dynamic_initial`].
    pub initial: Option<i64>,
    /// Frames of the first chunks one by one, at least two; then `size`. Replaces `initial`.
    pub ramp: Option<Vec<i64>>,
    /// Let chunks grow as fast as the listener's headroom allows; overrides `ramp`. Default false.
    pub adaptive: Option<bool>,
    /// Adaptive: the smallest chunk, default 2 (never above `size`).
    pub min: Option<i64>,
    /// Adaptive: playback time that must stay in hand, ms, default 50.
    pub margin_ms: Option<f64>,
    /// Adaptive: growth per chunk is `e / divisor` frames, `e` being the ms a frame takes to make; default 15.
    pub divisor: Option<i64>,
    /// Adaptive: the least growth per chunk, default 2.
    pub delta_min: Option<i64>,
    /// Doubling: chunk i has `size · factor^i` frames; giving `factor` or `max` chooses this policy. Default 2.
    pub factor: Option<f64>,
    /// Doubling: the largest chunk, default 4 × `size`.
    pub max: Option<i64>,
    /// Time to make a frame through its playing time, as measured: only for what `check` says of the policy.
    pub rtf: Option<f64>,
}

/// Why a `chunk:` block was refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ChunkConfigError {
    /// A count below what it may be.
    #[error("`chunk.{key}` is {value}: it must be at least {least}")]
    TooSmall {
        /// The key under `chunk`.
        key: &'static str,
        /// What was given.
        value: i64,
        /// The smallest value allowed.
        least: i64,
    },
    /// A count that does not fit 32 bits.
    #[error("`chunk.{key}` is {value}: it must be at most {most}")]
    TooLarge {
        /// The key under `chunk`.
        key: &'static str,
        /// What was given.
        value: i64,
        /// The largest value allowed.
        most: i64,
    },
    /// A number that is not finite or below what it may be.
    #[error("`chunk.{key}` is {value}: it must be a finite number of at least {least}")]
    BadNumber {
        /// The key under `chunk`.
        key: &'static str,
        /// What was given.
        value: f64,
        /// The smallest value allowed.
        least: f64,
    },
    /// A ramp with fewer than two entries.
    #[error("`chunk.ramp` has {len} entries: give at least two, or use `chunk.initial`")]
    ShortRamp {
        /// Its entries.
        len: usize,
    },
    /// An entry of the ramp that is not positive.
    #[error("`chunk.ramp[{index}]` is {value}: every entry must be from 1 to {most}", most = u32::MAX)]
    BadRampEntry {
        /// Its place, from 0.
        index: usize,
        /// What was given.
        value: i64,
    },
    /// Two keys that choose different policies.
    #[error("`chunk.{one}` and `chunk.{other}` exclude each other: remove one")]
    Conflict {
        /// The first key.
        one: &'static str,
        /// The second key.
        other: &'static str,
    },
    /// The smallest chunk is above the full one.
    #[error("`chunk.min` is {min}, above `chunk.size` {size}: lower it")]
    MinAboveSize {
        /// The smallest chunk.
        min: u32,
        /// The full chunk.
        size: u32,
    },
}

/// Something in a `chunk:` block that works but is probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkWarning {
    /// `initial` was above `size` and acts as `size`.
    InitialClamped {
        /// What was given.
        initial: u32,
        /// What acts.
        size: u32,
    },
    /// The ramp does not end at `size`: the chunk size steps at this index.
    RampStep {
        /// Index of the first chunk after the ramp.
        index: usize,
        /// The ramp's last entry.
        last: u32,
        /// The size that follows.
        size: u32,
    },
    /// A key that has no effect on the chosen policy.
    Unused {
        /// The key under `chunk`.
        key: &'static str,
        /// Why.
        because: &'static str,
    },
}

impl std::fmt::Display for ChunkWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InitialClamped { initial, size } => {
                write!(f, "`chunk.initial` {initial} is above `chunk.size`: {size} acts")
            }
            Self::RampStep { index, last, size } => {
                write!(f, "`chunk.ramp` ends at {last} and `chunk.size` is {size}: step at index {index}")
            }
            Self::Unused { key, because } => write!(f, "`chunk.{key}` has no effect: {because}"),
        }
    }
}

/// How the first chunk of a request gets its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// By the load at the time the request opens.
    Dynamic,
    /// This many frames; 0 = a full chunk.
    Frames(u32),
}

/// A chunk policy that holds. Counts are frames and above zero unless said otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// A first chunk of its own size, then full ones. `Initial::Frames(0)` is the policy `fixed`.
    TwoPhase {
        /// The first chunk.
        initial: Initial,
        /// The full chunk.
        size: u32,
    },
    /// The first chunks one by one, then full ones.
    Ramp {
        /// At least two entries.
        sizes: Vec<u32>,
        /// The full chunk.
        size: u32,
    },
    /// Chunk i has `min(max, floor(base · factor^i))` frames.
    Double {
        /// The first chunk.
        base: u32,
        /// Growth per chunk, at least 1.
        factor: f64,
        /// The largest chunk.
        max: u32,
    },
    /// Chunks grow with the listener's headroom.
    Adaptive {
        /// The first chunk.
        initial: Initial,
        /// The rule and its numbers.
        rule: super::Adaptive,
    },
}

impl ChunkConfig {
    /// The policy that this block stands for, and what should be said about it.
    ///
    /// # Errors
    /// [`ChunkConfigError`] for the first key that cannot be meant.
    pub fn policy(&self) -> Result<(Policy, Vec<ChunkWarning>), ChunkConfigError> {
        let mut warnings = Vec::new();
        let size = count("size", self.size, SIZE, 1)?;
        let given_initial = self.initial.map(|v| count("initial", Some(v), 0, 0)).transpose()?;
        let ramp = self.ramp.as_deref().map(ramp_sizes).transpose()?;
        let (min, divisor, delta_min) = (
            count("min", self.min, MIN.min(size), 1)?,
            count("divisor", self.divisor, DIVISOR, 1)?,
            count("delta_min", self.delta_min, DELTA_MIN, 1)?,
        );
        let margin_ms = number("margin_ms", self.margin_ms, MARGIN_MS, 0.0)?;
        let factor = number("factor", self.factor, FACTOR, 1.0)?;
        let max = count("max", self.max, size.saturating_mul(MAX_SIZES), 1)?;

        let adaptive = self.adaptive == Some(true);
        let doubling = [("factor", self.factor.is_some()), ("max", self.max.is_some())];
        if let Some((key, _)) = doubling.iter().find(|(_, given)| *given) {
            let others = [("adaptive", adaptive), ("ramp", ramp.is_some()), ("initial", given_initial.is_some())];
            if let Some((other, _)) = others.iter().find(|(_, given)| *given) {
                return Err(ChunkConfigError::Conflict { one: key, other });
            }
        }
        if !adaptive {
            let keys = [
                ("min", self.min.is_some()),
                ("margin_ms", self.margin_ms.is_some()),
                ("divisor", self.divisor.is_some()),
                ("delta_min", self.delta_min.is_some()),
            ];
            let because = "it needs `adaptive: true`";
            warnings.extend(keys.iter().filter(|k| k.1).map(|&(key, _)| ChunkWarning::Unused { key, because }));
        }
        let initial = match given_initial {
            None => Initial::Dynamic,
            Some(n) if n > size => {
                warnings.push(ChunkWarning::InitialClamped { initial: n, size });
                Initial::Frames(size)
            }
            Some(n) => Initial::Frames(n),
        };
        let policy = if adaptive {
            if min > size {
                return Err(ChunkConfigError::MinAboveSize { min, size });
            }
            if ramp.is_some() {
                warnings.push(ChunkWarning::Unused { key: "ramp", because: "`adaptive` overrides it" });
            }
            Policy::Adaptive { initial, rule: super::Adaptive { min, size, margin_ms, divisor, delta_min } }
        } else if let Some(sizes) = ramp {
            if given_initial.is_some() {
                warnings.push(ChunkWarning::Unused { key: "initial", because: "`ramp` replaces it" });
            }
            let last = sizes.last().copied().unwrap_or(size);
            if last != size {
                warnings.push(ChunkWarning::RampStep { index: sizes.len(), last, size });
            }
            Policy::Ramp { sizes, size }
        } else if doubling.iter().any(|(_, given)| *given) {
            Policy::Double { base: size, factor, max }
        } else {
            Policy::TwoPhase { initial, size }
        };
        Ok((policy, warnings))
    }
}

impl Default for Policy {
    /// What an empty `chunk:` block gives: a first chunk by load, then 25 frames.
    fn default() -> Self {
        Self::TwoPhase { initial: Initial::Dynamic, size: SIZE }
    }
}

fn count(key: &'static str, given: Option<i64>, default: u32, least: u32) -> Result<u32, ChunkConfigError> {
    let Some(value) = given else { return Ok(default) };
    if value < i64::from(least) {
        return Err(ChunkConfigError::TooSmall { key, value, least: i64::from(least) });
    }
    u32::try_from(value).map_err(|_| ChunkConfigError::TooLarge { key, value, most: i64::from(u32::MAX) })
}

fn number(key: &'static str, given: Option<f64>, default: f64, least: f64) -> Result<f64, ChunkConfigError> {
    let value = given.unwrap_or(default);
    if !value.is_finite() || value < least {
        return Err(ChunkConfigError::BadNumber { key, value, least });
    }
    Ok(value)
}

fn ramp_sizes(ramp: &[i64]) -> Result<Vec<u32>, ChunkConfigError> {
    if ramp.len() < 2 {
        return Err(ChunkConfigError::ShortRamp { len: ramp.len() });
    }
    let entry = |(index, &value)| {
        u32::try_from(value).ok().filter(|&n| n > 0).ok_or(ChunkConfigError::BadRampEntry { index, value })
    };
    ramp.iter().enumerate().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(json: &str) -> Result<(Policy, Vec<ChunkWarning>), ChunkConfigError> {
        serde_json::from_str::<ChunkConfig>(json).expect("valid keys").policy()
    }

    #[test]
    fn an_empty_block_is_two_phases_by_load() {
        assert_eq!(policy("{}"), Ok((Policy::default(), vec![])));
    }
    #[test]
    fn unknown_keys_are_refused() {
        let error = serde_json::from_str::<ChunkConfig>(r#"{"sise": 3}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `sise`"), "{error}");
    }
    #[test]
    fn counts_below_one_are_refused_and_named() {
        for key in ["size", "min", "divisor", "delta_min", "max"] {
            let json = format!(r#"{{"adaptive": true, "{key}": 0}}"#);
            assert_eq!(policy(&json), Err(ChunkConfigError::TooSmall { key, value: 0, least: 1 }), "{key}");
        }
        assert_eq!(
            policy(r#"{"initial": -1}"#).unwrap_err().to_string(),
            "`chunk.initial` is -1: it must be at least 0"
        );
        assert!(matches!(policy(r#"{"size": 5000000000}"#), Err(ChunkConfigError::TooLarge { key: "size", .. })));
        assert!(matches!(policy(r#"{"factor": 0.5}"#), Err(ChunkConfigError::BadNumber { key: "factor", .. })));
        assert!(matches!(policy(r#"{"margin_ms": -1}"#), Err(ChunkConfigError::BadNumber { .. })));
        let nan = ChunkConfig { margin_ms: Some(f64::NAN), ..ChunkConfig::default() };
        assert!(matches!(nan.policy(), Err(ChunkConfigError::BadNumber { .. })));
    }
    #[test]
    fn a_ramp_that_cannot_work_is_refused() {
        assert_eq!(policy(r#"{"ramp": [4]}"#), Err(ChunkConfigError::ShortRamp { len: 1 }));
        assert_eq!(policy(r#"{"ramp": []}"#), Err(ChunkConfigError::ShortRamp { len: 0 }));
        assert_eq!(policy(r#"{"ramp": [4, 0, 25]}"#), Err(ChunkConfigError::BadRampEntry { index: 1, value: 0 }));
        assert_eq!(policy(r#"{"ramp": [4, -2]}"#), Err(ChunkConfigError::BadRampEntry { index: 1, value: -2 }));
    }
    #[test]
    fn a_ramp_that_does_not_end_at_the_size_is_warned_of() {
        let (_, warnings) = policy(r#"{"ramp": [1, 4]}"#).unwrap();
        assert_eq!(warnings, [ChunkWarning::RampStep { index: 2, last: 4, size: 25 }]);
        assert!(warnings[0].to_string().ends_with("step at index 2"));
        assert_eq!(policy(r#"{"ramp": [1, 25]}"#).unwrap().1, []);
    }
    #[test]
    fn an_initial_above_the_size_is_clamped_with_a_warning() {
        let (policy, warnings) = policy(r#"{"initial": 30, "size": 25}"#).unwrap();
        assert_eq!(policy, Policy::TwoPhase { initial: Initial::Frames(25), size: 25 });
        assert_eq!(warnings, [ChunkWarning::InitialClamped { initial: 30, size: 25 }]);
    }
    #[test]
    fn precedence_and_conflicts() {
        let (adaptive, warnings) = policy(r#"{"adaptive": true, "ramp": [1, 25]}"#).unwrap();
        assert!(matches!(adaptive, Policy::Adaptive { initial: Initial::Dynamic, .. }));
        assert!(matches!(warnings[..], [ChunkWarning::Unused { key: "ramp", .. }]));
        let (ramp, warnings) = policy(r#"{"initial": 3, "ramp": [1, 25]}"#).unwrap();
        assert!(matches!(ramp, Policy::Ramp { .. }));
        assert!(matches!(warnings[..], [ChunkWarning::Unused { key: "initial", .. }]));
        let conflict = ChunkConfigError::Conflict { one: "factor", other: "ramp" };
        assert_eq!(policy(r#"{"factor": 2, "ramp": [1, 25]}"#), Err(conflict));
        assert_eq!(policy(r#"{"max": 100}"#).unwrap().0, Policy::Double { base: 25, factor: 2.0, max: 100 });
        let above = ChunkConfigError::MinAboveSize { min: 9, size: 4 };
        assert_eq!(policy(r#"{"adaptive": true, "min": 9, "size": 4}"#), Err(above));
        assert!(policy(r#"{"adaptive": true, "size": 1}"#).is_ok(), "the default minimum follows a small size");
        assert!(matches!(policy(r#"{"min": 3}"#).unwrap().1[..], [ChunkWarning::Unused { key: "min", .. }]));
    }
}
