//! Commands on the wire: parsed once into a typed [`Request`](request::Request), answered with
//! acknowledgements. The engine executes them.

pub(crate) mod acknowledgement;
pub(crate) mod error;
pub(crate) mod request;
