//! Report of the handlers' work.

/// What the handlers have done, stage by stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Each handler's part.
    pub handlers: Vec<Handled>,
}

/// What one handler has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handled {
    /// Its name.
    pub handler: String,
    /// The messages that it has handled without a panic.
    pub messages: u64,
}
