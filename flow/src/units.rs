//! Durations and sizes as they are written in graph files: with a unit, always.
//!
//! `200ms`, `1.5s`, `10m`, `1h` and `64KiB`, `4MiB`, `1MB`, `100B`. A bare number, a negative number and NaN are
//! refused. Use [`Dur`] and [`Size`] as fields of a node's options.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A duration with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Dur(pub Duration);

/// A number of bytes with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Size(pub u64);

/// Text that is no duration or size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A number without a unit.
    #[error("`{0}` has no unit; write for instance {1}")]
    NoUnit(String, &'static str),
    /// A unit that does not exist.
    #[error("`{0}` is no unit; known are {1}")]
    Unknown(String, &'static str),
    /// Not a number at all.
    #[error("`{0}` is not a number with a unit; write for instance {1}")]
    NotNumber(String, &'static str),
    /// Below zero, or beyond what can be counted.
    #[error("`{0}` is out of range; it is not negative and fits into 64 bits")]
    Range(String),
}

const TIMES: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const SIZES: [(&str, u128); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

impl FromStr for Dur {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        let ns = scaled(s, &TIMES, "`200ms` or `1.5s`", "ns, us, ms, s, m, h")?;
        u64::try_from(ns).map(|n| Self(Duration::from_nanos(n))).map_err(|_| UnitError::Range(s.to_owned()))
    }
}

impl FromStr for Size {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        let n = scaled(s, &SIZES, "`64KiB` or `4MiB`", "B, KiB, MiB, GiB, TiB, kB, MB, GB")?;
        u64::try_from(n).map(Self).map_err(|_| UnitError::Range(s.to_owned()))
    }
}

/// Exact decimal arithmetic: `1.5s` is 1 500 000 000 ns, not what a float makes of it.
fn scaled(s: &str, units: &[(&str, u128)], example: &'static str, known: &'static str) -> Result<u128, UnitError> {
    let t = s.trim();
    let (sign, t) = match t.as_bytes().first() {
        Some(b'-') => (true, &t[1..]),
        Some(b'+') => (false, &t[1..]),
        _ => (false, t),
    };
    let cut = t.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(t.len());
    let (number, unit) = (t[..cut].replace('_', ""), t[cut..].trim());
    let (whole, part) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() && part.is_empty() || part.contains('.') {
        return Err(UnitError::NotNumber(s.to_owned(), example));
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit(s.to_owned(), example));
    }
    let (_, scale) =
        units.iter().find(|(n, _)| *n == unit).ok_or_else(|| UnitError::Unknown(unit.to_owned(), known))?;
    let range = || UnitError::Range(s.to_owned());
    let int: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| range())? };
    let part = &part[..part.len().min(18)];
    let frac = if part.is_empty() {
        0
    } else {
        part.parse::<u128>().map_err(|_| range())? * scale / 10u128.pow(part.len() as u32)
    };
    let n = int.checked_mul(*scale).and_then(|n| n.checked_add(frac)).ok_or_else(range)?;
    if sign && n > 0 { Err(range()) } else { Ok(n) }
}

impl fmt::Display for Dur {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0.as_nanos();
        let (unit, scale) = match n {
            0 => ("s", 1),
            n if n % 3_600_000_000_000 == 0 => ("h", 3_600_000_000_000),
            n if n % 60_000_000_000 == 0 && n >= 600_000_000_000 => ("m", 60_000_000_000),
            n if n % 1_000_000_000 == 0 => ("s", 1_000_000_000),
            n if n % 1_000_000 == 0 => ("ms", 1_000_000),
            n if n % 1_000 == 0 => ("us", 1_000),
            _ => ("ns", 1),
        };
        write!(f, "{}{unit}", n / scale)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}B", self.0)
    }
}

macro_rules! with_serde {
    ($t:ty, $what:literal) => {
        impl serde::Serialize for $t {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $t {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl serde::de::Visitor<'_> for V {
                    type Value = $t;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_str<E: serde::de::Error>(self, s: &str) -> Result<$t, E> {
                        s.parse().map_err(E::custom)
                    }
                }
                d.deserialize_str(V)
            }
        }
    };
}
with_serde!(Dur, "a duration with a unit, such as `200ms`");
with_serde!(Size, "a size with a unit, such as `4MiB`");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact() {
        for (s, ns) in [
            ("200ms", 200_000_000),
            ("1.5s", 1_500_000_000),
            ("0.1s", 100_000_000),
            ("10m", 600_000_000_000),
            ("0s", 0),
            (".5ms", 500_000),
        ] {
            assert_eq!(s.parse::<Dur>().unwrap().0.as_nanos(), ns, "{s}");
        }
        for s in
            ["200", "-1s", "NaN", "nans", "", "s", "1.2.3s", "1 fortnight", "1e3s", "99999999999999h", "inf", "1s 2ms"]
        {
            assert!(s.parse::<Dur>().is_err(), "{s}");
        }
    }
    #[test]
    fn sizes_are_exact() {
        for (s, n) in [("4MiB", 4 << 20), ("64KiB", 65536), ("1MB", 1_000_000), ("1.5KiB", 1536), ("7B", 7)] {
            assert_eq!(s.parse::<Size>().unwrap().0, n, "{s}");
        }
        for s in ["4", "-4MiB", "4 Mib", "4mb", "99999999TiB"] {
            assert!(s.parse::<Size>().is_err(), "{s}");
        }
    }
    proptest::proptest! {
        #[test]
        fn what_is_shown_reads_back(n: u64) {
            let (d, s) = (Dur(Duration::from_nanos(n)), Size(n));
            proptest::prop_assert_eq!(d.to_string().parse::<Dur>().unwrap(), d);
            proptest::prop_assert_eq!(s.to_string().parse::<Size>().unwrap(), s);
        }
        #[test]
        fn any_text_is_read_or_refused(s: String) {
            let _ = (s.parse::<Dur>(), s.parse::<Size>());
        }
    }
}
