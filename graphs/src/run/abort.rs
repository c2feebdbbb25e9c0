//! Waits that the environment sets, in seconds: `OMNI_FLOW_ABORT_TIMEOUT`, how long an abort waits for nodes to let go, and
//! `OMNI_FLOW_ASYNC_OUTPUT_TIMEOUT`, how long a request waits for the next part of its answer.

use std::ffi::OsString;
use std::time::Duration;

use crate::failure::Failure;

const ABORT: &str = "OMNI_FLOW_ABORT_TIMEOUT";
const OUTPUT: &str = "OMNI_FLOW_ASYNC_OUTPUT_TIMEOUT";
/// The longest wait that is taken, seconds: more is no bound.
const MOST: f64 = 3600.0;

/// What the environment says; `None` if it says nothing, and the engine's own limit holds.
///
/// # Errors
/// [`Failure::Usage`] with the variable's name if its value is not a number of seconds.
pub fn timeout() -> Result<Option<Duration>, Failure> {
    read(ABORT, std::env::var_os(ABORT))
}

/// The same of the wait for output; `None` for the server's own limit.
///
/// # Errors
/// As [`timeout`].
pub fn output_timeout() -> Result<Option<Duration>, Failure> {
    read(OUTPUT, std::env::var_os(OUTPUT))
}

fn read(name: &str, value: Option<OsString>) -> Result<Option<Duration>, Failure> {
    let Some(value) = value.filter(|v| !v.is_empty()) else { return Ok(None) };
    let text = value.to_string_lossy();
    match text.trim().parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= MOST => Ok(Some(Duration::from_secs_f64(seconds))),
        _ => Err(Failure::usage(
            format!("{name}=`{text}` is not a number of seconds above 0 and up to {MOST}"),
            format!("write for instance {name}=2, or unset it"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_with_a_fraction() {
        let of = |text: &str| read(ABORT, Some(text.into())).unwrap();
        assert_eq!(of("5"), Some(Duration::from_secs(5)));
        assert_eq!(of(" 0.25 "), Some(Duration::from_millis(250)));
        assert_eq!(of(""), None);
        assert_eq!(read(ABORT, None).unwrap(), None);
    }
    #[test]
    fn anything_else_is_named() {
        for text in ["2s", "soon", "0", "-1", "nan", "inf", "1e9", "3601"] {
            let failure = read(ABORT, Some(text.into())).unwrap_err();
            assert_eq!(failure.code(), 2, "{text}");
            assert!(failure.to_string().contains(&format!("{ABORT}=`{text}`")), "{failure}");
        }
    }
}
