//! The header of a GGUF file: metadata and tensor directory, read within bounds.
//!
//! Promises: memory is bounded by the bytes that the file really has (a claimed count or length is checked against
//! what is left before anything is reserved), no panic on any input, every error names the offset or key. Versions 2
//! and 3, little-endian. Does not read tensor data; [`Gguf::locate`] gives checked byte ranges for that.
//!
//! Format: the GGUF specification of ggml (`docs/gguf.md`).

use std::{collections::HashMap, ops::Range};

use candle_core::quantized::GgmlDType;

const MAX_DEPTH: usize = 4;
const MAX_DIMS: u32 = 4;

/// One metadata value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Any unsigned integer type.
    Unsigned(u64),
    /// Any signed integer type.
    Signed(i64),
    /// f32 or f64.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A string; bytes that are not UTF-8 are kept as they are.
    Bytes(Vec<u8>),
    /// An array.
    Array(Vec<Value>),
}

impl Value {
    /// The value as a non-negative integer.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::Unsigned(v) => Some(v),
            Value::Signed(v) => u64::try_from(v).ok(),
            _ => None,
        }
    }

    /// The value as a float.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Value::Float(v) => Some(v),
            Value::Unsigned(v) => Some(v as f64),
            Value::Signed(v) => Some(v as f64),
            _ => None,
        }
    }

    /// The value as text, if it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Bytes(v) => std::str::from_utf8(v).ok(),
            _ => None,
        }
    }
}

/// Where a tensor lies and what it is.
#[derive(Debug, Clone)]
pub struct TensorInfo {
    /// Dimensions, outermost first (`[rows, columns]`), as row-major memory has them.
    pub dims: Vec<usize>,
    /// Type id as the file has it.
    pub kind: u32,
    /// Offset from the start of the data section.
    pub offset: u64,
}

/// A parsed header.
#[derive(Debug, Clone)]
pub struct Gguf {
    /// Metadata by key.
    pub metadata: HashMap<String, Value>,
    /// Tensors by name.
    pub tensors: HashMap<String, TensorInfo>,
    data_start: u64,
    file_len: u64,
}

impl Gguf {
    /// Parses the header in `bytes`, the beginning of a file of `file_len` bytes. `None`: more of the file is needed.
    ///
    /// # Errors
    /// A sentence that says what is wrong and where; the caller adds the file's name.
    pub fn parse(bytes: &[u8], file_len: u64) -> Result<Option<Self>, String> {
        let mut r = Reader { bytes, at: 0, len: file_len, short: false };
        match Self::read(&mut r, file_len) {
            Ok(header) => Ok(Some(header)),
            Err(_) if r.short => Ok(None),
            Err(why) => Err(why),
        }
    }

    fn read(r: &mut Reader<'_>, file_len: u64) -> Result<Self, String> {
        if r.take(4)? != b"GGUF" {
            return Err("it does not begin with `GGUF`".into());
        }
        let version = r.u32()?;
        if !(2..=3).contains(&version) {
            return Err(format!("GGUF version {version} (2 and 3 are supported, little-endian)"));
        }
        let tensor_count = r.count(8 + 4 + 8 + 4 + 8, "tensors")?;
        let key_count = r.count(8 + 4 + 1, "metadata keys")?;
        let mut metadata = HashMap::new();
        for _ in 0..key_count {
            let key = r.string()?;
            let kind = r.u32()?;
            let value = r.value(kind, 0).map_err(|e| format!("key `{key}`: {e}"))?;
            metadata.insert(key, value);
        }
        let mut tensors = HashMap::new();
        for _ in 0..tensor_count {
            let name = r.string()?;
            let rank = r.u32()?;
            if rank == 0 || rank > MAX_DIMS {
                return Err(format!("tensor `{name}` claims {rank} dimensions"));
            }
            let mut dims = Vec::with_capacity(rank as usize);
            for _ in 0..rank {
                dims.push(usize::try_from(r.u64()?).map_err(|_| format!("tensor `{name}`: dimension too large"))?);
            }
            dims.reverse();
            tensors.insert(name, TensorInfo { dims, kind: r.u32()?, offset: r.u64()? });
        }
        let alignment = match metadata.get("general.alignment") {
            None => 32,
            Some(v) => {
                v.as_u64().filter(|a| a.is_power_of_two() && *a <= 1 << 20).ok_or("invalid general.alignment")?
            }
        };
        let data_start = (r.at as u64).next_multiple_of(alignment);
        Ok(Self { metadata, tensors, data_start, file_len })
    }

    /// Byte range of the tensor in the file, its element type and its number of elements.
    ///
    /// # Errors
    /// A sentence if the type is unknown, the size overflows or the range leaves the file.
    pub fn locate(&self, name: &str) -> Result<(Range<u64>, GgmlDType, usize), String> {
        let info = self.tensors.get(name).ok_or_else(|| format!("tensor `{name}` is missing"))?;
        let dtype = dtype(info.kind).ok_or_else(|| format!("tensor `{name}` has unknown type {}", info.kind))?;
        let overflow = || format!("the size of tensor `{name}` overflows");
        let elements = info.dims.iter().try_fold(1usize, |a, &d| a.checked_mul(d)).ok_or_else(overflow)?;
        let row = info.dims.last().copied().unwrap_or(0);
        if row == 0 || elements == 0 || row % dtype.block_size() != 0 {
            return Err(format!("tensor `{name}` has rows of {row}, no multiple of {}", dtype.block_size()));
        }
        let blocks = (elements / dtype.block_size()) as u64;
        let size = blocks.checked_mul(dtype.type_size() as u64).ok_or_else(overflow)?;
        let start = self.data_start.checked_add(info.offset);
        let end = start.and_then(|s| s.checked_add(size)).filter(|&e| e <= self.file_len);
        match (start, end) {
            (Some(s), Some(e)) => Ok((s..e, dtype, elements)),
            _ => Err(format!(
                "tensor `{name}` needs {size} bytes at offset {} of the data, beyond the end of the file",
                info.offset
            )),
        }
    }
}

/// The element types whose blocks can be expanded.
fn dtype(kind: u32) -> Option<GgmlDType> {
    Some(match kind {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        30 => GgmlDType::BF16,
        _ => return None,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    len: u64,
    short: bool,
}

impl<'a> Reader<'a> {
    fn left(&self) -> u64 {
        self.len.saturating_sub(self.at as u64)
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        if n as u64 > self.left() {
            return Err(format!("it ends at byte {}, {n} more were expected at {}", self.len, self.at));
        }
        if n > self.bytes.len() - self.at {
            self.short = true;
            return Err("more is needed".into());
        }
        let out = &self.bytes[self.at..self.at + n];
        self.at += n;
        Ok(out)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A count of things of at least `each` bytes: refused if the rest of the file cannot hold them.
    fn count(&mut self, each: usize, what: &str) -> Result<usize, String> {
        let at = self.at;
        let n = self.u64()?;
        match usize::try_from(n).ok().filter(|n| n.checked_mul(each).is_some_and(|b| b as u64 <= self.left())) {
            Some(n) => Ok(n),
            None => Err(format!("{n} {what} are claimed at byte {at}, {} bytes are left", self.left())),
        }
    }

    fn blob(&mut self) -> Result<&'a [u8], String> {
        let n = self.count(1, "bytes of text")?;
        self.take(n)
    }

    fn string(&mut self) -> Result<String, String> {
        let at = self.at;
        String::from_utf8(self.blob()?.to_vec()).map_err(|_| format!("the name at byte {at} is not UTF-8"))
    }

    fn value(&mut self, kind: u32, depth: usize) -> Result<Value, String> {
        Ok(match kind {
            0 => Value::Unsigned(self.array::<1>()?[0].into()),
            1 => Value::Signed(i8::from_le_bytes(self.array()?).into()),
            2 => Value::Unsigned(u16::from_le_bytes(self.array()?).into()),
            3 => Value::Signed(i16::from_le_bytes(self.array()?).into()),
            4 => Value::Unsigned(self.u32()?.into()),
            5 => Value::Signed(i32::from_le_bytes(self.array()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.array()?).into()),
            7 => Value::Bool(self.array::<1>()?[0] != 0),
            8 => Value::Bytes(self.blob()?.to_vec()),
            9 => {
                if depth >= MAX_DEPTH {
                    return Err(format!("arrays nested deeper than {MAX_DEPTH}"));
                }
                let kind = self.u32()?;
                let each = match kind {
                    0 | 1 | 7 => 1,
                    2 | 3 => 2,
                    4..=6 => 4,
                    8 | 10..=12 => 8,
                    9 => 12,
                    _ => return Err(format!("unknown value type {kind}")),
                };
                let n = self.count(each, "array elements")?;
                // Not reserved: a `Value` is larger than its bytes in the file, so it grows with what is read.
                let mut out = Vec::new();
                for _ in 0..n {
                    out.push(self.value(kind, depth + 1)?);
                }
                Value::Array(out)
            }
            10 => Value::Unsigned(self.u64()?),
            11 => Value::Signed(i64::from_le_bytes(self.array()?)),
            12 => Value::Float(f64::from_le_bytes(self.array()?)),
            _ => return Err(format!("unknown value type {kind}")),
        })
    }
}
