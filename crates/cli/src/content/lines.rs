//! Messages as lines of a file or of standard input.

use anyhow::Context;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Lines without their ends, the empty ones passed over.
pub(crate) struct Lines {
    input: BufReader<Box<dyn Read>>,
    name: String,
    /// The number of the last line, from 1.
    pub(crate) number: u64,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("name", &self.name).field("number", &self.number).finish()
    }
}

impl Lines {
    /// Opens the file `path`, or standard input for `-` and without a path.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let (input, name): (Box<dyn Read>, _) = match path {
            Some(path) if path != Path::new("-") => {
                let name = path.display().to_string();
                (Box::new(File::open(path).with_context(|| format!("cannot read {name}"))?), name)
            }
            _ => (Box::new(io::stdin()), "the input".to_owned()),
        };
        Ok(Self { input: BufReader::new(input), name, number: 0 })
    }

    /// The next line that is not empty.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        loop {
            let mut line = Vec::new();
            let read = self.input.read_until(b'\n', &mut line);
            if read.with_context(|| format!("cannot read {}", self.name))? == 0 {
                return Ok(None);
            }
            self.number += 1;
            for end in [b'\n', b'\r'] {
                if line.last() == Some(&end) {
                    line.pop();
                }
            }
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// Whether the next line may have to be waited for.
    pub(crate) fn may_wait(&self) -> bool {
        self.input.buffer().is_empty()
    }
}
