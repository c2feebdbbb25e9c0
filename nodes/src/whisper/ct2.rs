//! Reader of the CTranslate2 `model.bin`, version 6.
//!
//! Promises: never reads past the bytes it was given, never allocates by a number from a header, no panic on any
//! input, and every variable's size agrees with its shape. It borrows the data; nothing is converted here.
//! It does not know what the variables mean; see `weights.rs`.

use std::collections::HashMap;

/// Element type of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// 32-bit float.
    F32,
    /// 8-bit integer.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 16-bit float.
    F16,
    /// bfloat16.
    Bf16,
}

impl Dtype {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::F32,
            1 => Self::I8,
            2 => Self::I16,
            3 => Self::I32,
            4 => Self::F16,
            5 => Self::Bf16,
            _ => return None,
        })
    }
}

/// One variable: shape, type and its bytes in file order (little-endian, row-major).
#[derive(Debug, Clone)]
pub struct Variable<'a> {
    /// Sizes, outermost first; empty for a scalar.
    pub dims: Vec<usize>,
    /// Element type.
    pub dtype: Dtype,
    /// `product(dims) * dtype.size()` bytes.
    pub data: &'a [u8],
}

/// All variables of a file by name, aliases resolved.
#[derive(Debug, Default)]
pub struct Ct2<'a> {
    /// Name of the model class, `WhisperSpec` for Whisper.
    pub spec: String,
    /// Revision of the class.
    pub revision: u32,
    /// The variables.
    pub variables: HashMap<String, Variable<'a>>,
}

/// Where and why parsing stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}")]
pub struct Ct2Error {
    /// Offset in the file.
    pub offset: usize,
    /// What is wrong.
    pub what: String,
}

const VERSION: u32 = 6;
const MAX_RANK: u8 = 8;

/// Parses a whole file.
///
/// # Errors
/// Another version, a cut file, a size that does not follow from the shape, an unknown type, a name that is not
/// UTF-8 or comes twice, an alias to nothing, bytes after the end.
pub fn parse(bytes: &[u8]) -> Result<Ct2<'_>, Ct2Error> {
    let mut r = Reader { bytes, at: 0 };
    let version = r.u32()?;
    if version != VERSION {
        return Err(Ct2Error { offset: 0, what: format!("version {version} where {VERSION} is understood") });
    }
    let mut out = Ct2 { spec: r.string()?, revision: r.u32()?, variables: HashMap::new() };
    for _ in 0..r.u32()? {
        let at = r.at;
        let name = r.string()?;
        let variable = r.variable(&name)?;
        if out.variables.insert(name.clone(), variable).is_some() {
            return Err(Ct2Error { offset: at, what: format!("variable `{name}` comes twice") });
        }
    }
    for _ in 0..r.u32()? {
        let at = r.at;
        let (alias, target) = (r.string()?, r.string()?);
        let Some(variable) = out.variables.get(&target).cloned() else {
            return Err(Ct2Error {
                offset: at,
                what: format!("alias `{alias}` points to `{target}`, which is not there"),
            });
        };
        out.variables.entry(alias).or_insert(variable);
    }
    if r.at != bytes.len() {
        return Err(Ct2Error { offset: r.at, what: format!("{} bytes after the end", bytes.len() - r.at) });
    }
    Ok(out)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, what: impl Into<String>) -> Result<T, Ct2Error> {
        Err(Ct2Error { offset: self.at, what: what.into() })
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], Ct2Error> {
        let left = self.bytes.len() - self.at;
        if n > left {
            return self.fail(format!("file ends: {n} bytes needed, {left} left"));
        }
        let slice = &self.bytes[self.at..self.at + n];
        self.at += n;
        Ok(slice)
    }

    fn u8(&mut self) -> Result<u8, Ct2Error> {
        Ok(self.take(1)?[0])
    }

    fn u16(&mut self) -> Result<u16, Ct2Error> {
        let b = self.take(2)?;
        Ok(u16::from_le_bytes([b[0], b[1]]))
    }

    fn u32(&mut self) -> Result<u32, Ct2Error> {
        let b = self.take(4)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// A u16 length that counts the trailing NUL, then the bytes.
    fn string(&mut self) -> Result<String, Ct2Error> {
        let len = usize::from(self.u16()?);
        let bytes = self.take(len)?;
        let Some((0, text)) = bytes.split_last() else { return self.fail("a string without its final NUL") };
        match std::str::from_utf8(text) {
            Ok(s) => Ok(s.to_owned()),
            Err(_) => self.fail("a name that is not UTF-8"),
        }
    }

    fn variable(&mut self, name: &str) -> Result<Variable<'a>, Ct2Error> {
        let rank = self.u8()?;
        if rank > MAX_RANK {
            return self.fail(format!("`{name}` has rank {rank}"));
        }
        let mut dims = Vec::with_capacity(usize::from(rank));
        let mut elements = 1usize;
        for _ in 0..rank {
            let dim = self.u32()? as usize;
            match elements.checked_mul(dim) {
                Some(n) => elements = n,
                None => return self.fail(format!("the shape of `{name}` is too large")),
            }
            dims.push(dim);
        }
        let code = self.u8()?;
        let Some(dtype) = Dtype::from_code(code) else { return self.fail(format!("`{name}` has unknown type {code}")) };
        let size = self.u32()? as usize;
        if elements.checked_mul(dtype.size()) != Some(size) {
            return self.fail(format!("`{name}` of shape {dims:?} and type {dtype:?} says {size} bytes"));
        }
        Ok(Variable { dims, dtype, data: self.take(size)? })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes a file of this layout; variables are `(name, dims, dtype code, bytes)`.
    pub(crate) fn write(variables: &[(&str, Vec<u32>, u8, Vec<u8>)], aliases: &[(&str, &str)]) -> Vec<u8> {
        let mut out = 6u32.to_le_bytes().to_vec();
        let string = |out: &mut Vec<u8>, s: &str| {
            out.extend((s.len() as u16 + 1).to_le_bytes());
            out.extend(s.as_bytes());
            out.push(0);
        };
        string(&mut out, "WhisperSpec");
        out.extend(3u32.to_le_bytes());
        out.extend((variables.len() as u32).to_le_bytes());
        for (name, dims, dtype, data) in variables {
            string(&mut out, name);
            out.push(dims.len() as u8);
            dims.iter().for_each(|d| out.extend(d.to_le_bytes()));
            out.push(*dtype);
            out.extend((data.len() as u32).to_le_bytes());
            out.extend(data);
        }
        out.extend((aliases.len() as u32).to_le_bytes());
        for (a, b) in aliases {
            string(&mut out, a);
            string(&mut out, b);
        }
        out
    }

    fn sample() -> Vec<u8> {
        write(
            &[
                ("a/weight", vec![2, 3], 4, vec![1; 12]),
                ("b", vec![], 2, vec![6, 0]),
                ("c/bias", vec![4], 0, vec![0; 16]),
            ],
            &[("d", "a/weight")],
        )
    }

    #[test]
    fn reads_variables_and_aliases() {
        let bytes = sample();
        let file = parse(&bytes).unwrap();
        assert_eq!((file.spec.as_str(), file.revision), ("WhisperSpec", 3));
        assert_eq!(file.variables.len(), 4);
        assert_eq!(file.variables["d"].dims, [2, 3]);
        assert_eq!(file.variables["b"].data, [6, 0]);
    }

    #[test]
    fn every_prefix_is_an_error() {
        let bytes = sample();
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).is_err(), "prefix of {cut} bytes");
        }
    }

    #[test]
    fn names_what_is_wrong() {
        let mut later = sample();
        later[0] = 7;
        assert!(parse(&later).unwrap_err().what.contains("version 7"));
        let mut longer = sample();
        longer.push(0);
        assert!(parse(&longer).unwrap_err().what.contains("after the end"));
        let twice = write(&[("a", vec![1], 1, vec![0]), ("a", vec![1], 1, vec![0])], &[]);
        assert!(parse(&twice).unwrap_err().what.contains("twice"));
        let short = write(&[("a", vec![3], 4, vec![0; 4])], &[]);
        assert!(parse(&short).unwrap_err().what.contains("says 4 bytes"));
        let nowhere = write(&[], &[("a", "b")]);
        assert!(parse(&nowhere).unwrap_err().what.contains("not there"));
        let huge = write(&[("a", vec![u32::MAX; 4], 0, vec![])], &[]);
        assert!(parse(&huge).unwrap_err().what.contains("too large"));
    }

    proptest! {
        #[test]
        fn no_mutation_panics(at in 0usize..200, value: u8, cut in 0usize..200) {
            let mut bytes = sample();
            let n = bytes.len();
            bytes[at % n] = value;
            let _ = parse(&bytes);
            let _ = parse(&bytes[..cut % n]);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }
    }
}
