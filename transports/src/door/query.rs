//! The parameters of a Realtime address.

/// What the address says. Unknown parameters are nothing, and so are values that are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) model: Option<String>,
    pub(super) autostart: bool,
    pub(super) resume: bool,
    pub(super) duplex: Option<bool>,
}

impl Query {
    pub(super) fn parse(query: &str) -> Self {
        let mut got = Self { model: None, autostart: true, resume: false, duplex: None };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.trim();
            match &*name {
                "model" if !value.is_empty() => got.model = Some(value.to_owned()),
                "autostart" => got.autostart = flag(value).unwrap_or(true),
                "resume" => got.resume = flag(value).unwrap_or(false),
                "duplex" => got.duplex = flag(value),
                _ => {}
            }
        }
        got
    }
}

fn flag(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_any_case_and_unknown_ones_are_nothing() {
        let q = Query::parse("model=a%20b&autostart=OFF&resume=Yes&duplex=%201%20&x=y&");
        assert_eq!(q, Query { model: Some("a b".to_owned()), autostart: false, resume: true, duplex: Some(true) });
        let q = Query::parse("model=&autostart=maybe&resume&duplex=");
        assert_eq!(q, Query { model: None, autostart: true, resume: false, duplex: None });
    }
}
