//! Messages of a subscriber by session, checked on arrival.

use lanecast_conformance::Body;
use lanecast_transport::{ClaimError, CloseReason, Event, Publish};
use std::collections::BTreeMap;

/// The longest body behind a message's number.
pub(crate) const BODY_MAX: usize = 1_000;

/// One session's account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// The first message's number.
    pub(crate) first: Option<u64>,
    /// The number that must come next.
    pub(crate) next: u64,
    /// Whether a loss was told.
    pub(crate) lost: bool,
    /// Whether the place was taken away while a message was being read: a loss must follow.
    pub(crate) torn: bool,
    /// The reason of its end.
    pub(crate) left: Option<CloseReason>,
}

/// The accounts of all sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    accounts: BTreeMap<u64, Account>,
}

impl Ledger {
    pub(crate) fn account(&self, session: u64) -> Option<&Account> {
        self.accounts.get(&session)
    }

    /// Whether every session that joined has left.
    pub(crate) fn is_done(&self) -> bool {
        self.accounts.values().all(|account| account.left.is_some())
    }

    /// Enters an event; says what is wrong with it.
    pub(crate) fn enter(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Joined(stream) => {
                let session = stream.session.0;
                match self.accounts.insert(session, Account::default()) {
                    None => Ok(()),
                    Some(_) => Err(format!("{stream} joined twice")),
                }
            }
            Event::Message(message) => {
                let account = self.alive(message.stream().session.0)?;
                if account.torn {
                    return Err("a message after the place was taken away".into());
                }
                let number = number_of(message.bytes());
                if !message.is_intact() {
                    account.torn = true;
                    return Ok(());
                }
                let number = number?;
                let first = *account.first.get_or_insert(number);
                if number != first && number != account.next {
                    return Err(format!("message {number} instead of {}", account.next));
                }
                account.next = number + 1;
                Ok(())
            }
            Event::Lost(gap) => {
                self.alive(gap.stream.session.0)?.lost = true;
                Ok(())
            }
            Event::Left(stream, why) => {
                self.alive(stream.session.0)?.left = Some(*why);
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    }

    fn alive(&mut self, session: u64) -> Result<&mut Account, String> {
        let account = self.accounts.get_mut(&session).ok_or("an event before Joined")?;
        match account.left {
            None => Ok(account),
            Some(_) => Err("an event after Left".into()),
        }
    }
}

/// The message with this number.
pub(crate) fn message(number: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend(Body::new(number, BODY_MAX).bytes());
    bytes
}

/// Offers messages from `number` on until there is no room.
pub(crate) fn fill(publisher: &mut impl Publish, number: &mut u64) {
    loop {
        match publisher.try_send(&message(*number)) {
            Ok(()) => *number += 1,
            Err(ClaimError::BackPressured(_)) => return,
            Err(other) => panic!("{other}"),
        }
    }
}

/// The number of a message whose every byte is right.
fn number_of(bytes: &[u8]) -> Result<u64, String> {
    let number = bytes.first_chunk().ok_or("a message without a number")?;
    let number = u64::from_le_bytes(*number);
    if bytes == message(number) { Ok(number) } else { Err(format!("message {number} is garbled")) }
}
