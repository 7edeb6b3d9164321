//! Delivery in order of arrival: messages of queued blocks, before their turn.
//!
//! A block behind a gap is queued, so that the topic's numbers stay exact, and its messages are
//! delivered at once: whole ones when it comes, one in fragments with the last of them. When its
//! turn comes it is passed over.

use super::block::{Block, QueuedBlock};
use super::delivery::Delivery;
use super::output::Output;
use lanecast_transport::LossReason;
use lanecast_wire::net::{Items, TOTAL_BYTES};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Delivers the messages that are complete with `block`, which was queued at index `at`.
pub(super) fn deliver(
    blocks: &mut VecDeque<QueuedBlock>,
    at: usize,
    block: &Block<'_>,
    output: &mut Output<'_>,
) {
    deliver_complete(block, output);
    blocks[at].early.whole = true;
    if !block.shape.begins
        && let Some(chain) = chain_around(blocks, at)
    {
        assemble(blocks, chain, output);
    }
    if block.shape.open
        && !block.shape.is_amid_message()
        && let Some(end) = chain_end(blocks, at)
    {
        assemble(blocks, at..=end, output);
    }
    forget_items(&mut blocks[at], output);
}

/// Delivers the messages that the block has from their first byte to their last: runs of whole
/// ones, and those with all fragments in it.
fn deliver_complete(block: &Block<'_>, output: &mut Output<'_>) {
    let deliver_run = |(start, first): (usize, u64), end, number: u64, output: &mut Output<'_>| {
        output.out.push(block.run(output.slot, first, start..end));
        output.counters.messages += number.wrapping_sub(first);
    };
    let (mut at, mut number) = (0, block.message);
    let (mut run, mut open) = (None, None);
    let mut items = Items::new(block.items);
    while let Some(item) = items.next() {
        if item.flags.is_whole() {
            run.get_or_insert((at, number));
        } else if let Some(run) = run.take() {
            deliver_run(run, at, number, output);
        }
        if item.flags.begins() && !item.flags.is_whole() {
            open = Some(Vec::new());
        }
        if let Some(bytes) = &mut open {
            bytes.extend_from_slice(item.bytes);
        }
        if item.flags.ends()
            && let Some(bytes) = open.take()
            && !deliver_assembled(number, &bytes, output)
        {
            output.counters.malformed += 1;
            output.counters.lost += 1;
            let (slot, first, why) = (output.slot, number, LossReason::Damaged);
            output.out.push(Delivery::Lost { slot, first, count: 1, why });
        }
        number = number.wrapping_add(u64::from(item.flags.ends()));
        at = block.items.len() - items.rest().len();
    }
    if let Some(run) = run {
        deliver_run(run, at, number, output);
    }
}

/// Delivers message `number` from the bytes of all its fragments; false if they contradict its
/// length.
fn deliver_assembled(number: u64, bytes: &[u8], output: &mut Output<'_>) -> bool {
    let Some((total, message)) = bytes.split_first_chunk::<TOTAL_BYTES>() else { return false };
    let total = u32::from_le_bytes(*total) as usize;
    let fits = total == message.len() && total <= output.longest;
    if fits {
        let (slot, bytes) = (output.slot, message.into());
        output.out.push(Delivery::Message { slot, number, bytes });
        output.counters.messages += 1;
    }
    fits
}

/// The queued blocks with all fragments of the message that block `at` continues.
fn chain_around(blocks: &VecDeque<QueuedBlock>, at: usize) -> Option<RangeInclusive<usize>> {
    // Forwards first: behind a gap most blocks come in order, and none follows.
    let end = if blocks[at].shape.ends > 0 { at } else { chain_end(blocks, at)? };
    let mut start = at;
    loop {
        let before = start.checked_sub(1)?;
        let is_next = blocks[before].end() == blocks[start].fragment;
        if !is_next || !blocks[before].shape.open {
            return None;
        }
        start = before;
        if !blocks[start].shape.is_amid_message() {
            return Some(start..=end);
        }
    }
}

/// The queued block that ends the message which is open at the end of block `at`.
fn chain_end(blocks: &VecDeque<QueuedBlock>, at: usize) -> Option<usize> {
    let mut end = at;
    loop {
        let after = blocks.get(end + 1)?;
        if after.fragment != blocks[end].end() || after.shape.begins {
            return None;
        }
        end += 1;
        if after.shape.ends > 0 {
            return Some(end);
        }
    }
}

/// Delivers the message whose fragments are in `chain`: those that the first block leaves open, and
/// those with which the others go on.
fn assemble(
    blocks: &mut VecDeque<QueuedBlock>,
    chain: RangeInclusive<usize>,
    output: &mut Output<'_>,
) {
    let (start, end) = chain.into_inner();
    let mut bytes = Vec::new();
    for item in Items::new(&blocks[start].items) {
        if item.flags.begins() {
            bytes.clear();
        }
        bytes.extend_from_slice(item.bytes);
    }
    for block in blocks.range(start + 1..=end) {
        for item in Items::new(&block.items) {
            bytes.extend_from_slice(item.bytes);
            if item.flags.ends() {
                break;
            }
        }
    }
    // A message of another length is reported as damaged when its turn comes.
    if !deliver_assembled(blocks[end].message, &bytes, output) {
        return;
    }
    // A block in the middle goes on with the message, and leaves it open.
    blocks.range_mut(start..end).for_each(|block| block.early.last = true);
    blocks.range_mut(start + 1..=end).for_each(|block| block.early.first = true);
    blocks.range_mut(start..=end).for_each(|block| forget_items(block, output));
}

/// Drops the items of a block of which everything was delivered.
fn forget_items(block: &mut QueuedBlock, output: &mut Output<'_>) {
    if block.as_block().is_delivered() {
        output.reorder.shrink(block.items.len());
        block.items = Box::default();
    }
}
