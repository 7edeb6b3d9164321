//! Who a client is, and what it may do: where users are known.

use crate::Nanos;
use crate::auth::password_queue::PasswordQueue;
use crate::auth::permissions::{Permission, Permissions};
use crate::auth::users::Users;
use crate::client::ClientId;
use crate::command::error::CommandError;
use crate::engine::{DisconnectReason, Engine, Now};
use crate::net::source::Source;
use crate::queue::slow_consumers::is_told;
use crate::topic::entry::is_pattern;
use foldhash::fast::RandomState;
use lanecast_wire::command::{Acks, Command, Field, Header, Options as Wishes};
use std::hash::BuildHasher;
use std::sync::Arc;

/// So many commands before a good logon, and the connection ends.
const TRIES: u8 = 3;

/// Whom a hub lets in. Without users it is everybody.
#[derive(Debug, Default)]
pub(crate) struct Authenticator {
    pub(crate) users: Option<Users>,
    /// Passwords that are to be checked.
    pub(crate) logons: PasswordQueue,
    serial: u64,
    /// What stands for users' names, however long they are.
    numbers: RandomState,
}

/// What a client knows of its guard.
#[derive(Debug, Default)]
pub(crate) struct AuthState {
    /// What it may do, once it is known.
    pub(crate) rights: Option<Arc<Permissions>>,
    /// Its logon, while its password is checked.
    logon: Option<(u64, Box<[u8]>)>,
    tries: u8,
}

/// A password that is to be checked.
#[derive(Debug)]
pub(crate) struct PasswordCheck {
    pub(crate) client: ClientId,
    pub(crate) serial: u64,
    /// Where it comes from, and what stands for the user's name.
    pub(crate) source: Source,
    pub(crate) user: u64,
    pub(crate) hash: Arc<str>,
    pub(crate) password: Vec<u8>,
    /// Whether there is such a user at all.
    pub(crate) is_known: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PasswordResult {
    pub(crate) client: ClientId,
    pub(crate) serial: u64,
    pub(crate) source: Source,
    pub(crate) user: u64,
    pub(crate) is_right: bool,
}

impl Engine {
    /// Whether a client's commands are done: it is known, or nobody has to be. Otherwise begins to
    /// find out who it is, or refuses.
    pub(crate) fn admits(&mut self, id: ClientId, header: &Header<'_>, payload: &[u8]) -> bool {
        let Some(users) = &self.guard.users else { return true };
        let Some(Some(client)) = self.clients.get_mut(id.0 as usize) else { return false };
        if client.pass.rights.is_some() {
            return true;
        }
        if header.command() != Ok(Command::Logon) {
            self.turn_down(id, header, &CommandError::NotLoggedOn);
            return false;
        }
        let name = header.text(Field::UserId).unwrap_or_default();
        let password = header.text(Field::Password).unwrap_or_default();
        let (user, hash) = users.find(&name);
        let (is_known, password) = (user.is_some(), password.as_bytes().to_vec());
        self.guard.serial += 1;
        let (serial, source) = (self.guard.serial, client.source);
        let user = self.guard.numbers.hash_one(&*name);
        client.pass.logon = Some((serial, payload.into()));
        let client = id;
        self.guard.logons.push(PasswordCheck {
            client,
            serial,
            source,
            user,
            hash,
            password,
            is_known,
        });
        false
    }

    fn turn_down(&mut self, id: ClientId, header: &Header<'_>, why: &CommandError) {
        self.counters.refused += 1;
        self.refuse(id, header, header.acks().unwrap_or(Acks::NONE), why);
        let Some(client) = self.client(id) else { return };
        client.pass.tries += 1;
        if client.pass.tries >= TRIES {
            self.depart(id, DisconnectReason::Uninvited);
        }
    }

    /// A password that is to be checked; see [`proved`](Self::proved).
    pub(crate) fn next_proof(&mut self, now: Nanos) -> Option<PasswordCheck> {
        self.guard.logons.next(now)
    }

    /// Whether a client's commands have to wait, as its password is being checked.
    pub(crate) fn is_proving(&self, id: ClientId) -> bool {
        let client = self.clients.get(id.0 as usize).and_then(Option::as_ref);
        client.is_some_and(|client| client.pass.logon.is_some())
    }

    /// Whether a client is known, or does not have to be.
    pub(crate) fn is_admitted(&self, id: ClientId) -> bool {
        let client = self.clients.get(id.0 as usize).and_then(Option::as_ref);
        self.guard.users.is_none() || client.is_some_and(|client| client.pass.rights.is_some())
    }

    /// Goes on with a logon whose password has been checked.
    pub(crate) fn proved(&mut self, moment: Now, verdict: PasswordResult) {
        let PasswordResult { client: id, serial, source, user: number, is_right } = verdict;
        // Also of one who did not wait to hear it.
        match is_right {
            true => self.guard.logons.succeeded(source, number),
            false => self.note_wrong(moment.now, source, number),
        }
        let Some(Some(client)) = self.clients.get_mut(id.0 as usize) else { return };
        // It may be somebody else by now.
        let Some((_, payload)) = client.pass.logon.take_if(|(its, _)| *its == serial) else {
            return;
        };
        let Ok(header) = Header::parse(&payload) else { return };
        let name = header.text(Field::UserId).unwrap_or_default();
        let user = self.guard.users.as_ref().and_then(|users| users.find(&name).0);
        match user.filter(|_| is_right) {
            Some(user) => {
                client.pass.rights = Some(Arc::clone(&user.rights));
                self.receive(moment, id, &payload);
                // Refused for another reason, it may be tried again: with a password again.
                if let Some(client) = self.client(id).filter(|client| !client.has_logged_on) {
                    client.pass.rights = None;
                }
            }
            None => self.turn_down(id, &header, &CommandError::Credentials),
        }
    }

    /// A user or a password was wrong.
    fn note_wrong(&mut self, now: Nanos, source: Source, user: u64) {
        self.counters.wrong_logons += 1;
        let count = self.guard.logons.failed(source, user, now);
        if is_told(count) {
            self.say(format!(
                "logons from {source} with a wrong user or password: {count} of late"
            ));
        }
    }

    fn rights(&self, id: ClientId) -> Option<&Permissions> {
        self.clients.get(id.0 as usize)?.as_ref()?.pass.rights.as_deref()
    }

    /// Whether a client may see some messages only.
    pub(crate) fn is_confined(&self, id: ClientId) -> bool {
        self.rights(id).is_some_and(|rights| rights.filter.is_some())
    }

    /// Whether a client may do that with a topic.
    pub(crate) fn may(&self, id: ClientId, act: Permission, topic: &str) -> bool {
        self.guard.users.is_none() || self.rights(id).is_some_and(|its| its.has(act, topic))
    }

    /// The text of a filter, narrowed to what a client may see.
    pub(crate) fn narrowed(&self, id: ClientId, text: &str) -> Option<String> {
        self.rights(id).and_then(|rights| {
            rights.filter.as_ref()?;
            rights.narrow(Some(text).filter(|text| !text.trim().is_empty()))
        })
    }

    /// Refuses what a client may not do. Of a subscription to several topics each is looked at by
    /// itself.
    pub(crate) fn entitle(&self, id: ClientId, header: &Header<'_>) -> Result<(), CommandError> {
        if self.guard.users.is_none() {
            return Ok(());
        }
        let acts: &[Permission] = match header.command()? {
            Command::Publish | Command::DeltaPublish => &[Permission::Publish],
            Command::Subscribe | Command::DeltaSubscribe => &[Permission::Subscribe],
            Command::Sow => &[Permission::Query],
            Command::SowAndSubscribe | Command::SowAndDeltaSubscribe => {
                &[Permission::Query, Permission::Subscribe]
            }
            Command::SowDelete => &[Permission::Delete],
            _ => return Ok(()),
        };
        let topic = header.text(Field::Topic).unwrap_or_default();
        let list = header.text(Field::Options).unwrap_or_default();
        let wishes = Wishes::parse(&list)?;
        let by_pattern = is_pattern(&topic) && !wishes.has("non_regex_topic");
        if !(by_pattern && acts == [Permission::Subscribe])
            && let Some(act) = acts.iter().find(|act| !self.may(id, **act, &topic))
        {
            return Err(CommandError::NotEntitled(act.name(), topic.into_owned()));
        }
        if self.is_confined(id) {
            // The record might be one that it does not see, and come into its sight by this.
            if header.command()? == Command::DeltaPublish {
                return Err(CommandError::Confined("to change fields of a record"));
            }
            if wishes.has("oof") || header.flag(Field::SendOof)? {
                return Err(CommandError::Confined("to be told what leaves the filter"));
            }
            if acts == [Permission::Delete] && header.text(Field::Filter).is_none() {
                return Err(CommandError::Confined("to delete but by a filter"));
            }
        }
        Ok(())
    }
}
