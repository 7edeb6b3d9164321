//! `lanecast store deregister`: ends the registration of a receiver or a source.

use super::silent::{advise, tell_missing};
use super::which::WhichArgs;
use crate::output::{print, warn, wrong_arguments};
use crate::printable::printable;
use anyhow::{Context as _, bail, ensure};
use lanecast::StoreAdministrator;
use lanecast::persistence::{
    DeregisterOutcome, NoAnswer, ReceiverReport, Registration, StoreInspection,
    read_administration_key,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `store deregister`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A receiver without registration holds up no receiver-paced publisher, and \
    nothing is kept for it. A source without one has no messages and no receivers at the store any \
    more; its numbers stay, and a publisher that returns goes on with them.\n\
    A store permits it to all if it was started with --permit-deregistration, and otherwise to \
    programs that can read the key in its directory (--data): of the same user on the same host.\n\
    Example: lanecast store deregister --topic orders --receiver 99 --data /data/a a\n\
    Exit status: 0 no store has the registration any more; 1 a store did not answer or refused, or \
    an error; 2 wrong arguments."
)]
pub(crate) struct DeregisterArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// The topic
    #[arg(long, value_name = "TOPIC")]
    topic: String,

    /// The receiver; in all streams of the topic unless --source names one
    #[arg(long, value_name = "ID", required_unless_present = "source")]
    receiver: Option<u64>,

    /// The source; without --receiver its own registration ends
    #[arg(long, value_name = "ID")]
    source: Option<u64>,

    /// Directory of a store, to read its key; with several stores the name and = in front of it
    #[arg(long, value_name = "[STORE=]DIR")]
    data: Vec<String>,

    /// Give up the messages of a source
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(arguments: &DeregisterArgs) -> anyhow::Result<ExitCode> {
    let registration = match arguments.receiver {
        Some(receiver) => Registration::Receiver(receiver),
        None if arguments.yes => Registration::Source,
        None => {
            let text = "that gives up all messages of the source at these stores: repeat it with \
                        --yes, or name a --receiver";
            return Ok(wrong_arguments(text));
        }
    };
    let Some(context) = arguments.which.way.looking()? else { return Ok(ExitCode::FAILURE) };
    let stores = arguments.which.stores(&context)?;
    let keys = arguments.keys(&stores)?;
    let names: Vec<&str> = stores.iter().map(String::as_str).collect();
    let stop = crate::stop::flag()?;
    let mut administrator = context.store_administrator(&names)?;
    administrator.stop_when(stop.clone());
    let looks = administrator.inspect(arguments.which.time);
    ensure!(!stop(), "interrupted: no registration was ended");
    let sources = arguments.sources(&looks);
    if sources.is_empty() {
        tell_missing(&looks, context.config(), arguments.which.time);
        let text = format!("no store of {} has such a registration", names.join(", "));
        if looks.iter().any(|store| !store.is_complete) {
            bail!("{text}, and not all answered");
        }
        // A script that repeats the command finds its work done.
        print(&format!("{}\n", printable(&text)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (mut is_all_done, mut silent) = (true, BTreeSet::new());
    for source in sources {
        ensure!(!stop(), "interrupted: repeat the command, which ends what is left");
        let answers = arguments.end(&mut administrator, &keys, source, registration);
        is_all_done &= arguments.tell(&names, &answers, source, registration, stop())?;
        let unanswered = names.iter().zip(&answers);
        let unanswered = unanswered.filter(|(_, it)| matches!(it, Err(NoAnswer::TimedOut)));
        silent.extend(unanswered.map(|(name, _)| *name));
    }
    if !stop() {
        advise(&Vec::from_iter(silent), context.config(), arguments.which.time);
    }
    Ok(ExitCode::from(u8::from(!is_all_done)))
}

impl DeregisterArgs {
    /// The key of each store, 0 for none.
    fn keys(&self, stores: &[String]) -> anyhow::Result<Vec<u128>> {
        let mut keys = vec![0; stores.len()];
        for data in &self.data {
            let named = data.split_once('=');
            let (store, directory) = match (named, stores) {
                (Some((store, directory)), _) => {
                    (stores.iter().position(|it| it == store), PathBuf::from(directory))
                }
                (None, [_]) => (Some(0), PathBuf::from(data)),
                (None, _) => (None, PathBuf::new()),
            };
            let store = store.with_context(|| {
                format!("--data {data}: write the store's name, '=' and its directory")
            })?;
            keys[store] = read_administration_key(&directory)
                .with_context(|| format!("reading the store's key in {}", directory.display()))?;
        }
        Ok(keys)
    }

    /// Sources of the streams that have the registration at a store.
    fn sources(&self, stores: &[StoreInspection]) -> BTreeSet<u64> {
        let streams = stores.iter().flat_map(|store| &store.streams);
        let streams = streams.filter(|it| it.topic == self.topic);
        let streams = streams.filter(|it| self.source.is_none_or(|source| source == it.source));
        let has = |receivers: &[ReceiverReport]| {
            self.receiver.is_none_or(|id| receivers.iter().any(|it| it.receiver == id))
        };
        streams.filter(|it| has(&it.receivers)).map(|it| it.source).collect()
    }

    /// Ends the registration in one stream; returns the answers of the stores.
    fn end(
        &self,
        administrator: &mut StoreAdministrator,
        keys: &[u128],
        source: u64,
        registration: Registration,
    ) -> Vec<Result<DeregisterOutcome, NoAnswer>> {
        administrator.deregister(&self.topic, source, registration, keys, self.which.time)
    }

    /// Tells the answers for one stream; returns whether no store has the registration any more.
    fn tell(
        &self,
        names: &[&str],
        answers: &[Result<DeregisterOutcome, NoAnswer>],
        source: u64,
        registration: Registration,
        is_interrupted: bool,
    ) -> anyhow::Result<bool> {
        let subject = match registration {
            Registration::Receiver(receiver) => format!("receiver {receiver} of source {source}"),
            Registration::Source => format!("source {source}"),
        };
        let mut is_done = true;
        for (name, answer) in names.iter().zip(answers) {
            let Some(failure) = failure(*answer, is_interrupted) else { continue };
            is_done = false;
            warn(&format!("store {name} {failure}"));
        }
        if is_done {
            let topic = printable(&self.topic);
            print(&format!("{subject} on {topic} has no registration any more\n"))?;
        }
        Ok(is_done)
    }
}

/// Reason why a store may still have the registration, behind the store's name; `None` if it has
/// not. An interruption ends the wait for answers.
fn failure(answer: Result<DeregisterOutcome, NoAnswer>, is_interrupted: bool) -> Option<String> {
    match answer {
        Ok(DeregisterOutcome::Done | DeregisterOutcome::UnknownStream) => None,
        Ok(DeregisterOutcome::NotPermitted) => Some(
            "does not permit it: give its directory with --data, or start it with \
             --permit-deregistration"
                .to_owned(),
        ),
        Err(NoAnswer::TimedOut) if is_interrupted => Some(
            "was asked, and this command was interrupted before the answer: whether the \
             registration has ended is not known; repeat the command"
                .to_owned(),
        ),
        Err(none) => Some(none.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_wait_for_an_answer_is_not_blamed_on_the_store() {
        let words = |answer, is_interrupted| failure(answer, is_interrupted).unwrap_or_default();
        let interrupted = words(Err(NoAnswer::TimedOut), true);
        assert!(interrupted.contains("interrupted") && interrupted.contains("is not known"));
        assert!(!interrupted.contains("in time"), "{interrupted}");
        assert_eq!(words(Err(NoAnswer::TimedOut), false), "did not answer in time");
        // Answers that came in front of the interruption count.
        for is_interrupted in [false, true] {
            assert_eq!(failure(Ok(DeregisterOutcome::Done), is_interrupted), None);
            let refused = words(Ok(DeregisterOutcome::NotPermitted), is_interrupted);
            assert!(refused.contains("--permit-deregistration"), "{refused}");
            let other = words(Err(NoAnswer::OtherVersion(1)), is_interrupted);
            assert!(other.contains("version 1"), "{other}");
        }
    }
}
