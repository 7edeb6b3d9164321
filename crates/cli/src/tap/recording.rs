//! A capture file that is written: pcap with times in nanoseconds.

use super::packet::Link;
use crate::usage::refuse;
use anyhow::Context;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Times are in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Major and minor version of the format, as one number.
const VERSION: u32 = 0x0004_0002;
const PACKET_MAX: u32 = 1 << 18;

/// The file. It keeps what it holds until the first packet, or until the input has ended well.
#[derive(Debug)]
pub(super) struct Recording {
    file: BufWriter<File>,
    /// First header of all packets; `None` before the first one.
    link: Option<Link>,
}

impl Recording {
    /// Opens the file at `path`, which must not be the one at `input`.
    pub(super) fn open(path: &Path, input: Option<&Path>) -> anyhow::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        let place = |metadata: Metadata| (metadata.dev(), metadata.ino());
        if let Some(Ok(input)) = input.map(std::fs::metadata)
            && place(input) == place(file.metadata()?)
        {
            refuse!("{} is what is read: name another file to write", path.display());
        }
        Ok(Self { file: BufWriter::new(file), link: None })
    }

    /// Writes a packet. A file has packets of one link only: others are left out.
    pub(super) fn write(&mut self, at: u64, link: Link, bytes: &[u8]) -> anyhow::Result<()> {
        if self.link.is_none() {
            self.clear()?;
            self.link = Some(link);
            self.words(&[MAGIC, VERSION, 0, 0, PACKET_MAX, link.number()])?;
        }
        if self.link != Some(link) {
            return Ok(());
        }
        // The format ends in 2106, and a damaged capture may have any times.
        let at = at.min(u64::from(u32::MAX) * 1_000_000_000);
        let (seconds, part) = (at / 1_000_000_000, at % 1_000_000_000);
        let length = u32::try_from(bytes.len())?;
        self.words(&[u32::try_from(seconds)?, u32::try_from(part)?, length, length])?;
        self.file.write_all(bytes)?;
        Ok(())
    }

    /// Removes the older content of a regular file.
    fn clear(&self) -> std::io::Result<()> {
        let file = self.file.get_ref();
        if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
    }

    /// Ends the file of an input that has ended well.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        if self.link.is_none() {
            self.clear()?;
        }
        self.flush()
    }

    fn words(&mut self, words: &[u32]) -> std::io::Result<()> {
        words.iter().try_for_each(|word| self.file.write_all(&word.to_le_bytes()))
    }

    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.file.flush()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_the_format_are_its_last() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("capture");
        let mut recording = Recording::open(&path, None).expect("a file");
        for at in [1_500_000_000, u64::MAX] {
            recording.write(at, Link::Ip, b"four").expect("it is written");
        }
        recording.finish().expect("it is written");
        let bytes = std::fs::read(&path).expect("the file");
        let (_, packets) = bytes.split_at(24);
        let seconds = packets.chunks_exact(20).map(|packet| packet[..8].to_vec());
        let known = [[1_u32, 500_000_000], [u32::MAX, 0]];
        let known =
            known.map(|[seconds, part]| [seconds.to_le_bytes(), part.to_le_bytes()].concat());
        assert_eq!(seconds.collect::<Vec<_>>(), known);
    }
}
