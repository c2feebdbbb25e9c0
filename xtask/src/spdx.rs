//! Licence expressions (SPDX 2.3, annex D), as manifests hold them, and whether a list of licences satisfies one.
//!
//! The old form of crates.io, `MIT/Apache-2.0`, means OR. What cannot be read is satisfied by nothing.

/// True if some choice that the expression leaves needs only licences that `allowed` accepts. A licence with an
/// exception is asked for as a whole: `Apache-2.0 WITH LLVM-exception`.
pub fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    parser.any() == Some(true) && parser.words.is_empty()
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a dyn Fn(&str) -> bool,
}

impl<'a> Parser<'a> {
    fn any(&mut self) -> Option<bool> {
        let mut result = self.all()?;
        while self.eat("OR") {
            result |= self.all()?;
        }
        Some(result)
    }
    fn all(&mut self) -> Option<bool> {
        let mut result = self.one()?;
        while self.eat("AND") {
            result &= self.one()?;
        }
        Some(result)
    }
    fn one(&mut self) -> Option<bool> {
        if self.eat("(") {
            let inner = self.any()?;
            return self.eat(")").then_some(inner);
        }
        let name = self.word()?;
        if ["OR", "AND", "WITH", ")"].contains(&name) {
            return None;
        }
        if self.eat("WITH") {
            let exception = self.word()?;
            return Some((self.allowed)(&format!("{name} WITH {exception}")));
        }
        Some((self.allowed)(name))
    }
    fn eat(&mut self, word: &str) -> bool {
        let eaten = self.words.first() == Some(&word);
        if eaten {
            self.words = &self.words[1..];
        }
        eaten
    }
    fn word(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_and_demands() {
        let ok = |e: &str| satisfied(e, &|l| ["MIT", "Apache-2.0", "Unicode-3.0"].contains(&l));
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "Apache-2.0 / MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "GPL-2.0 AND ISC OR MIT",
            "((MIT))",
        ] {
            assert!(ok(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR Apache-2.0) AND OpenSSL",
            "Apache-2.0 WITH LLVM-exception",
            "MIT MIT",
            "MIT OR",
            "(MIT",
            "MIT)",
            "AND",
            "WITH",
        ] {
            assert!(!ok(bad), "{bad}");
        }
        assert!(satisfied("Apache-2.0 WITH LLVM-exception", &|l| l == "Apache-2.0 WITH LLVM-exception"));
    }
}
