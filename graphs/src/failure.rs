//! How a command fails: what is printed, and the exit code.

use std::io::IsTerminal as _;

use omni_flow::Diagnostics;

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The graph is wrong. Exit code 2.
    #[error("{0}")]
    Graph(Diagnostics),
    /// The command line does not fit the graph. Exit code 2.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: String,
    },
    /// It was started and failed. Exit code 1.
    #[error("{}", told(.0))]
    Run(#[from] anyhow::Error),
    /// Stopped by the user before it was done. Exit code 130.
    #[error("stopped")]
    Interrupted,
}

impl Failure {
    /// A wrong command line, with what to write instead.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: hint.into() }
    }
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Graph(_) | Self::Usage { .. } => 2,
            Self::Run(_) => 1,
            Self::Interrupted => 130,
        }
    }
    /// Prints it to standard error for people.
    pub fn print(&self) {
        match self {
            Self::Graph(d) => eprint!("{}", d.render(std::io::stderr().is_terminal())),
            Self::Usage { message, hint } if hint.is_empty() => eprintln!("error: {message}"),
            Self::Usage { message, hint } => eprintln!("error: {message}\nhint: {hint}"),
            Self::Run(e) => eprintln!("error: {}", told(e)),
            Self::Interrupted => eprintln!("stopped"),
        }
    }
    /// The same for machines: one object.
    pub fn to_json(&self) -> serde_json::Value {
        let kind = match self {
            Self::Graph(_) => "graph",
            Self::Usage { .. } => "usage",
            Self::Run(_) => "run",
            Self::Interrupted => "interrupted",
        };
        let mut all = serde_json::json!({ "event": "error", "kind": kind, "code": self.code() });
        match self {
            Self::Graph(d) => all["diagnostics"] = d.to_json(),
            Self::Usage { message, hint } => {
                all["message"] = message.as_str().into();
                all["hint"] = hint.as_str().into();
            }
            other => all["message"] = other.to_string().into(),
        }
        all
    }
}

/// An error with its causes, each said once: many messages quote their cause already.
fn told(e: &anyhow::Error) -> String {
    e.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        t if t.contains(&cause) => text,
        t => format!("{t}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn a_cause_is_said_once() {
        let io = || std::io::Error::other("disk full");
        let quoted = anyhow::Error::new(io()).context("cannot write `a`: disk full");
        assert_eq!(told(&quoted), "cannot write `a`: disk full");
        let plain = Err::<(), _>(io()).context("cannot write `a`").unwrap_err();
        assert_eq!(told(&plain), "cannot write `a`: disk full");
    }
}
