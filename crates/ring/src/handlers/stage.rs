//! A stage: the handlers that run side by side.

use super::event_source::EventSource;
use super::handler::{Handler, Named};
use super::handler_thread::{HandlerThread, run_handler};
use core::fmt;

/// Body of a handler's thread; returns the event source at its end.
type Work<T> = Box<dyn FnOnce(HandlerThread<T>) -> Box<dyn EventSource<T>> + Send>;

/// A handler before the start of its thread.
pub struct HandlerSlot<T> {
    pub(super) name: Option<String>,
    pub(super) work: Work<T>,
}

impl<T: 'static> HandlerSlot<T> {
    fn new(name: Option<String>, handler: impl Handler<T> + 'static) -> Self {
        Self { name, work: Box::new(move |thread| run_handler(thread, handler)) }
    }
}

impl<T> fmt::Debug for HandlerSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerSlot").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Handlers that run side by side: one, a tuple of up to eight, or a vector; each may be
/// [`named`](super::handler::named).
///
/// `Kind` distinguishes these; the compiler infers it.
pub trait Stage<T, Kind> {
    /// The handlers.
    fn slots(self) -> Vec<HandlerSlot<T>>;
}

/// Marks a single handler.
#[derive(Debug)]
pub enum Single {}
/// Marks a single handler with a name.
#[derive(Debug)]
pub enum SingleNamed {}
/// Marks several handlers.
#[derive(Debug)]
pub struct Several<Kinds>(core::marker::PhantomData<Kinds>);

impl<T: 'static, H: Handler<T> + 'static> Stage<T, Single> for H {
    fn slots(self) -> Vec<HandlerSlot<T>> {
        vec![HandlerSlot::new(None, self)]
    }
}

impl<T: 'static, H: Handler<T> + 'static> Stage<T, SingleNamed> for Named<H> {
    fn slots(self) -> Vec<HandlerSlot<T>> {
        vec![HandlerSlot::new(Some(self.name), self.handler)]
    }
}

impl<T, K, S: Stage<T, K>> Stage<T, Several<K>> for Vec<S> {
    fn slots(self) -> Vec<HandlerSlot<T>> {
        self.into_iter().flat_map(S::slots).collect()
    }
}

/// Handlers in a tuple.
macro_rules! tuple {
    ($($stage:ident $kind:ident),+) => {
        impl<T, $($kind, $stage: Stage<T, $kind>),+> Stage<T, Several<($($kind,)+)>>
            for ($($stage,)+)
        {
            #[allow(non_snake_case, reason = "each field is called after its type")]
            fn slots(self) -> Vec<HandlerSlot<T>> {
                let ($($stage,)+) = self;
                let mut slots = Vec::new();
                $(slots.extend($stage.slots());)+
                slots
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
