//! Report of the handlers' work.

/// Work of the handlers, stage by stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Work of each handler.
    pub handlers: Vec<Handled>,
}

/// Work of one handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handled {
    /// Name of the handler.
    pub handler: String,
    /// Messages handled without a panic.
    pub messages: u64,
}
