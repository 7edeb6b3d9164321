//! The handlers that run side by side.

use super::feed::Feed;
use super::post::{Post, work};
use super::{Handler, Named};
use core::fmt;

/// What a handler's thread does, and gives back at its end.
type Work<T> = Box<dyn FnOnce(Post<T>) -> Box<dyn Feed<T>> + Send>;

/// A handler, ready for its thread.
pub struct Seat<T> {
    pub(super) name: Option<String>,
    pub(super) work: Work<T>,
}

impl<T: 'static> Seat<T> {
    fn new(name: Option<String>, handler: impl Handler<T> + 'static) -> Self {
        Self { name, work: Box::new(move |post| work(post, handler)) }
    }
}

impl<T> fmt::Debug for Seat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Handlers that run side by side: one, a tuple of up to eight, or a vector; each may be
/// [`named`](super::named).
///
/// `Kind` tells these apart; the compiler finds it out.
pub trait Stage<T, Kind> {
    /// The handlers.
    fn seats(self) -> Vec<Seat<T>>;
}

/// Marks a single handler.
#[derive(Debug)]
pub enum Alone {}
/// Marks a single handler with a name.
#[derive(Debug)]
pub enum AloneWithName {}
/// Marks several handlers.
#[derive(Debug)]
pub struct Several<Kinds>(core::marker::PhantomData<Kinds>);

impl<T: 'static, H: Handler<T> + 'static> Stage<T, Alone> for H {
    fn seats(self) -> Vec<Seat<T>> {
        vec![Seat::new(None, self)]
    }
}

impl<T: 'static, H: Handler<T> + 'static> Stage<T, AloneWithName> for Named<H> {
    fn seats(self) -> Vec<Seat<T>> {
        vec![Seat::new(Some(self.name), self.handler)]
    }
}

impl<T, K, S: Stage<T, K>> Stage<T, Several<K>> for Vec<S> {
    fn seats(self) -> Vec<Seat<T>> {
        self.into_iter().flat_map(S::seats).collect()
    }
}

/// Handlers in a tuple.
macro_rules! tuple {
    ($($stage:ident $kind:ident),+) => {
        impl<T, $($kind, $stage: Stage<T, $kind>),+> Stage<T, Several<($($kind,)+)>>
            for ($($stage,)+)
        {
            #[allow(non_snake_case, reason = "each field is called after its type")]
            fn seats(self) -> Vec<Seat<T>> {
                let ($($stage,)+) = self;
                let mut seats = Vec::new();
                $(seats.extend($stage.seats());)+
                seats
            }
        }
    };
}

tuple!(A Ka);
tuple!(A Ka, B Kb);
tuple!(A Ka, B Kb, C Kc);
tuple!(A Ka, B Kb, C Kc, D Kd);
tuple!(A Ka, B Kb, C Kc, D Kd, E Ke);
tuple!(A Ka, B Kb, C Kc, D Kd, E Ke, F Kf);
tuple!(A Ka, B Kb, C Kc, D Kd, E Ke, F Kf, G Kg);
tuple!(A Ka, B Kb, C Kc, D Kd, E Ke, F Kf, G Kg, H Kh);
