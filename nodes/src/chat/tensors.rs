//! Reads the tensors of a GGUF file: matrices in the form in which they are kept, everything else as f32.
//!
//! Matrices of `Q4_0`, `Q4_1` and `Q8_0` go from the file into their memory without a copy between. Other block types
//! (`Q5_*`, K types) have no kernel and are rounded to `Q8_0`, which adds an error of at most 1/253 of the largest of
//! 32 neighbours; f16, bf16 and f32 become f32, exactly. What has to be converted passes through a buffer of 64 Ki
//! values.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    ops::Range,
    path::Path,
};

use candle_core::{
    Device,
    quantized::{GgmlDType, ggml_file::qtensor_from_ggml},
};
use omni_flow_kernels::blocks::{self, Format, pack_row};

use super::{error::ChatError, gguf::Gguf, matrix::Matrix};

/// Values converted at a time; a multiple of every block size.
const CHUNK: usize = 64 << 10;

/// The tensors of one file.
pub struct Tensors<'a> {
    /// The file's name, for errors.
    pub path: &'a Path,
    /// The file.
    pub file: &'a mut File,
    /// Its header.
    pub gguf: &'a Gguf,
}

impl Tensors<'_> {
    /// Refuses a file of which more than `limit` bytes would be kept.
    ///
    /// # Errors
    /// [`ChatError::TooLarge`]; [`ChatError::Malformed`] if a tensor is not where the header says.
    pub fn check_total(&self, limit: u64) -> Result<(), ChatError> {
        let mut needed = 0u64;
        for (name, info) in &self.gguf.tensors {
            let (_, dtype, elements) = self.gguf.locate(name).map_err(|e| malformed(self.path, e))?;
            let row = info.dims.last().copied().unwrap_or(0);
            let bytes = match kept(dtype) {
                Some(format) if info.dims.len() == 2 => (elements / row) as u64 * format.row_bytes(row) as u64,
                _ => (elements as u64).saturating_mul(4),
            };
            needed = needed.saturating_add(bytes);
        }
        match needed > limit {
            true => Err(ChatError::TooLarge { path: self.path.into(), needed, limit }),
            false => Ok(()),
        }
    }

    /// A matrix that must be there.
    ///
    /// # Errors
    /// [`ChatError`] naming the file and the tensor: missing, misshapen, unreadable.
    pub fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, ChatError> {
        let (range, dtype, elements) = self.find(name, &[rows, columns])?;
        let Some(format) = kept(dtype) else {
            let mut data = Vec::with_capacity(elements);
            self.convert(name, range, dtype, elements, |values| data.extend_from_slice(values))?;
            return Ok(Matrix::F32(data, columns));
        };
        let mut matrix = blocks::Matrix::zeros(format, rows, columns);
        if stored(dtype).is_some() {
            self.read(range.start, matrix.bytes_mut())?;
        } else {
            let mut rest = matrix.bytes_mut();
            self.convert(name, range, dtype, elements, |values| {
                let (row, after) = std::mem::take(&mut rest).split_at_mut(format.row_bytes(values.len()));
                pack_row(values, row);
                rest = after;
            })?;
        }
        Ok(Matrix::Blocks(matrix))
    }

    /// As [`Tensors::matrix`]; `None` if it is not there.
    ///
    /// # Errors
    /// As [`Tensors::matrix`].
    pub fn matrix_if(&mut self, name: &str, rows: usize, columns: usize) -> Result<Option<Matrix>, ChatError> {
        match self.gguf.tensors.contains_key(name) {
            true => self.matrix(name, rows, columns).map(Some),
            false => Ok(None),
        }
    }

    /// A vector that must be there, as f32.
    ///
    /// # Errors
    /// As [`Tensors::matrix`].
    pub fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, ChatError> {
        let (range, dtype, elements) = self.find(name, &[len])?;
        let mut data = Vec::with_capacity(elements);
        self.convert(name, range, dtype, elements, |values| data.extend_from_slice(values))?;
        Ok(data)
    }

    /// As [`Tensors::vector`]; `None` if it is not there.
    ///
    /// # Errors
    /// As [`Tensors::matrix`].
    pub fn vector_if(&mut self, name: &str, len: usize) -> Result<Option<Vec<f32>>, ChatError> {
        match self.gguf.tensors.contains_key(name) {
            true => self.vector(name, len).map(Some),
            false => Ok(None),
        }
    }

    fn find(&self, name: &str, dims: &[usize]) -> Result<(Range<u64>, GgmlDType, usize), ChatError> {
        let found = self.gguf.locate(name).map_err(|e| malformed(self.path, e))?;
        let has = &self.gguf.tensors[name].dims;
        match has == dims {
            true => Ok(found),
            false => Err(malformed(self.path, format!("tensor `{name}` is {has:?} where {dims:?} is needed"))),
        }
    }

    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), ChatError> {
        let io = |source| ChatError::Io { path: self.path.into(), source };
        self.file.seek(SeekFrom::Start(at)).map_err(io)?;
        self.file.read_exact(bytes).map_err(io)
    }

    /// Gives the values in order, up to [`CHUNK`] at a time.
    fn convert(
        &mut self,
        name: &str,
        range: Range<u64>,
        dtype: GgmlDType,
        elements: usize,
        mut take: impl FnMut(&[f32]),
    ) -> Result<(), ChatError> {
        let mut raw = Vec::new();
        for first in (0..elements).step_by(CHUNK) {
            let n = CHUNK.min(elements - first);
            let bytes = |values: usize| values / dtype.block_size() * dtype.type_size();
            raw.resize(bytes(n), 0);
            self.read(range.start + bytes(first) as u64, &mut raw)?;
            let values = qtensor_from_ggml(dtype, &raw, vec![n], &Device::Cpu)
                .and_then(|t| t.dequantize(&Device::Cpu))
                .and_then(|t| t.to_vec1::<f32>())
                .map_err(|e| malformed(self.path, format!("tensor `{name}`: {e}")))?;
            take(&values);
        }
        Ok(())
    }
}

/// The format whose blocks are those of the file.
fn stored(dtype: GgmlDType) -> Option<Format> {
    match dtype {
        GgmlDType::Q4_0 => Some(Format::Q4_0),
        GgmlDType::Q4_1 => Some(Format::Q4_1),
        GgmlDType::Q8_0 => Some(Format::Q8_0),
        _ => None,
    }
}

/// The format in which a matrix is kept; `None`: f32. Rows of block types are made of whole blocks of 32 (or 256).
fn kept(dtype: GgmlDType) -> Option<Format> {
    match dtype {
        GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16 => None,
        blocks => Some(stored(blocks).unwrap_or(Format::Q8_0)),
    }
}

/// [`ChatError::Malformed`] for `path`.
pub(super) fn malformed(path: &Path, why: impl Into<String>) -> ChatError {
    ChatError::Malformed { path: path.into(), why: why.into() }
}
