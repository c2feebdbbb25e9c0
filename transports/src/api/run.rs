//! One session of a graph for one request: fed, read, and gone with it.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::StatusCode;
use omni_flow::{Clock, ErrorKind, Event, Graph, In, Input, OpenError, Payload, RunError, Session, Stamp, Terminal};
use tokio::task::JoinHandle;

use crate::door::HttpError;

/// What an output is to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Audio,
    Text,
    Events,
    /// Closed at once, so that nothing is made for it.
    Unwanted,
    /// Read so that it holds nobody up.
    Other,
}

/// Why a request has no whole answer.
#[derive(Clone, Debug)]
pub(super) enum Fail {
    /// A node failed, or the session was ended.
    Graph(RunError),
    /// Nothing came for so long.
    Late(Duration),
    /// The answer is empty.
    NoAudio,
    /// The graph changed its format, or made more than a request may hold.
    Odd(String),
    /// The request itself was what the graph could not do.
    Refused(HttpError),
    /// The reader did not read.
    Stalled,
    /// The reader is gone.
    Gone,
}

impl Fail {
    pub(super) fn http(&self) -> HttpError {
        match self {
            Self::Graph(e) => match e.kind() {
                ErrorKind::InputTimeout | ErrorKind::Idle => HttpError::new(StatusCode::GATEWAY_TIMEOUT, e.to_string()),
                ErrorKind::Aborted => {
                    HttpError::new(StatusCode::SERVICE_UNAVAILABLE, "the request was ended by the server")
                        .retry_after(1)
                }
                ErrorKind::Exhausted => HttpError::new(StatusCode::TOO_MANY_REQUESTS, e.to_string()).retry_after(1),
                _ => HttpError::internal(e.to_string()),
            },
            Self::Late(d) => {
                let message = format!("nothing came from the graph for {} s", d.as_secs_f64());
                HttpError::new(StatusCode::GATEWAY_TIMEOUT, message)
            }
            Self::NoAudio => HttpError::internal("the graph made no audio of this request"),
            Self::Odd(why) => HttpError::internal(why.clone()),
            Self::Refused(e) => e.clone(),
            Self::Stalled | Self::Gone => HttpError::internal("the client does not read"),
        }
    }
    /// The label of `omni_flow_requests_failed_total`.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Graph(e) if e.kind() == ErrorKind::InputTimeout => "timeout",
            Self::Graph(e) if e.kind() == ErrorKind::Exhausted => "overload",
            Self::Graph(e) if e.kind() == ErrorKind::Aborted => "client_abort",
            Self::Graph(_) | Self::NoAudio | Self::Odd(_) => "stage_error",
            Self::Late(_) | Self::Stalled => "timeout",
            Self::Refused(_) => "unknown",
            Self::Gone => "client_disconnect",
        }
    }
}

/// A whole clip would be longer than so many seconds.
pub(super) fn too_long(seconds: u32) -> Fail {
    Fail::Refused(HttpError::bad(format!(
        "the audio is longer than {seconds} s, the most of one clip; ask for a stream"
    )))
}

/// A session is refused.
pub(super) fn refused(e: &OpenError) -> HttpError {
    match e.code() {
        "resource_exhausted" => HttpError::new(StatusCode::TOO_MANY_REQUESTS, e.to_string()).retry_after(1),
        "closed" => HttpError::new(StatusCode::SERVICE_UNAVAILABLE, e.to_string()).retry_after(5),
        _ => HttpError::internal(e.to_string()),
    }
}

/// A task that ends with its owner.
pub(super) struct Owned(JoinHandle<()>);

impl Owned {
    pub(super) fn spawn(f: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(f))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A chunk of an output that plays a role; `None` when all of them have ended.
type Next = Result<Option<(Role, Stamp, Payload)>, Fail>;

/// A running session. Dropped, it is aborted at once.
pub(super) struct Run {
    session: Session,
    outs: Vec<(Role, In<Payload>)>,
    feeder: Option<Owned>,
    clock: Clock,
    wait: Duration,
}

impl Run {
    /// Opens a session of which outputs play these roles; all others are read and forgotten.
    ///
    /// # Errors
    /// 429 if all places are taken, 503 if the graph is being closed, 500 if a node cannot be made.
    pub(super) fn open(
        graph: &Graph,
        clock: &Clock,
        wait: Duration,
        roles: &[(Option<&String>, Role)],
    ) -> Result<Self, HttpError> {
        let mut session = graph.open().map_err(|e| refused(&e))?;
        let names: Vec<String> = session.outputs().map(str::to_owned).collect();
        let role = |n: &String| roles.iter().find(|(r, _)| *r == Some(n)).map_or(Role::Other, |(_, role)| *role);
        let mut outs = Vec::new();
        for name in &names {
            match (role(name), session.output(name)) {
                (Role::Unwanted, out) => drop(out),
                (role, Some(out)) => outs.push((role, out)),
                (_, None) => {}
            }
        }
        Ok(Self { session, outs, feeder: None, clock: clock.clone(), wait })
    }
    /// Takes an input.
    ///
    /// # Errors
    /// 500 if there is none, which the graph's ends rule out.
    pub(super) fn input(&mut self, name: &str) -> Result<Input, HttpError> {
        self.session.input(name).ok_or_else(|| HttpError::internal(format!("the graph has no input `{name}`")))
    }
    /// Ends the inputs that were not taken, and feeds the others beside the reading.
    pub(super) fn feed(&mut self, feeder: impl Future<Output = ()> + Send + 'static) {
        let rest: Vec<String> = self.session.inputs().map(str::to_owned).collect();
        rest.iter().filter_map(|n| self.session.input(n)).for_each(Input::end);
        self.feeder = Some(Owned::spawn(feeder));
    }
    /// The next chunk of an output that plays a role; `None` when all of them have ended.
    ///
    /// # Errors
    /// [`Fail::Graph`] and [`Fail::Late`]; final.
    ///
    /// # Cancel safety
    /// Dropped while waiting, nothing is lost.
    pub(super) async fn next(&mut self) -> Next {
        let (clock, wait) = (self.clock.clone(), self.wait);
        clock.timeout(wait, poll_fn(|cx| self.poll(cx))).await.unwrap_or(Err(Fail::Late(wait)))
    }
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let mut i = 0;
        while i < self.outs.len() {
            let (role, out) = &mut self.outs[i];
            match out.poll_next(cx) {
                Poll::Ready(Event::Data(_, _)) if *role == Role::Other => {}
                Poll::Ready(Event::Data(stamp, payload)) => {
                    let role = *role;
                    // The others have their turn before this one again.
                    self.outs[i..].rotate_left(1);
                    return Poll::Ready(Ok(Some((role, stamp, payload))));
                }
                Poll::Ready(Event::Fence(_)) => {}
                Poll::Ready(Event::End(Terminal::End)) => {
                    self.outs.remove(i);
                }
                Poll::Ready(Event::End(Terminal::Error(e))) => return Poll::Ready(Err(Fail::Graph(e))),
                Poll::Pending => i += 1,
            }
        }
        if self.outs.iter().all(|(role, _)| *role == Role::Other) { Poll::Ready(Ok(None)) } else { Poll::Pending }
    }
}
