//! Voice activity of one stream: the state and the 64 samples of left context that the model wants.

use super::framer::WINDOW;
use super::{Run, SileroError};

/// Samples of the previous window in front of each window.
pub const CONTEXT: usize = 64;
/// Numbers of recurrent state: [2, 1, 128].
pub const STATE: usize = 256;

/// Scores windows of one stream, in order.
pub trait VoiceActivity: Send {
    /// Probability, 0 to 1, that the window has speech. 16 kHz mono samples in -1..1.
    ///
    /// # Errors
    /// The model failed; the stream's state is as before.
    fn probability(&mut self, window: &[f32; WINDOW]) -> Result<f32, SileroError>;

    /// Back to the start of a stream.
    fn reset(&mut self);
}

/// One stream on a shared model. State and context belong to it alone; they are zero at its start and after a reset.
#[derive(Debug, Clone)]
pub struct SileroStream<M> {
    model: M,
    context: [f32; CONTEXT],
    state: Vec<f32>,
}

impl<M: Run> SileroStream<M> {
    /// A stream at its start.
    pub fn new(model: M) -> Self {
        Self { model, context: [0.; CONTEXT], state: vec![0.; STATE] }
    }
}

impl<M: Run> VoiceActivity for SileroStream<M> {
    fn probability(&mut self, window: &[f32; WINDOW]) -> Result<f32, SileroError> {
        let mut input = [0.; CONTEXT + WINDOW];
        input[..CONTEXT].copy_from_slice(&self.context);
        // One bad sample would stay in the recurrent state for good.
        let clean = window.iter().map(|v| if v.is_finite() { v.clamp(-1., 1.) } else { 0. });
        input[CONTEXT..].iter_mut().zip(clean).for_each(|(i, w)| *i = w);
        let (probability, state) = self.model.run(&input, &self.state)?;
        self.context.copy_from_slice(&input[WINDOW..]);
        self.state = state;
        Ok(probability)
    }

    fn reset(&mut self) {
        self.context = [0.; CONTEXT];
        self.state.fill(0.);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Records its input; its state counts the windows.
    #[derive(Clone, Default)]
    struct Fake(Arc<Mutex<Vec<Vec<f32>>>>);

    impl Run for Fake {
        fn run(&self, input: &[f32; CONTEXT + WINDOW], state: &[f32]) -> Result<(f32, Vec<f32>), SileroError> {
            self.0.lock().unwrap().push(input.to_vec());
            Ok((state[0], state.iter().map(|s| s + 1.).collect()))
        }
    }

    fn ramp(call: usize) -> [f32; WINDOW] {
        std::array::from_fn(|i| (call * WINDOW + i) as f32 / 4096.)
    }

    #[test]
    fn each_window_has_its_left_context() {
        let fake = Fake::default();
        let mut stream = SileroStream::new(fake.clone());
        for round in 0..2 {
            for call in 0..3 {
                assert_eq!(stream.probability(&ramp(call)).unwrap(), call as f32, "state in round {round}");
            }
            stream.reset();
        }
        let seen = fake.0.lock().unwrap();
        for (n, input) in seen.iter().enumerate() {
            let call = n % 3;
            assert_eq!(input.len(), 576);
            for (i, &v) in input.iter().enumerate() {
                let index = (call * WINDOW + i) as i64 - CONTEXT as i64;
                assert_eq!(v, index.max(0) as f32 / 4096., "call {n}, sample {i}");
            }
        }
    }

    #[test]
    fn streams_do_not_share_anything() {
        let fake = Fake::default();
        let (mut a, mut b) = (SileroStream::new(fake.clone()), SileroStream::new(fake.clone()));
        a.probability(&ramp(1)).unwrap();
        a.probability(&ramp(2)).unwrap();
        assert_eq!(b.probability(&ramp(1)).unwrap(), 0.);
        assert!(fake.0.lock().unwrap()[2][..CONTEXT].iter().all(|&v| v == 0.));
        assert_eq!(a.probability(&[f32::NAN; WINDOW]).unwrap(), 2.);
        assert!(fake.0.lock().unwrap()[3][CONTEXT..].iter().all(|&v| v == 0.));
    }
}
