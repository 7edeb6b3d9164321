//! A capture file that is written: pcap with times in nanoseconds.

use super::packet::Link;
use anyhow::Context;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Times are in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Major and minor version of the format, as one number.
const VERSION: u32 = 0x0004_0002;
const PACKET_MAX: u32 = 1 << 18;

/// The file.
#[derive(Debug)]
pub(super) struct Recording {
    file: BufWriter<File>,
    /// First header of all packets; `None` before the first one.
    link: Option<Link>,
}

impl Recording {
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file: BufWriter::new(file), link: None })
    }

    /// Writes a packet. A file has packets of one link only: others are left out.
    pub(super) fn write(&mut self, at: u64, link: Link, bytes: &[u8]) -> anyhow::Result<()> {
        if self.link.is_none() {
            self.link = Some(link);
            self.words(&[MAGIC, VERSION, 0, 0, PACKET_MAX, link.number()])?;
        }
        if self.link != Some(link) {
            return Ok(());
        }
        let (seconds, part) = (at / 1_000_000_000, at % 1_000_000_000);
        let length = u32::try_from(bytes.len())?;
        self.words(&[u32::try_from(seconds)?, u32::try_from(part)?, length, length])?;
        self.file.write_all(bytes)?;
        Ok(())
    }

    fn words(&mut self, words: &[u32]) -> std::io::Result<()> {
        words.iter().try_for_each(|word| self.file.write_all(&word.to_le_bytes()))
    }

    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.file.flush()?;
        Ok(())
    }
}
