//! Stores that know a stream and cannot tell its state: their last records are not on their disks.

use lanecast_wire::store::Run;

/// Questions in a row after which a store is not waited for, as one that does not answer.
const UNTOLD_MAX: u64 = 10;
/// The same for messages that it has told before, as of one that is away.
const BROUGHT_MAX: u64 = 100;

/// Answers of a store that name a stream without its state.
#[derive(Clone, Debug)]
struct Untold {
    /// The last question before that it has answered.
    before: u64,
    /// The first question that it has answered so, and the last one.
    since: u64,
    last: u64,
    /// Runs that may be on its disk.
    runs: Vec<Run>,
}

/// Stores that cannot tell the state of one stream, by their indexes.
#[derive(Clone, Debug)]
pub(super) struct UntoldStates(Vec<Option<Untold>>);

impl UntoldStates {
    /// No store names the stream without its state.
    pub(super) fn new(stores: usize) -> Self {
        Self(vec![None; stores])
    }

    /// A store names the stream in its answer to the question `token`, and `before` was the last
    /// one that it has answered. Returns whether it cannot tell the state for so long now that it
    /// is not waited for from here on.
    pub(super) fn on_untold(
        &mut self,
        store: usize,
        (token, before): (u64, u64),
        runs: &[Run],
    ) -> bool {
        let was_given_up = self.is_given_up(store);
        let new = || Untold { before, since: token, last: token, runs: Vec::new() };
        let it = self.0[store].get_or_insert_with(new);
        it.last = it.last.max(token);
        runs.clone_into(&mut it.runs);
        !was_given_up && self.is_given_up(store)
    }

    /// A store has told the state, or is not connected any more.
    pub(super) fn forget(&mut self, store: usize) {
        self.0[store] = None;
    }

    /// A store has answered the question `token`: a stream that this does not name, it has not.
    pub(super) fn on_answered(&mut self, store: usize, token: u64) {
        self.0[store].take_if(|it| it.last < token);
    }

    /// Whether a store names the stream without its state.
    pub(super) fn is_untold(&self, store: usize) -> bool {
        self.0[store].is_some()
    }

    /// Whether any store does.
    pub(super) fn is_any(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// Whether a store names the stream without its state, and has begun no run of it.
    pub(super) fn is_empty(&self, store: usize) -> bool {
        self.0[store].as_ref().is_some_and(|it| it.runs.is_empty())
    }

    /// The last question that a store has answered for this stream, if it has answered the question
    /// `token` for the topic.
    pub(super) fn answered(&self, store: usize, token: u64) -> u64 {
        self.0[store].as_ref().map_or(token, |it| it.before)
    }

    /// Whether a store is not waited for.
    pub(super) fn is_given_up(&self, store: usize) -> bool {
        self.lasts(store, UNTOLD_MAX)
    }

    /// Whether a store may still bring what it has told before.
    pub(super) fn may_bring(&self, store: usize) -> bool {
        !self.lasts(store, BROUGHT_MAX)
    }

    fn lasts(&self, store: usize, questions: u64) -> bool {
        self.0[store].as_ref().is_some_and(|it| it.last - it.since >= questions)
    }

    /// Runs that stores may have.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.0.iter().flatten().flat_map(|it| &it.runs)
    }
}
