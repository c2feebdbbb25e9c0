//! Shared bytes with an owner.
//!
//! A [`Buf`] is a view of bytes that somebody owns: a heap block, a slot of a pool, a shared-memory segment, device
//! memory. Cloning shares; the owner is released when the last clone drops. Host bytes never move or change.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// Memory of a device (a GPU) that a chunk refers to. Read on the host only by an explicit copy.
pub trait DeviceMemory: Send + Sync + fmt::Debug + 'static {
    /// Its size in bytes.
    fn len(&self) -> usize;
    /// True if it holds no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A copy on the host.
    ///
    /// # Errors
    /// Whatever the device says when it cannot copy.
    fn to_host(&self) -> std::io::Result<Vec<u8>>;
}

/// Shared, immutable bytes. Cheap to clone and to slice.
#[derive(Clone)]
pub struct Buf(Repr);

#[derive(Clone)]
enum Repr {
    Host(Bytes),
    Device(Arc<dyn DeviceMemory>),
}

impl Buf {
    /// A buffer over device memory.
    pub fn device(memory: Arc<dyn DeviceMemory>) -> Self {
        Self(Repr::Device(memory))
    }
    /// A buffer over any owner of host bytes: a pool slot, a shared-memory slice, a mapped file. `owner` is dropped
    /// with the last clone.
    pub fn from_owner<T: AsRef<[u8]> + Send + 'static>(owner: T) -> Self {
        Self(Repr::Host(Bytes::from_owner(owner)))
    }
    /// The samples of a vector, without a copy and with their alignment.
    pub fn from_f32(samples: Vec<f32>) -> Self {
        Self::from_owner(Typed(samples))
    }
    /// The samples of a vector, without a copy and with their alignment.
    pub fn from_i16(samples: Vec<i16>) -> Self {
        Self::from_owner(Typed(samples))
    }
    /// Size in bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Host(b) => b.len(),
            Repr::Device(d) => d.len(),
        }
    }
    /// True if it holds no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes, if they are on the host.
    pub fn host(&self) -> Option<&Bytes> {
        match &self.0 {
            Repr::Host(b) => Some(b),
            Repr::Device(_) => None,
        }
    }
    /// The bytes on the host, copied from the device if need be.
    ///
    /// # Errors
    /// Whatever the device says when it cannot copy.
    pub fn to_host(&self) -> std::io::Result<Bytes> {
        match &self.0 {
            Repr::Host(b) => Ok(b.clone()),
            Repr::Device(d) => d.to_host().map(Bytes::from),
        }
    }
    /// Host bytes read as values of `T`: borrowed if they are aligned, else copied; a partial last value is left out.
    /// Empty for device memory.
    pub fn typed<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(&self) -> Cow<'_, [T]> {
        let Some(b) = self.host() else { return Cow::Borrowed(&[]) };
        let whole = b.len() / size_of::<T>() * size_of::<T>();
        match bytemuck::try_cast_slice(&b[..whole]) {
            Ok(s) => Cow::Borrowed(s),
            Err(_) => Cow::Owned(b[..whole].chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()),
        }
    }
}

struct Typed<T>(Vec<T>);
impl<T: bytemuck::NoUninit> AsRef<[u8]> for Typed<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl From<Bytes> for Buf {
    fn from(b: Bytes) -> Self {
        Self(Repr::Host(b))
    }
}
impl From<Vec<u8>> for Buf {
    fn from(v: Vec<u8>) -> Self {
        Self(Repr::Host(v.into()))
    }
}
impl fmt::Debug for Buf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Host(b) => write!(f, "Buf({} bytes)", b.len()),
            Repr::Device(d) => write!(f, "Buf({d:?})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_views_survive_any_alignment() {
        let f = Buf::from_f32(vec![1.0, -2.5]);
        assert_eq!(&*f.typed::<f32>(), &[1.0, -2.5]);
        let mut raw = vec![0u8];
        raw.extend_from_slice(&3.5f32.to_le_bytes());
        raw.push(9);
        let b = Buf::from(Bytes::from(raw).slice(1..));
        assert_eq!(&*b.typed::<f32>(), &[3.5]);
        assert!(Buf::from(vec![]).typed::<i16>().is_empty());
    }
}
