//! A message that is longer than a datagram, as pieces.

use super::{BLOCK, ITEM, Last, Packer};
use lanecast_wire::net::{ItemFlags, TOTAL_BYTES};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

/// A datagram with less room than this for a piece is left as it is.
const PIECE_MIN: usize = 64;

impl Packer {
    /// Cuts the message that was written aside; the room was made when it was staged.
    pub(super) fn cut(&mut self) {
        let Last::Long { topic, len } = std::mem::replace(&mut self.last, Last::None) else {
            return;
        };
        let aside = std::mem::take(&mut self.aside);
        let mut rest = &aside[..len];
        let mut flags = ItemFlags::BEGIN;
        loop {
            let total = if flags == ItemFlags::BEGIN { TOTAL_BYTES } else { 0 };
            let room = self.room_for_piece(topic) - total;
            let (piece, left) = rest.split_at(room.min(rest.len()));
            rest = left;
            if rest.is_empty() {
                flags |= ItemFlags::END;
            }
            let range = self.lay(topic, flags, total + piece.len());
            let (begin, bytes) = self.window.bytes[range].split_at_mut(total);
            begin.copy_from_slice(&U32::new(len as u32).as_bytes()[..total]);
            bytes.copy_from_slice(piece);
            if rest.is_empty() {
                break;
            }
            flags = 0;
        }
        self.aside = aside;
    }

    /// Opens a block on `topic` if need be; how many bytes an item may have there.
    fn room_for_piece(&mut self, topic: u32) -> usize {
        let header = if self.at.topic == topic { 0 } else { BLOCK };
        let left = self.limit.saturating_sub(self.at.used + header + ITEM);
        if self.at.used > 0 && left < PIECE_MIN {
            self.close(true);
        }
        if self.at.used == 0 {
            self.turn_over();
        }
        if self.at.topic != topic {
            self.end_block();
            self.begin_block(topic);
        }
        (self.limit - self.at.used - ITEM) & !3
    }
}
