//! The publisher: one session, its topics, and its files.

use crate::claim::{ShmBatch, ShmClaim};
use crate::domain_state::DomainState;
use crate::error::{OpenError, TopicError};
use crate::gated_writer::GatedWriter;
use crate::local_registry::{LocalPublisher, join_subscribers};
use crate::local_session::LocalSession;
use crate::memory::Memory;
use crate::session::{self, NamedFiles, NewSession, UnnamedFiles};
use crate::settings::SlowConsumerPolicy;
use lanecast_base::sync::Ordering;
use lanecast_transport::{ClaimError, Completion, Publish, PublisherEvent, SessionId, TopicId};
use lanecast_wire::shm::TopicEntry;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// A publisher over shared memory: one session, one ring, one or several topics.
///
/// Opened by [`Domain`](crate::Domain)'s `publisher`. Dropping it closes the session.
pub struct Publisher {
    writer: GatedWriter,
    topics: Vec<String>,
    source: String,
    is_closed: bool,
    // Before `local`: as long as the files have names, the in-process registry has the session.
    files: Option<NamedFiles>,
    local: LocalPublisher,
}

impl Publisher {
    pub(crate) fn open(domain: &DomainState, topic: &str) -> Result<Self, OpenError> {
        let (settings, key) = (domain.settings(), domain.key().cloned());
        let NewSession { number, mut segment, files } = session::create(settings)?;
        if files.is_some() {
            segment.signal_through(Arc::clone(domain.pipes()));
        }
        let gate = files.as_ref().map(UnnamedFiles::gate);
        let evicts = settings.slow_consumer != SlowConsumerPolicy::Wait;
        let session = LocalSession::new(key, number, segment, evicts, gate, join_subscribers)
            .map_err(OpenError::system("keep the session's gate open"))?;
        // Before the files get names, so that this process's conductor finds the session to be
        // local.
        let local = LocalPublisher::register(session);
        let files = files.map(UnnamedFiles::publish).transpose()?;
        let source = match files {
            Some(_) => format!("shm:{number:016x}"),
            None => local.session().source(),
        };
        let mut publisher = Self {
            writer: GatedWriter::new(
                settings,
                local.session().clone(),
                Arc::clone(domain.wakeups()),
            ),
            topics: Vec::new(),
            source,
            is_closed: false,
            files,
            local,
        };
        // The first topic lets subscribers join: by now the session is complete.
        publisher.add_topic(topic)?;
        Ok(publisher)
    }

    /// Length of the ring in bytes.
    pub fn window_bytes(&self) -> u64 {
        self.writer.segment().window()
    }

    /// Claims that found no space.
    pub fn back_pressured(&self) -> u64 {
        self.writer.segment().ring().back_pressured.load(Ordering::Relaxed)
    }

    /// Whether the session has room for the topic `name`, or has it already.
    ///
    /// # Errors
    /// As [`add_topic`](Publish::add_topic), which accepts the name otherwise.
    pub fn can_add_topic(&self, name: &str) -> Result<(), TopicError> {
        if self.known_topic(name).is_none() {
            self.new_topic(name)?;
        }
        Ok(())
    }

    fn known_topic(&self, name: &str) -> Option<TopicId> {
        self.topics.iter().position(|topic| topic == name).map(|index| TopicId(index as u32))
    }

    /// The entry of a topic that is not known, if there is room for it.
    fn new_topic(&self, name: &str) -> Result<TopicEntry, TopicError> {
        let entry = TopicEntry::new(name).ok_or(TopicError::Name(name.len()))?;
        let most = self.writer.segment().limits().topics_max;
        if self.topics.len() >= most as usize {
            return Err(TopicError::Full(most));
        }
        Ok(entry)
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.writer.ring().close();
            if let Some(files) = &self.files {
                files.remove();
            }
        }
    }
}

impl Publish for Publisher {
    type Claim<'a> = ShmClaim<'a>;
    type Batch<'a> = ShmBatch<'a>;
    type TopicError = TopicError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, TopicError> {
        if let Some(known) = self.known_topic(name) {
            return Ok(known);
        }
        let entry = self.new_topic(name)?;
        let index = self.topics.len() as u32;
        self.writer.ring().memory_mut().write_topic(index, &entry);
        // PAIRS(topics): release here, acquire in `StreamTable::note_topics` and
        // `LocalSession::has_any_topic`: the entry is written before it is counted.
        self.writer.segment().ring().topics.store(index + 1, Ordering::Release);
        self.writer.count_topic();
        // A sleeping subscriber of several topics learns of this one.
        self.writer.ring().notify_readers();
        self.topics.push(name.to_owned());
        if let Some(files) = &self.files {
            files.touch();
        }
        join_subscribers(self.local.session());
        Ok(TopicId(index))
    }

    #[inline(always)]
    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<ShmClaim<'_>, ClaimError> {
        ShmClaim::try_new(&mut self.writer, topic, len)
    }

    #[inline(always)]
    fn claim_on(&mut self, topic: TopicId, len: usize) -> Result<ShmClaim<'_>, ClaimError> {
        ShmClaim::wait_new(&mut self.writer, topic, len)
    }

    fn try_send_uncounted(&mut self, bytes: &[u8]) -> Result<(), ClaimError> {
        let start = self.writer.ring().at();
        self.try_send(bytes)?;
        self.writer.note_uncounted(start);
        Ok(())
    }

    fn batch(&mut self) -> ShmBatch<'_> {
        ShmBatch::new(&mut self.writer)
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.writer.wakeup()
    }

    fn session(&self) -> SessionId {
        SessionId(self.local.session().number())
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn longest_message(&self) -> usize {
        self.writer.longest() as usize
    }

    fn subscribers(&self) -> usize {
        self.writer.subscribers()
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        self.writer.wait_until(timeout, |writer| writer.subscribers() >= count)
    }

    fn poll_events(&mut self, handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        self.writer.poll_events(handler)
    }

    fn drain(&mut self, timeout: Duration) -> Completion {
        self.writer.drain(timeout)
    }

    fn close(mut self, linger: Duration) -> Completion {
        let completion = self.writer.drain(linger);
        self.end();
        completion
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("source", &self.source)
            .field("topics", &self.topics)
            .finish_non_exhaustive()
    }
}
