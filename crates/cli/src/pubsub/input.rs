//! Messages to publish: arguments, or those of a file or of standard input, read on a thread of
//! their own, so that a quiet input does not keep Ctrl-C waiting.

use super::frames::{Frames, Longest};
use anyhow::{Context as _, ensure};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Messages waiting between the reading thread and the publisher.
const QUEUE: usize = 4096;
/// Bytes of the input that are read at once.
const BUFFER: usize = 1 << 18;

/// A message, or the error that ends the input.
pub(super) type Input = io::Result<Vec<u8>>;

/// The messages of the command line.
pub(super) fn given(messages: &[String]) -> Receiver<Input> {
    let (sender, receiver) = sync_channel(messages.len());
    for message in messages {
        sender.send(Ok(message.clone().into_bytes())).expect("there is room for each");
    }
    receiver
}

/// The messages of a file, or of standard input for `-` and without a file.
pub(super) fn read(
    path: Option<&Path>,
    frames: Frames,
    longest: Longest,
) -> anyhow::Result<Receiver<Input>> {
    let input: Box<dyn Read + Send> = match path {
        Some(path) if path != Path::new("-") => {
            let opened = File::open(path);
            let opened = opened.with_context(|| format!("cannot open {}", path.display()))?;
            // A directory can be opened, and fails without its name at the first read.
            let is_directory = opened.metadata().is_ok_and(|it| it.is_dir());
            ensure!(!is_directory, "cannot read {}: it is a directory", path.display());
            Box::new(opened)
        }
        _ => Box::new(io::stdin()),
    };
    let mut input = BufReader::with_capacity(BUFFER, input);
    let (sender, receiver) = sync_channel(QUEUE);
    let read = move || read_all(frames, &mut input, longest, &sender);
    std::thread::Builder::new().name("input".into()).spawn(read)?;
    Ok(receiver)
}

fn read_all(
    frames: Frames,
    input: &mut impl BufRead,
    longest: Longest,
    sender: &SyncSender<Input>,
) {
    loop {
        let mut message = Vec::new();
        let item = match frames.read(input, longest, &mut message) {
            Ok(true) => Ok(message),
            Ok(false) => return,
            Err(error) => Err(error),
        };
        let failed = item.is_err();
        if sender.send(item).is_err() || failed {
            return;
        }
    }
}
