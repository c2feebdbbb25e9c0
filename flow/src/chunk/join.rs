//! Several chunks as one: the whole of a segment where its parts are not wanted.

use std::sync::Arc;

use super::{Buf, Chunk, Payload, Pcm, Stamp, Tensor, Tokens};

/// The chunks of one segment as one chunk, if their payloads have a sum: text, tokens, audio of one format, tensors that
/// differ in their first size at most. It has the place of the first and the end of the last.
///
/// # Errors
/// The chunks, as they were: of other kinds, of several formats, or on a device.
pub(crate) fn join(chunks: Vec<Chunk>) -> Result<Chunk, Vec<Chunk>> {
    let Some((first, last)) = chunks.first().zip(chunks.last()) else { return Err(chunks) };
    let len = chunks.iter().fold(crate::MediaTime::ZERO, |sum, c| sum.saturating_add(c.stamp.len));
    let stamp = Stamp { len, last: last.stamp.last, over: last.stamp.over, ..first.stamp };
    let payload = match &first.payload {
        only if chunks.len() == 1 => Some(only.clone()),
        Payload::Text(_) => text(&chunks),
        Payload::Tokens(_) => tokens(&chunks),
        Payload::Audio(pcm) => audio(pcm, &chunks),
        Payload::Tensor(tensor) => tensors(tensor, &chunks),
        _ => None,
    };
    payload.map(|payload| Chunk { stamp, payload }).ok_or(chunks)
}

fn text(chunks: &[Chunk]) -> Option<Payload> {
    let mut all = String::new();
    for c in chunks {
        let Payload::Text(t) = &c.payload else { return None };
        all.push_str(t);
    }
    Some(Payload::Text(all.into()))
}

fn tokens(chunks: &[Chunk]) -> Option<Payload> {
    let mut all: Vec<u32> = Vec::new();
    for c in chunks {
        let Payload::Tokens(t) = &c.payload else { return None };
        all.extend_from_slice(&t.0);
    }
    Some(Payload::Tokens(Tokens(Arc::from(all))))
}

fn audio(first: &Pcm, chunks: &[Chunk]) -> Option<Payload> {
    let format = |p: &Pcm| (p.rate(), p.channels(), p.sample());
    let bytes = bytes(chunks, |p| match p {
        Payload::Audio(pcm) if format(pcm) == format(first) => Some(pcm.buf()),
        _ => None,
    })?;
    Pcm::new(first.rate(), first.channels(), first.sample(), bytes.into()).ok().map(Payload::Audio)
}

fn tensors(first: &Tensor, chunks: &[Chunk]) -> Option<Payload> {
    let inner = |t: &Tensor| (t.dtype, t.shape.get(1..).map(<[usize]>::to_vec));
    let mut rows = 0;
    let bytes = bytes(chunks, |p| match p {
        Payload::Tensor(t) if inner(t) == inner(first) => {
            rows += t.shape.first()?;
            Some(&t.buf)
        }
        _ => None,
    })?;
    let mut shape = first.shape.to_vec();
    *shape.first_mut()? = rows;
    Some(Payload::Tensor(Tensor { dtype: first.dtype, shape: shape.into(), buf: bytes.into() }))
}

/// What `part` finds in each payload, one after the other. `None` if it is not there, or not on the host.
fn bytes<'c>(chunks: &'c [Chunk], mut part: impl FnMut(&'c Payload) -> Option<&'c Buf>) -> Option<Vec<u8>> {
    let mut all = Vec::with_capacity(chunks.iter().map(|c| c.payload.bytes()).sum());
    for c in chunks {
        all.extend_from_slice(part(&c.payload)?.host()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MediaTime, Medium};

    fn chunks(payloads: Vec<Payload>) -> Vec<Chunk> {
        let (n, len) = (payloads.len() as i64, MediaTime::from_millis(10));
        let stamp =
            |i: i64| Stamp { pts: MediaTime::from_millis(50 + 10 * i), len, last: i + 1 == n, ..Stamp::default() };
        payloads.into_iter().zip(0..).map(|(payload, i)| Chunk { stamp: stamp(i), payload }).collect()
    }

    #[test]
    fn all_that_has_a_sum_is_joined() {
        let text = join(chunks(vec![Payload::Text("one ".into()), Payload::Text("two".into())])).unwrap();
        assert!(matches!(&text.payload, Payload::Text(t) if &**t == "one two"));
        let (pts, len) = (MediaTime::from_millis(50), MediaTime::from_millis(20));
        assert_eq!(text.stamp, Stamp { pts, len, last: true, ..Stamp::default() });

        let audio = [vec![0.5f32; 3], vec![], vec![-0.25; 2]].map(|s| Payload::Audio(Pcm::mono(24_000, s)));
        let Payload::Audio(pcm) = join(chunks(audio.to_vec())).unwrap().payload else { panic!("audio") };
        assert_eq!((pcm.rate(), &*pcm.f32()), (24_000, &[0.5, 0.5, 0.5, -0.25, -0.25][..]));

        let rows = [Tensor::f32([1, 2], vec![1.0, 2.0]), Tensor::f32([2, 2], vec![3.0, 4.0, 5.0, 6.0])];
        let Payload::Tensor(t) = join(chunks(rows.map(Payload::Tensor).to_vec())).unwrap().payload else {
            panic!("a tensor")
        };
        assert_eq!((&*t.shape, &*t.buf.typed::<f32>()), (&[3, 2][..], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..]));

        let ids = [vec![1, 2], vec![3]].map(|v| Payload::Tokens(Tokens(v.into())));
        let Payload::Tokens(t) = join(chunks(ids.to_vec())).unwrap().payload else { panic!("tokens") };
        assert_eq!(&*t.0, [1, 2, 3]);
    }
    #[test]
    fn what_has_no_sum_stays_as_it_is() {
        let several = [
            vec![Payload::Audio(Pcm::mono(24_000, vec![0.0])), Payload::Audio(Pcm::mono(16_000, vec![0.0]))],
            vec![Payload::Text("x".into()), Payload::Tokens(Tokens(vec![1].into()))],
            vec![
                Payload::Tensor(Tensor::f32([1, 2], vec![0.0; 2])),
                Payload::Tensor(Tensor::f32([1, 3], vec![0.0; 3])),
            ],
            vec![Payload::Tensor(Tensor::f32([], vec![0.0])), Payload::Tensor(Tensor::f32([], vec![0.0]))],
            vec![Payload::Custom(Arc::new(1)), Payload::Custom(Arc::new(2))],
        ];
        for payloads in several {
            let media: Vec<Medium> = payloads.iter().map(Payload::medium).collect();
            let back = join(chunks(payloads)).unwrap_err();
            assert_eq!(back.iter().map(|c| c.payload.medium()).collect::<Vec<_>>(), media);
        }
        let one = join(chunks(vec![Payload::Custom(Arc::new(1))])).unwrap();
        assert!(matches!(one.payload, Payload::Custom(_)), "one is whole already");
        assert!(join(Vec::new()).is_err());
    }
}
