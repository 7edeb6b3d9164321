//! A listening socket that pauses when the system cannot accept.
//!
//! Owned by the thread that accepts: of a publisher over TCP, the resolver daemon, or a member of a
//! group. Without a free descriptor a connection stays queued and the socket readable: a thread
//! that waited for it would never sleep.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Pause of accepts after the system ran out of descriptors, or of memory.
const PAUSE_NS: u64 = 100_000_000;

/// A listening socket, and the end of its pause. Times are nanoseconds of any clock that never goes
/// back.
///
/// ```
/// use lanecast_os::{PausingListener, tcp};
///
/// let mut listener = PausingListener::new(tcp::listen(([127, 0, 0, 1], 0).into(), 8)?);
/// assert!(listener.accept(0).is_none(), "no connection waits");
/// assert!(listener.waited_for().is_some());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct PausingListener {
    listener: Arc<TcpListener>,
    paused_until: Option<u64>,
}

impl PausingListener {
    /// Accepts by `listener`, which does not block.
    pub fn new(listener: TcpListener) -> Self {
        Self { listener: Arc::new(listener), paused_until: None }
    }

    /// The next connection; `None` if none waits, or in a pause.
    pub fn accept(&mut self, now_ns: u64) -> Option<(TcpStream, SocketAddr)> {
        if self.paused_until.is_some_and(|until| now_ns < until) {
            return None;
        }
        self.paused_until = None;
        loop {
            match self.listener.accept() {
                Ok(accepted) => return Some(accepted),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                // The other side has gone while it waited: the next one is tried.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    self.paused_until = Some(now_ns.saturating_add(PAUSE_NS));
                    return None;
                }
            }
        }
    }

    /// The end of a pause: connections may wait by then.
    pub const fn paused_until(&self) -> Option<u64> {
        self.paused_until
    }

    /// The socket itself.
    pub const fn socket(&self) -> &Arc<TcpListener> {
        &self.listener
    }

    /// The socket to wait for; none in a pause, as a waiting connection would end every sleep.
    pub fn waited_for(&self) -> Option<&Arc<TcpListener>> {
        self.paused_until.is_none().then_some(&self.listener)
    }

    /// Accepts by another socket; a pause goes on.
    pub fn replace(&mut self, listener: TcpListener) {
        self.listener = Arc::new(listener);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    /// A listening socket without blocking, and its address.
    fn listening() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        listener.set_nonblocking(true).expect("it does not block");
        let address = listener.local_addr().expect("an address");
        (listener, address)
    }

    /// A socket by which the system accepts nothing, as without a free descriptor.
    fn refusing() -> TcpListener {
        let (_far, address) = listening();
        OwnedFd::from(TcpStream::connect(address).expect("it connects")).into()
    }

    #[test]
    fn accepts_pause_after_a_refusal() {
        let mut listener = PausingListener::new(refusing());
        assert!(listener.waited_for().is_some());
        assert!(listener.accept(5).is_none());
        let until = 5 + PAUSE_NS;
        assert_eq!(
            (listener.paused_until(), listener.waited_for().is_some()),
            (Some(until), false)
        );
        let (working, address) = listening();
        listener.replace(working);
        let _near = TcpStream::connect(address).expect("it connects");
        assert!(listener.accept(until - 1).is_none());
        assert!(listener.accept(until).is_some());
        assert!(listener.accept(until).is_none(), "none waits");
        assert_eq!((listener.paused_until(), listener.waited_for().is_some()), (None, true));
    }
}
