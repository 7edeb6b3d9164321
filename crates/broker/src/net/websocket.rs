//! The WebSocket protocol on one connection: no socket, only bytes that came and bytes to be sent.

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

/// Bytes that are made ready to be sent at a time.
const STAGED_MAX: usize = 256 << 10;
/// Answers to pings that a client has not read take this much; then nothing is read from it.
const PONGS_MAX: usize = 64 << 10;
/// What the library reads at a time; it keeps that much for each connection.
const READ_BYTES: usize = 8 << 10;
/// What somebody is told who does not ask for this protocol.
const NO_REQUEST: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain\r\nContent-Length: 55\r\n\r\n\
    this is a lanecast server: WebSocket (RFC 6455) only.\r\n";
/// What a page is told that may not ask.
const NO_ORIGIN: &str = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\
    Content-Type: text/plain\r\nContent-Length: 56\r\n\r\n\
    pages of this origin must be listed in listen.origins.\r\n";
/// What somebody is told who does not encrypt where that is needed.
pub(crate) const NO_TLS: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain\r\nContent-Length: 46\r\n\r\n\
    this server speaks TLS alone: ask for wss://\r\n";

/// Why the server ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The server ends.
    Away,
    /// The client did what it may not.
    Refused(&'static str),
    /// The client has gone, or knows already.
    Silent,
}

/// Whose pages may connect.
#[derive(Clone, Debug)]
pub(crate) struct Origins(pub(crate) Arc<[String]>);

/// A connection's state.
#[derive(Debug)]
pub(crate) struct WebSocket {
    /// None once it is over.
    state: Option<State>,
    unsent: Unsent,
    /// The beginning of a frame that is to be sent.
    partial: Vec<u8>,
    /// What has come since the last whole message, and whether there was one since that was last
    /// asked.
    begun: usize,
    has_ended: bool,
    /// As the client's last message was, so are those to it: text or binary, with a length or not.
    is_text: bool,
    has_length: bool,
}

#[derive(Debug)]
enum State {
    Asked(Box<MidHandshake<ServerHandshake<MemoryStream, Origins>>>),
    Open(Box<tungstenite::WebSocket<MemoryStream>>),
}

/// What has come and is not read yet, and what the library answers.
#[derive(Debug, Default)]
struct MemoryStream {
    inbound: Vec<u8>,
    read: usize,
    outbound: Vec<u8>,
}

/// What is to be sent.
#[derive(Debug, Default)]
struct Unsent {
    bytes: Vec<u8>,
    sent: usize,
    /// To pings.
    answers: UnreadReplies,
}

impl WebSocket {
    pub(crate) fn new(origins: Origins, frame_bytes_max: usize) -> Self {
        let limit = Some(frame_bytes_max + LENGTH_BYTES);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_message_size(limit)
            .max_frame_size(limit);
        let handshake = ServerHandshake::start(MemoryStream::default(), origins, Some(config));
        Self {
            state: Some(State::Asked(Box::new(handshake))),
            unsent: Unsent::default(),
            partial: Vec::new(),
            begun: 0,
            has_ended: false,
            is_text: true,
            has_length: false,
        }
    }

    /// Whether the handshake is over.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, Some(State::Open(_)))
    }

    /// Takes in what came, and hands over the payload of each message that is whole, until `each`
    /// says that this is enough; whether more is wanted.
    ///
    /// # Errors
    /// If the connection is to end, once what is to be sent has been.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let mut state = self.state.take().ok_or(ErrorKind::NotConnected)?;
        self.begun += bytes.len();
        match &mut state {
            State::Asked(handshake) => handshake.get_mut().get_mut().put(bytes),
            State::Open(socket) => socket.get_mut().put(bytes),
        }
        let mut socket = match state {
            State::Open(socket) => socket,
            State::Asked(handshake) => match handshake.handshake() {
                Ok(socket) => Box::new(socket),
                Err(HandshakeError::Interrupted(handshake)) => {
                    self.state = Some(State::Asked(Box::new(handshake)));
                    return Ok(true);
                }
                Err(HandshakeError::Failure(error)) => {
                    let is_origin = matches!(error, Error::Http(_));
                    let answer = if is_origin { NO_ORIGIN } else { NO_REQUEST };
                    self.unsent.bytes.extend_from_slice(answer.as_bytes());
                    return Err(io::Error::other(error));
                }
            },
        };
        let done = self.read(&mut socket, &mut each);
        self.unsent.answer(&mut socket.get_mut().outbound);
        self.state = Some(State::Open(socket));
        done
    }

    fn read(
        &mut self,
        socket: &mut tungstenite::WebSocket<MemoryStream>,
        each: &mut impl FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        loop {
            self.unsent.answer(&mut socket.get_mut().outbound);
            if self.has_unread_answers() {
                return Ok(false);
            }
            let message = match socket.read() {
                Ok(message) => message,
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => {
                    // Told as far as it can be; the connection ends anyway.
                    drop(socket.close(Some(CloseFrame { code: code(&error), reason: "".into() })));
                    return Err(io::Error::other(error));
                }
            };
            let (bytes, is_text) = match &message {
                Message::Text(text) => (text.as_bytes(), true),
                Message::Binary(bytes) => (&bytes[..], false),
                // Answered by the library.
                _ => continue,
            };
            (self.begun, self.has_ended) = (socket.get_ref().unread(), true);
            // One without content is a sign of life, as a frame is.
            if bytes.is_empty() {
                continue;
            }
            let (payload, has_length) = message_payload(bytes).unwrap_or((bytes, false));
            (self.is_text, self.has_length) = (is_text, has_length);
            if !each(payload) {
                return Ok(false);
            }
        }
    }

    /// From now on a message may be so long.
    pub(crate) fn set_limit(&mut self, frame_bytes_max: usize) {
        let limit = Some(frame_bytes_max + LENGTH_BYTES);
        if let Some(State::Open(socket)) = &mut self.state {
            socket.set_config(|config| {
                (config.max_message_size, config.max_frame_size) = (limit, limit);
            });
        }
    }

    /// How much has come of a message that has begun, and whether one has ended since this was last
    /// asked.
    pub(crate) fn partial(&mut self) -> (usize, bool) {
        (self.begun, std::mem::take(&mut self.has_ended))
    }

    /// Whether more answers to pings wait for the client than it may leave unread.
    pub(crate) fn has_unread_answers(&self) -> bool {
        self.unsent.answers.are_unread()
    }

    /// Says why it ends, unless it has ended already.
    pub(crate) fn close(&mut self, why: CloseReason) {
        let (code, reason) = match why {
            CloseReason::Away => (CloseCode::Away, "the server ends"),
            CloseReason::Refused(reason) => (CloseCode::Policy, reason),
            CloseReason::Silent => return,
        };
        if let Some(State::Open(socket)) = &mut self.state {
            // One that has ended has said so.
            drop(socket.close(Some(CloseFrame { code, reason: reason.into() })));
            self.unsent.bytes.append(&mut socket.get_mut().outbound);
        }
    }

    /// Turns frames into messages, as many as may be ready at a time; how many bytes it took.
    ///
    /// # Errors
    /// `WouldBlock` if what is ready is to be sent first.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut used = 0;
        while used < bytes.len() && self.unsent().len() < STAGED_MAX {
            let rest = &bytes[used..];
            if self.partial.is_empty()
                && let Some(total) = frame_total(rest).filter(|total| *total <= rest.len())
            {
                self.write(&rest[..total]);
                used += total;
                continue;
            }
            // As far as the frame goes, once its length is known.
            let known = frame_total(&self.partial).unwrap_or(LENGTH_BYTES);
            let more = (known - self.partial.len()).min(rest.len());
            self.partial.extend_from_slice(&rest[..more]);
            used += more;
            if frame_total(&self.partial) == Some(self.partial.len()) {
                let mut frame = std::mem::take(&mut self.partial);
                self.write(&frame);
                frame.clear();
                self.partial = frame;
            }
        }
        if used == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(used) }
    }

    /// Makes a message of a frame.
    fn write(&mut self, frame: &[u8]) {
        let payload = if self.has_length { frame } else { &frame[LENGTH_BYTES..] };
        // A text that is none would end the connection.
        let is_text = self.is_text && std::str::from_utf8(payload).is_ok();
        let data = if is_text { Data::Text } else { Data::Binary };
        let header = FrameHeader { opcode: OpCode::Data(data), ..FrameHeader::default() };
        let out = &mut self.unsent.bytes;
        let written = header.format(payload.len() as u64, out);
        debug_assert!(written.is_ok(), "writing into memory does not fail");
        out.extend_from_slice(payload);
    }

    /// What is to be sent.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.unsent.bytes[self.unsent.sent..]
    }

    /// The first `count` bytes of that have been sent.
    pub(crate) fn sent(&mut self, count: usize) {
        let unsent = &mut self.unsent;
        unsent.sent += count;
        unsent.answers.leave(count);
        if unsent.sent == unsent.bytes.len() {
            unsent.sent = 0;
            unsent.bytes.clear();
            // One long message is no reason to keep as much for ever.
            unsent.bytes.shrink_to(STAGED_MAX);
        }
    }
}

impl Unsent {
    /// Puts what the library answers behind all else.
    fn answer(&mut self, answers: &mut Vec<u8>) {
        if !answers.is_empty() {
            let count = answers.len();
            self.bytes.append(answers);
            self.answers.count(count, self.bytes.len() - self.sent, PONGS_MAX);
        }
    }
}

/// What an error is called when a connection is closed for it.
fn code(error: &Error) -> CloseCode {
    match error {
        Error::Capacity(_) => CloseCode::Size,
        Error::Utf8(_) => CloseCode::Invalid,
        _ => CloseCode::Protocol,
    }
}

impl MemoryStream {
    /// How much has come and is not read yet.
    fn unread(&self) -> usize {
        self.inbound.len() - self.read
    }

    fn put(&mut self, bytes: &[u8]) {
        self.inbound.drain(..self.read);
        self.read = 0;
        self.inbound.extend_from_slice(bytes);
    }
}

impl Read for MemoryStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = &self.inbound[self.read..];
        if rest.is_empty() {
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
        let is_welcome = match (header("origin"), header("host")) {
            // No page: a program, which could have said anything.
            (None, _) => true,
            (Some(origin), host) => self.has(origin, host.unwrap_or("")),
        };
        if is_welcome {
            return Ok(response);
        }
        let mut refusal = ErrorResponse::new(None);
        *refusal.status_mut() = http::StatusCode::FORBIDDEN;
        Err(refusal)
    }
}

impl Origins {
    /// Whether pages of `origin` may connect to what they call `host`. Those of the same host may
    /// if it is called by its address or `localhost`; another name could be anybody's, who makes
    /// it lead here.
    fn has(&self, origin: &str, host: &str) -> bool {
        let place = origin.split_once("://").map_or("", |(_, place)| place);
        let (name, own) = (without_port(place), without_port(host));
        let address = name.trim_start_matches('[').trim_end_matches(']');
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
        let has = |origin, host| origins.has(origin, host);
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
        for answer in [NO_REQUEST, NO_ORIGIN, NO_TLS] {
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{answer}");
        }
    }
}
