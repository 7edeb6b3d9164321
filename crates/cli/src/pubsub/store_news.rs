//! Words about stores, for the users of `lanecast pub --persistent` and `lanecast sub --durable`.

use crate::output::{print_error, warn};
use lanecast::persistence::{STORE_VERSION, StoreRefusal};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Time that stores have to answer before the user is told that they do not.
const GRACE: Duration = Duration::from_secs(1);

/// The stores that do not answer, and what an end waits for.
#[derive(Debug)]
pub(super) struct StoreNews {
    is_quiet: bool,
    silent: BTreeSet<String>,
    /// The words about a wait, which are told if it lasts, and when it began.
    waiting: Option<(String, Instant)>,
}

impl StoreNews {
    pub(super) const fn new(is_quiet: bool) -> Self {
        Self { is_quiet, silent: BTreeSet::new(), waiting: None }
    }

    pub(super) const fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Notes a wait; the words are told if it lasts. `silent`: all stores that do not answer.
    pub(super) fn wait(&mut self, silent: Vec<String>, words: String) {
        self.silent = silent.into_iter().collect();
        let since = self.waiting.take().map_or_else(Instant::now, |(_, since)| since);
        self.waiting = Some((words, since));
    }

    /// The wait is over.
    pub(super) fn go_on(&mut self) {
        // A store that was late is no longer silent; one that is will be told of as lost.
        self.silent.clear();
        self.waiting = None;
    }

    /// Tells what is waited for, once it was waited for so long.
    pub(super) fn tell_wait(&mut self) {
        if let Some((words, since)) = &mut self.waiting
            && !words.is_empty()
            && since.elapsed() >= GRACE
        {
            warn(&std::mem::take(words));
        }
    }

    /// A store no longer answers.
    pub(super) fn lost(&mut self, store: String) {
        warn(&format!("store {store} does not answer"));
        self.silent.insert(store);
    }

    /// A store answers again.
    pub(super) fn back(&mut self, store: &str) {
        self.silent.remove(store);
        self.note(&format!("store {store} answers again"));
    }

    pub(super) fn other_version(store: &str, version: u8) {
        warn(&format!(
            "store {store} speaks version {version} of the stores' protocol, this program version \
             {STORE_VERSION}: give both the same version of lanecast"
        ));
    }

    /// A store does not keep a publisher's stream.
    pub(super) fn refused(store: &str, refusal: StoreRefusal) {
        warn(&format!("store {store} does not keep the messages: {refusal}"));
    }

    /// A store does not register a subscriber in a stream.
    pub(super) fn not_registered(store: &str, stream: &str, refusal: StoreRefusal) {
        warn(&format!(
            "store {store} does not register this subscriber with {stream}, and keeps nothing for \
             it: {refusal}"
        ));
    }

    /// A store cannot tell a subscriber where a stream stands.
    pub(super) fn unsettled(store: &str, stream: &str) {
        warn(&format!(
            "store {store} has records of {stream} that are not on its disk, or looks up a time: \
             the stream waits for it if the other stores are too few; see whether its disk is full"
        ));
    }

    /// Publishers beyond those that a subscriber takes.
    pub(super) fn too_many_streams(count: u32, most: u32) {
        warn(&format!(
            "the topic has {most} publishers and {count} more: what those send is printed as it \
             comes, and not fetched; divide the publishers among several topics"
        ));
    }

    /// Words for the end of a sentence about messages that get no further: the stores that do not
    /// answer, or nothing.
    pub(super) fn no_answer(&self) -> String {
        if self.silent.is_empty() {
            return String::new();
        }
        let silent: Vec<&str> = self.silent.iter().map(String::as_str).collect();
        format!(": no answer from {}", silent.join(", "))
    }

    /// Tells what is no fault, unless the user wants quiet.
    pub(super) fn note(&self, text: &str) {
        if !self.is_quiet {
            print_error(text);
        }
    }
}

/// Words about stores that do not answer.
pub(super) fn silent_words(silent: &[String]) -> String {
    format!(
        "waiting for stores, no answer from {}: start them by lanecast store NAME, or name others \
         with --stores",
        silent.join(", ")
    )
}
