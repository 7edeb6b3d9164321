//! The WebSocket protocol of one connection, over buffers in memory: the connection moves bytes
//! between them and the socket. Checks the origin of web pages during the handshake.

use crate::queue::unread_replies::UnreadReplies;
use lanecast_wire::command::{LENGTH_BYTES, frame_total, message_payload};
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tungstenite::handshake::{HandshakeError, MidHandshake};
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, FrameHeader};
use tungstenite::protocol::{Message, WebSocketConfig};
use tungstenite::{Error, ServerHandshake, http};

/// The most bytes of encoded messages at a time.
const ENCODED_MAX: usize = 256 << 10;
/// The most bytes of unread pongs; beyond it, the server does not read from the client.
const PONGS_MAX: usize = 64 << 10;
/// Read buffer of the library; it keeps as much for each connection.
const READ_BYTES: usize = 8 << 10;
/// The reply to a request that is not a WebSocket handshake.
const NOT_WEBSOCKET: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain\r\nContent-Length: 55\r\n\r\n\
    this is a lanecast server: WebSocket (RFC 6455) only.\r\n";
/// The reply to a page from a foreign origin.
const FORBIDDEN_ORIGIN: &str = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\
    Content-Type: text/plain\r\nContent-Length: 56\r\n\r\n\
    pages of this origin must be listed in listen.origins.\r\n";
/// The reply to a client that does not encrypt where TLS is required.
pub(crate) const TLS_REQUIRED: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain\r\nContent-Length: 46\r\n\r\n\
    this server speaks TLS alone: ask for wss://\r\n";

/// Why the server closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The server shuts down.
    Shutdown,
    /// The client broke a rule.
    Policy(&'static str),
    /// The client disconnected, or was already told.
    Ended,
}

/// Origins of web pages that may connect.
#[derive(Clone, Debug)]
pub(crate) struct Origins(pub(crate) Arc<[String]>);

/// The WebSocket state of a connection.
#[derive(Debug)]
pub(crate) struct WebSocket {
    /// `None` after an error.
    state: Option<State>,
    unsent: Unsent,
    /// An incomplete frame from the send queue.
    partial: Vec<u8>,
    /// Bytes received since the last complete message, and whether one was completed since
    /// [`take_partial`](Self::take_partial).
    partial_bytes: usize,
    has_completed: bool,
    /// Replies have the form of the client's last message: text or binary, with a length or not.
    is_text: bool,
    has_length: bool,
}

#[derive(Debug)]
enum State {
    Handshake(Box<MidHandshake<ServerHandshake<MemoryStream, Origins>>>),
    Open(Box<tungstenite::WebSocket<MemoryStream>>),
}

/// The stream that the library reads from and writes to.
#[derive(Debug, Default)]
struct MemoryStream {
    inbound: Vec<u8>,
    read: usize,
    outbound: Vec<u8>,
}

/// Encoded bytes to send.
#[derive(Debug, Default)]
struct Unsent {
    bytes: Vec<u8>,
    sent: usize,
    pongs: UnreadReplies,
}

impl WebSocket {
    pub(crate) fn new(origins: Origins, frame_bytes_max: usize) -> Self {
        let limit = Some(frame_bytes_max + LENGTH_BYTES);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            // The server has its own buffer; a second one would only hold replies back.
            .write_buffer_size(0)
            .max_message_size(limit)
            .max_frame_size(limit);
        let handshake = ServerHandshake::start(MemoryStream::default(), origins, Some(config));
        Self {
            state: Some(State::Handshake(Box::new(handshake))),
            unsent: Unsent::default(),
            partial: Vec::new(),
            partial_bytes: 0,
            has_completed: false,
            is_text: true,
            has_length: false,
        }
    }

    /// Whether the handshake is complete.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, Some(State::Open(_)))
    }

    /// Decodes received bytes, and passes the payload of each complete message to `on_message`
    /// until that returns false; whether it accepts more.
    ///
    /// # Errors
    /// If the connection must close after its unsent bytes are sent.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        mut on_message: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        // Taken: the handshake consumes its state, and a failed one leaves none.
        let mut state = self.state.take().ok_or(ErrorKind::NotConnected)?;
        self.partial_bytes += bytes.len();
        match &mut state {
            // The library reads from memory, so it never sees a socket that blocks.
            State::Handshake(handshake) => handshake.get_mut().get_mut().put(bytes),
            State::Open(socket) => socket.get_mut().put(bytes),
        }
        let mut socket = match state {
            State::Open(socket) => socket,
            State::Handshake(handshake) => match handshake.handshake() {
                Ok(socket) => Box::new(socket),
                Err(HandshakeError::Interrupted(handshake)) => {
                    self.state = Some(State::Handshake(Box::new(handshake)));
                    return Ok(true);
                }
                Err(HandshakeError::Failure(error)) => {
                    let is_origin = matches!(error, Error::Http(_));
                    let answer = if is_origin { FORBIDDEN_ORIGIN } else { NOT_WEBSOCKET };
                    self.unsent.bytes.extend_from_slice(answer.as_bytes());
                    return Err(io::Error::other(error));
                }
            },
        };
        let result = self.read(&mut socket, &mut on_message);
        self.unsent.append_replies(&mut socket.get_mut().outbound);
        self.state = Some(State::Open(socket));
        result
    }

    fn read(
        &mut self,
        socket: &mut tungstenite::WebSocket<MemoryStream>,
        on_message: &mut impl FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        loop {
            self.unsent.append_replies(&mut socket.get_mut().outbound);
            // RFC 6455 demands a pong for each ping: a client that only pings must not fill memory.
            if self.has_unread_pongs() {
                return Ok(false);
            }
            let message = match socket.read() {
                Ok(message) => message,
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => {
                    // The close frame is a courtesy; the connection ends in any case.
                    drop(socket.close(Some(CloseFrame { code: code(&error), reason: "".into() })));
                    return Err(io::Error::other(error));
                }
            };
            let (bytes, is_text) = match &message {
                Message::Text(text) => (text.as_bytes(), true),
                Message::Binary(bytes) => (&bytes[..], false),
                // The library replies to control frames.
                _ => continue,
            };
            (self.partial_bytes, self.has_completed) = (socket.get_ref().unread(), true);
            // An empty message is a heartbeat, as an empty frame is.
            if bytes.is_empty() {
                continue;
            }
            let (payload, has_length) = message_payload(bytes).unwrap_or((bytes, false));
            // A browser that sends text expects text.
            (self.is_text, self.has_length) = (is_text, has_length);
            if !on_message(payload) {
                return Ok(false);
            }
        }
    }

    /// Sets the longest message.
    pub(crate) fn set_frame_limit(&mut self, frame_bytes_max: usize) {
        let limit = Some(frame_bytes_max + LENGTH_BYTES);
        if let Some(State::Open(socket)) = &mut self.state {
            socket.set_config(|config| {
                (config.max_message_size, config.max_frame_size) = (limit, limit);
            });
        }
    }

    /// Bytes of the incomplete message, and whether one was completed since the last call.
    pub(crate) fn take_partial(&mut self) -> (usize, bool) {
        (self.partial_bytes, std::mem::take(&mut self.has_completed))
    }

    /// Whether the client leaves too many pongs unread.
    pub(crate) fn has_unread_pongs(&self) -> bool {
        self.unsent.pongs.is_blocking()
    }

    /// Appends a close frame, unless the connection has ended.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        let (code, reason) = match reason {
            CloseReason::Shutdown => (CloseCode::Away, "the server shuts down"),
            CloseReason::Policy(reason) => (CloseCode::Policy, reason),
            CloseReason::Ended => return,
        };
        if let Some(State::Open(socket)) = &mut self.state {
            // A connection that has ended already sent its close frame.
            drop(socket.close(Some(CloseFrame { code, reason: reason.into() })));
            self.unsent.bytes.append(&mut socket.get_mut().outbound);
        }
    }

    /// Encodes frames as messages until the buffer is full; returns the bytes encoded.
    ///
    /// # Errors
    /// `WouldBlock` if encoded messages must be sent first.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut used = 0;
        // Bounded: beyond it the bytes wait in the send queue, which has limits.
        while used < bytes.len() && self.unsent().len() < ENCODED_MAX {
            let rest = &bytes[used..];
            // The usual case: the frame is complete, and needs no copy before its encoding.
            if self.partial.is_empty()
                && let Some(total) = frame_total(rest).filter(|total| *total <= rest.len())
            {
                self.write(&rest[..total]);
                used += total;
                continue;
            }
            // Up to the end of the length prefix, and once that is known, to the end of the frame.
            let known = frame_total(&self.partial).unwrap_or(LENGTH_BYTES);
            let more = (known - self.partial.len()).min(rest.len());
            self.partial.extend_from_slice(&rest[..more]);
            used += more;
            if frame_total(&self.partial) == Some(self.partial.len()) {
                let mut frame = std::mem::take(&mut self.partial);
                self.write(&frame);
                frame.clear();
                // Puts the allocation back for the next incomplete frame.
                self.partial = frame;
            }
        }
        if used == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(used) }
    }

    /// Encodes a frame as a message.
    fn write(&mut self, frame: &[u8]) {
        let payload = if self.has_length { frame } else { &frame[LENGTH_BYTES..] };
        // A text message with invalid UTF-8 would make the client close the connection.
        let is_text = self.is_text && std::str::from_utf8(payload).is_ok();
        let data = if is_text { Data::Text } else { Data::Binary };
        // Without a mask: RFC 6455 demands one from clients alone.
        let header = FrameHeader { opcode: OpCode::Data(data), ..FrameHeader::default() };
        let out = &mut self.unsent.bytes;
        let written = header.format(payload.len() as u64, out);
        debug_assert!(written.is_ok(), "writing into memory does not fail");
        out.extend_from_slice(payload);
    }

    /// Encoded bytes to send.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.unsent.bytes[self.unsent.sent..]
    }

    /// Removes sent bytes.
    pub(crate) fn advance(&mut self, count: usize) {
        let unsent = &mut self.unsent;
        unsent.sent += count;
        unsent.pongs.advance(count);
        if unsent.sent == unsent.bytes.len() {
            unsent.sent = 0;
            unsent.bytes.clear();
            // One long message is no reason to keep its memory.
            unsent.bytes.shrink_to(ENCODED_MAX);
        }
    }
}

impl Unsent {
    /// Appends what the library wrote: pongs and close frames.
    fn append_replies(&mut self, replies: &mut Vec<u8>) {
        if !replies.is_empty() {
            let count = replies.len();
            self.bytes.append(replies);
            self.pongs.count(count, self.bytes.len() - self.sent, PONGS_MAX);
        }
    }
}

/// The close code of an error.
fn code(error: &Error) -> CloseCode {
    match error {
        Error::Capacity(_) => CloseCode::Size,
        Error::Utf8(_) => CloseCode::Invalid,
        _ => CloseCode::Protocol,
    }
}

impl MemoryStream {
    /// Bytes that the library has not read.
    fn unread(&self) -> usize {
        self.inbound.len() - self.read
    }

    fn put(&mut self, bytes: &[u8]) {
        // Read bytes go first: the buffer holds only bytes that the library has not read.
        self.inbound.drain(..self.read);
        self.read = 0;
        self.inbound.extend_from_slice(bytes);
    }
}

impl Read for MemoryStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = &self.inbound[self.read..];
        if rest.is_empty() {
            // Not zero, which would mean that the stream has ended.
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.read += count;
        Ok(count)
    }
}

impl Write for MemoryStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outbound.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Callback for Origins {
    fn on_request(self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or(""));
        let is_allowed = match (header("origin"), header("host")) {
            // Without an origin it is a program rather than a page, and could claim any origin.
            (None, _) => true,
            (Some(origin), host) => self.allows(origin, host.unwrap_or("")),
        };
        if is_allowed {
            return Ok(response);
        }
        let mut response = ErrorResponse::new(None);
        *response.status_mut() = http::StatusCode::FORBIDDEN;
        Err(response)
    }
}

impl Origins {
    /// Whether pages of `origin` may connect to `host`. Pages of the same host may if the host is
    /// an address or `localhost`. A domain name is not enough: an attacker's domain can resolve to
    /// this server (DNS rebinding), so it must be listed.
    fn allows(&self, origin: &str, host: &str) -> bool {
        let place = origin.split_once("://").map_or("", |(_, place)| place);
        let (name, own) = (without_port(place), without_port(host));
        let address = name.trim_start_matches('[').trim_end_matches(']');
        // An address is not resolved, so its page cannot be rebound to this server.
        let is_plain = name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok();
        (is_plain && name.eq_ignore_ascii_case(own))
            || self.0.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }
}

fn without_port(place: &str) -> &str {
    match place.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_from_the_same_host_or_are_listed() {
        let origins = Origins(["https://desk.example".to_owned()].as_slice().into());
        let has = |origin, host| origins.allows(origin, host);
        assert!(has("http://127.0.0.1:8000", "127.0.0.1:9008"));
        assert!(has("http://[::1]", "[::1]:9008"));
        assert!(has("http://localhost:8000", "LOCALHOST:9008"));
        assert!(has("https://desk.example", "10.0.0.1:9008"));
        assert!(!has("http://desk.example", "10.0.0.1:9008"));
        assert!(!has("http://10.0.0.2", "10.0.0.1:9008"));
        assert!(!has("http://evil.example", "evil.example:9008"), "its name may lead here");
        assert!(!has("null", ""));
        assert!(!has("", ""));
    }

    #[test]
    fn answers_are_as_long_as_they_say() {
        for answer in [NOT_WEBSOCKET, FORBIDDEN_ORIGIN, TLS_REQUIRED] {
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{answer}");
        }
    }
}
