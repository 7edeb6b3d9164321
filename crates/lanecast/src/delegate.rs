//! Calls that go to the transport inside an enum with the variants `Shm`, `Net` and `Both`.

/// Evaluates `$call` with `$inner` bound to the content of the variant. A `match` rather than a
/// trait object, so that the path of a message is inlined.
macro_rules! delegate {
    ($value:expr, $kind:ident, $inner:ident => $call:expr) => {
        match $value {
            $kind::Shm($inner) => $call,
            $kind::Net($inner) => $call,
            $kind::Both($inner) => $call,
        }
    };
}

/// The same, with the result wrapped in the same variant of `$result`.
macro_rules! delegate_into {
    ($value:expr, $kind:ident => $result:ident, $inner:ident => $call:expr) => {
        match $value {
            $kind::Shm($inner) => $result::Shm($call),
            $kind::Net($inner) => $result::Net($call),
            $kind::Both($inner) => $result::Both($call),
        }
    };
}

pub(crate) use {delegate, delegate_into};
