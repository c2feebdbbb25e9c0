//! Waiting for a control input and a media input at once, the control first.

use std::future::poll_fn;
use std::task::Poll;

use omni_flow::{Event, In, Item, Signal, Terminal};

/// What came first.
pub(crate) enum Either<T> {
    /// A control signal.
    Control(Signal),
    /// Anything of the media input.
    Media(Event<T>),
}

/// The next control signal or media event. A control input that ends well is forgotten; its state stays.
///
/// # Errors
/// The error that the control input ended with.
///
/// # Cancel safety
/// As [`In::next`].
pub(crate) async fn either<T: Item>(
    control: &mut Option<In<Signal>>,
    media: &mut In<T>,
) -> Result<Either<T>, omni_flow::NodeError> {
    poll_fn(|cx| {
        while let Some(c) = control {
            match c.poll_next(cx) {
                Poll::Ready(Event::Data(_, signal)) => return Poll::Ready(Ok(Either::Control(signal))),
                Poll::Ready(Event::Fence(_)) => {}
                Poll::Ready(Event::End(Terminal::End)) => *control = None,
                Poll::Ready(Event::End(Terminal::Error(e))) => return Poll::Ready(Err(e.into())),
                Poll::Pending => break,
            }
        }
        media.poll_next(cx).map(|e| Ok(Either::Media(e)))
    })
    .await
}
