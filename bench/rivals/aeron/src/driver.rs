//! Aeron's driver and client on the thread that calls [`Driver::work`]: two CPUs leave none for
//! threads of their own (`INVOKER`).

use std::cell::Cell;
use std::ffi::CString;
use std::fs;

use anyhow::{Context, Result};
use rusteron_media_driver::bindings::aeron_threading_mode_enum::AERON_THREADING_MODE_INVOKER;
use rusteron_media_driver::{Aeron, AeronContext, AeronDriver, AeronDriverContext};

/// Requested socket buffer of a receiver and of a sender; the kernel may grant less.
const BUFFER: usize = 4 << 20;
const GRANTED: [&str; 2] = ["/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max"];
const TERM: usize = 16 << 20;
/// Turns of the driver between two signs of life of the client.
const TURNS_PER_SIGN: u32 = 1024;

/// A driver with its only client. The client goes first.
#[derive(Debug)]
pub struct Driver {
    client: Aeron,
    driver: AeronDriver,
    turns: Cell<u32>,
}

impl Driver {
    /// Starts both; their files are in a folder of that name in shared memory.
    ///
    /// # Errors
    ///
    /// What Aeron reports.
    pub fn start(name: &str) -> Result<Self> {
        let folder = CString::new(format!("/dev/shm/{name}"))?;
        let driver = start_driver(&folder).context("cannot start Aeron's driver")?;
        let context = AeronContext::new()?;
        context.set_dir(&folder)?;
        context.set_pre_touch_mapped_memory(true)?;
        context.set_use_conductor_agent_invoker(true)?;
        let client = Aeron::new(&context).context("cannot reach Aeron's driver")?;
        client.start()?;
        Ok(Self { client, driver, turns: Cell::new(0) })
    }

    /// The client.
    pub fn client(&self) -> &Aeron {
        &self.client
    }

    /// Does what there is to do.
    ///
    /// # Errors
    ///
    /// What Aeron reports.
    #[inline]
    pub fn work(&self) -> Result<()> {
        self.driver.main_do_work()?;
        self.turns.set(self.turns.get().wrapping_add(1));
        if self.turns.get().is_multiple_of(TURNS_PER_SIGN) {
            self.work_for_client()?;
        }
        Ok(())
    }

    /// Runs the client's duties beside messages: few, once everything is connected.
    ///
    /// # Errors
    ///
    /// An error that Aeron reports.
    pub fn work_for_client(&self) -> Result<()> {
        self.client.main_do_work()?;
        Ok(())
    }
}

fn granted(path: &str) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn start_driver(folder: &CString) -> Result<AeronDriver> {
    let context = AeronDriverContext::new()?;
    context.set_dir(folder)?;
    context.set_dir_delete_on_start(true)?;
    context.set_dir_delete_on_shutdown(true)?;
    context.set_threading_mode(AERON_THREADING_MODE_INVOKER)?;
    context.set_term_buffer_sparse_file(false)?;
    context.set_term_buffer_length(TERM)?;
    let buffer = GRANTED.iter().filter_map(|path| granted(path)).fold(BUFFER, usize::min);
    context.set_socket_so_rcvbuf(buffer)?;
    context.set_socket_so_sndbuf(buffer)?;
    // What a receiver lets a sender send ahead.
    context.set_rcv_initial_window_length(buffer / 2)?;
    let driver = AeronDriver::new(&context)?;
    driver.start(true)?;
    Ok(driver)
}
