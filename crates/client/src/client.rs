//! The client.

use crate::error::ClientError;
use crate::link::Link;
use lanecast_wire::command::{Ack, Acks, Command, Field, Header, HeaderWriter, Records};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// So many messages may be published before the first of them is acknowledged.
const AHEAD_MAX: u64 = 4_096;
/// Records that come together.
const BATCH: u64 = 100;
/// The most bytes of messages that are kept while waiting for an answer.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Who a client is, and what its messages are.
#[derive(Clone, Debug)]
pub struct Identity {
    /// A name that no other client has at the same time; empty for none.
    pub name: String,
    /// Whose client it is; empty for nobody's.
    pub user: String,
    /// `json`, `nvfix`, `fix`, `xml` or `binary`.
    pub message_type: String,
}

impl Default for Identity {
    /// Nobody, with messages in JSON.
    fn default() -> Self {
        Self { name: String::new(), user: String::new(), message_type: "json".to_owned() }
    }
}

/// A message, and what it came by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The topic.
    pub topic: String,
    /// The names of the subscriptions that it is for.
    pub subscriptions: Vec<String>,
    /// What its publisher wanted handed on unread.
    pub correlation: Option<String>,
    /// The message itself.
    pub body: Vec<u8>,
}

/// A record that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number within the topic.
    pub key: u64,
    /// The last message of it.
    pub body: Vec<u8>,
}

/// Which records are wanted, and in which order. The default is all of them.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// What they have to meet.
    pub filter: Option<String>,
    /// Fields, each with `DESC` behind it or not, separated by commas.
    pub order_by: Option<String>,
    /// How many at most.
    pub top: Option<u64>,
    /// How many are left out at first.
    pub skip: u64,
}

/// An answer to a command.
#[derive(Debug)]
struct Answer {
    id: u64,
    ack: Acks,
    /// Why it failed, if it did.
    reason: Option<String>,
}

/// What has come.
#[derive(Debug)]
enum Arrival {
    Message(Message),
    Records(Vec<Record>),
    Answer(Answer),
    Other,
}

/// A connection to a content server.
#[derive(Debug)]
pub struct Client {
    link: Link,
    /// The number of the last command.
    last: u64,
    /// How many published messages are not acknowledged yet.
    ahead: u64,
    /// Messages of which the server would have nothing, and why: the first of them.
    refused: Option<(u64, String)>,
    kept: VecDeque<Message>,
    kept_bytes: usize,
    /// What a question was answered with so far.
    records: Vec<Record>,
    /// How many records the last deletion removed.
    deleted: u64,
}

impl Client {
    /// Connects to a server, such as `127.0.0.1:9007`, and says who the client is.
    ///
    /// # Errors
    /// If it cannot be reached, or does not want this client.
    pub fn connect(server: &str, identity: &Identity) -> Result<Self, ClientError> {
        let mut client = Self {
            link: Link::connect(server)?,
            last: 0,
            ahead: 0,
            refused: None,
            kept: VecDeque::new(),
            kept_bytes: 0,
            records: Vec::new(),
            deleted: 0,
        };
        let Identity { name, user, message_type } = identity;
        client.ask("cannot log on", Command::Logon, Ack::Processed, |header| {
            header
                .text_if(Field::ClientName, given(name))
                .text_if(Field::UserId, given(user))
                .text(Field::Version, env!("CARGO_PKG_VERSION"))
                .text(Field::MessageType, message_type)
        })?;
        Ok(client)
    }

    /// Publishes a message. It is on its way when this returns; whether the server took it shows
    /// at a later call, of [`flush`](Self::flush) at the latest.
    ///
    /// # Errors
    /// If the connection has ended, or the server refused an earlier message.
    pub fn publish(&mut self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.last += 1;
        let id = self.last;
        self.link.put(|out| {
            let header = HeaderWriter::command(out, Command::Publish).text(Field::Topic, topic);
            let acks = Acks::NONE.with(Ack::Processed);
            header.number(Field::CommandId, id).acks(acks).end();
            out.extend_from_slice(body);
        })?;
        self.ahead += 1;
        if self.ahead >= AHEAD_MAX {
            self.catch_up(AHEAD_MAX / 2)?;
        }
        self.complain()
    }

    /// Waits until the server has done all that it was asked to.
    ///
    /// # Errors
    /// If it refused a message, does not answer, or is gone.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.ask("cannot flush", Command::Flush, Ack::Completed, |header| header)?;
        self.catch_up(0)?;
        self.complain()
    }

    /// Subscribes to a topic, or to all topics that hold a pattern such as `^orders`: to those of
    /// its messages that `filter` lets through, if there is one. Gives the subscription's name.
    ///
    /// # Errors
    /// If the server refuses: the filter may not be one, say.
    pub fn subscribe(&mut self, topic: &str, filter: Option<&str>) -> Result<String, ClientError> {
        let name = (self.last + 1).to_string();
        self.ask("cannot subscribe", Command::Subscribe, Ack::Processed, |header| {
            let header = header.text(Field::Topic, topic).text_if(Field::Filter, filter);
            header.text(Field::SubscriptionId, &name)
        })?;
        Ok(name)
    }

    /// Asks for the records that are kept of a topic.
    ///
    /// # Errors
    /// If nothing is kept of it, or the server refuses for another reason.
    pub fn query(&mut self, topic: &str, question: &Question) -> Result<Vec<Record>, ClientError> {
        self.records.clear();
        let Question { filter, order_by, top, skip } = question;
        let options = format!("skip_n={skip}");
        self.ask("cannot query", Command::Sow, Ack::Completed, |header| {
            let header = header.text(Field::Topic, topic).number(Field::BatchSize, BATCH);
            let header = header.text_if(Field::Filter, filter.as_deref());
            let header = header.text_if(Field::OrderBy, order_by.as_deref());
            let header = header.text(Field::Options, &options);
            top.iter().fold(header, |header, top| header.number(Field::TopN, *top))
        })?;
        Ok(std::mem::take(&mut self.records))
    }

    /// Removes the records that meet a filter; how many those were.
    ///
    /// # Errors
    /// If nothing is kept of the topic, or the server refuses for another reason.
    pub fn delete(&mut self, topic: &str, filter: &str) -> Result<u64, ClientError> {
        self.ask("cannot delete", Command::SowDelete, Ack::Stats, |header| {
            header.text(Field::Topic, topic).text(Field::Filter, filter)
        })?;
        Ok(self.deleted)
    }

    /// Ends a subscription. Messages that were on their way may still come.
    ///
    /// # Errors
    /// If the server does not answer, or is gone.
    pub fn unsubscribe(&mut self, name: &str) -> Result<(), ClientError> {
        self.ask("cannot unsubscribe", Command::Unsubscribe, Ack::Processed, |header| {
            header.text(Field::SubscriptionId, name)
        })
    }

    /// The next message; none if none comes within `timeout`. Without one it waits for ever.
    ///
    /// # Errors
    /// If the connection has ended, or the server refused an earlier message.
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<Option<Message>, ClientError> {
        if let Some(message) = self.kept.pop_front() {
            self.kept_bytes -= message.body.len();
            return Ok(Some(message));
        }
        self.link.send()?;
        let until = timeout.map(|timeout| Instant::now() + timeout);
        while let Some(arrival) = self.arrival(until)? {
            match arrival {
                Arrival::Message(message) => return Ok(Some(message)),
                Arrival::Answer(answer) => self.note(answer),
                Arrival::Records(_) | Arrival::Other => {}
            }
            self.complain()?;
        }
        Ok(None)
    }

    /// Sends a command and waits until it is answered by `ack`.
    fn ask(
        &mut self,
        what: &str,
        command: Command,
        ack: Ack,
        fill: impl FnOnce(HeaderWriter<'_>) -> HeaderWriter<'_>,
    ) -> Result<(), ClientError> {
        self.last += 1;
        let id = self.last;
        self.link.put(|out| {
            let header = HeaderWriter::command(out, command).number(Field::CommandId, id);
            fill(header).acks(Acks::NONE.with(ack)).end();
        })?;
        self.link.send()?;
        let until = Instant::now() + ANSWER;
        while let Some(answer) = self.answer(until)? {
            if answer.id == id && answer.ack.has(ack) {
                let refused = |reason| ClientError::Refused { what: what.to_owned(), reason };
                return answer.reason.map_or(Ok(()), |reason| Err(refused(reason)));
            }
            self.note(answer);
        }
        Err(ClientError::NoAnswer { what: what.to_owned(), seconds: ANSWER.as_secs() })
    }

    /// Waits until no more than `left` published messages are not acknowledged.
    fn catch_up(&mut self, left: u64) -> Result<(), ClientError> {
        self.link.send()?;
        let until = Instant::now() + ANSWER;
        while self.ahead > left {
            let Some(answer) = self.answer(until)? else {
                let what = "cannot publish".to_owned();
                return Err(ClientError::NoAnswer { what, seconds: ANSWER.as_secs() });
            };
            self.note(answer);
        }
        Ok(())
    }

    /// A published message was taken, or was not.
    fn note(&mut self, answer: Answer) {
        self.ahead = self.ahead.saturating_sub(1);
        if let Some(reason) = answer.reason
            && self.refused.is_none()
        {
            self.refused = Some((answer.id, reason));
        }
    }

    fn complain(&mut self) -> Result<(), ClientError> {
        match self.refused.take() {
            None => Ok(()),
            Some((number, reason)) => {
                let what = format!("cannot publish (command {number})");
                Err(ClientError::Refused { what, reason })
            }
        }
    }

    /// The next answer; messages that come before it are kept.
    fn answer(&mut self, until: Instant) -> Result<Option<Answer>, ClientError> {
        while let Some(arrival) = self.arrival(Some(until))? {
            match arrival {
                Arrival::Answer(answer) => return Ok(Some(answer)),
                Arrival::Records(mut records) => self.records.append(&mut records),
                Arrival::Message(message) => {
                    self.kept_bytes += message.body.len();
                    self.kept.push_back(message);
                    if self.kept_bytes > KEPT_BYTES_MAX {
                        return Err(ClientError::Overrun(KEPT_BYTES_MAX));
                    }
                }
                Arrival::Other => {}
            }
        }
        Ok(None)
    }

    fn arrival(&mut self, until: Option<Instant>) -> Result<Option<Arrival>, ClientError> {
        let Some(payload) = self.link.next(until)? else { return Ok(None) };
        if payload.is_empty() {
            return Ok(Some(Arrival::Other));
        }
        let header = Header::parse(&payload)?;
        let text = |field| header.text(field).map(|text| text.into_owned());
        Ok(Some(match header.command()? {
            Command::Publish => Arrival::Message(Message {
                topic: text(Field::Topic).unwrap_or_default(),
                subscriptions: names(&text(Field::SubscriptionIds).unwrap_or_default()),
                correlation: text(Field::CorrelationId),
                body: header.body().to_vec(),
            }),
            Command::Ack => {
                let id = header.number(Field::CommandId)?.unwrap_or(0);
                let failed = header.text(Field::Status).as_deref() == Some("failure");
                let reason = text(Field::Reason).unwrap_or_else(|| "no reason".to_owned());
                let ack = header.acks()?;
                if let Some(deleted) = header.number(Field::RecordsDeleted)? {
                    self.deleted = deleted;
                }
                Arrival::Answer(Answer { id, ack, reason: failed.then_some(reason) })
            }
            Command::Sow => Arrival::Records(records(header.body())?),
            _ => Arrival::Other,
        }))
    }
}

fn records(body: &[u8]) -> Result<Vec<Record>, ClientError> {
    let records = Records::new(body).map(|record| {
        let (header, body) = record?;
        let key = header.number(Field::SowKey)?.unwrap_or(0);
        Ok(Record { key, body: body.to_vec() })
    });
    records.collect()
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn names(list: &str) -> Vec<String> {
    list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
