//! Datagrams: runs of them, and what hostile ones come to.

use crate::{address, keys, open, open_run, ring, seal, socket};
use lanecast_sealing::{KeyRing, Refusal};
use lanecast_wire::net::{SEALED_OVERHEAD, SealedHeader};
use std::mem::offset_of;
use std::sync::Arc;

#[test]
fn a_run_is_sealed_datagram_by_datagram_and_opened_without_gaps() {
    let ring = ring();
    let (mut one, mut two) = (socket(&ring, 1), socket(&ring, 2));
    let text: Vec<u8> = (0..=255).cycle().take(2_500).collect();
    let mut sealed = Vec::new();
    one.seal(&text, 1_000, address(2), &mut sealed);
    assert_eq!(sealed.len(), text.len() + 3 * SEALED_OVERHEAD);
    assert!(!sealed.windows(16).any(|part| part == &text[..16]), "nothing is readable");
    assert_eq!(open(&mut two, &sealed), (text, vec![]));
    assert_eq!(open(&mut two, &sealed), (vec![], vec![Refusal::Repeated; 3]));
    // A datagram without content, and none at all.
    let empty = seal(&mut one, b"", address(2));
    assert_eq!(open(&mut two, &empty), (vec![], vec![]));
}

#[test]
fn any_altered_bit_and_any_cut_is_seen() {
    let ring = ring();
    let mut one = socket(&ring, 1);
    let sealed = seal(&mut one, b"one lot of gold", address(2));
    for bit in 0..8 * sealed.len() {
        let mut altered = sealed.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let (frames, refused) = open(&mut socket(&ring, 2), &altered);
        assert!(frames.is_empty() && !refused.is_empty(), "bit {bit}: {refused:?}");
    }
    for length in 1..sealed.len() {
        let refused = open(&mut socket(&ring, 2), &sealed[..length]);
        assert_eq!(refused, (vec![], vec![Refusal::NotSealed]), "{length} bytes");
    }
    assert_eq!(open(&mut socket(&ring, 2), &sealed), (b"one lot of gold".to_vec(), vec![]));
}

#[test]
fn a_damaged_datagram_takes_none_of_its_run_along() {
    let ring = ring();
    let (mut one, mut two) = (socket(&ring, 1), socket(&ring, 2));
    let mut sealed = Vec::new();
    one.seal(b"aaaabbbbcccc", 4, address(2), &mut sealed);
    let each = 4 + SEALED_OVERHEAD;
    sealed[each + 30] ^= 1;
    assert_eq!(open(&mut two, &sealed), (b"aaaacccc".to_vec(), vec![Refusal::Forged]));
    // A second time the others are known, and the middle one is not.
    sealed[each + 30] ^= 1;
    let repeated = vec![Refusal::Repeated; 2];
    assert_eq!(open(&mut two, &sealed), (b"bbbb".to_vec(), repeated));
}

#[test]
fn no_header_of_a_forger_takes_datagrams_behind_it_along() {
    let ring = ring();
    let (mut one, each) = (socket(&ring, 1), 4 + SEALED_OVERHEAD);
    let mut sealed = Vec::new();
    one.seal(b"aaaabbbbccccdd", 4, address(2), &mut sealed);
    for forged in 0..3 {
        let rest = (0..).zip(b"aaaabbbbccccdd").filter(|(at, _)| at / 4 != forged);
        let rest: Vec<u8> = rest.map(|(_, byte)| *byte).collect();
        // No datagram, one of another version, and lengths that lead anywhere.
        let mut headers = vec![(0, 0), (2, 9)];
        let length = offset_of!(SealedHeader, length);
        headers.extend([0, 40, 43, 45, 88, 132, 255].map(|bytes| (length, bytes)));
        for (at, byte) in headers {
            let mut run = sealed.clone();
            run[forged * each + at] = byte;
            let (frames, refused) = open_run(&mut socket(&ring, 2), &run, each);
            assert_eq!(frames, rest, "datagram {forged}, byte {at} is {byte}");
            assert!(!refused.is_empty(), "datagram {forged}, byte {at} is {byte}");
        }
    }
    assert_eq!(open_run(&mut socket(&ring, 2), &sealed, each), (b"aaaabbbbccccdd".into(), vec![]));
}

#[test]
fn datagrams_are_for_their_destination_alone() {
    let ring = ring();
    let mut one = socket(&ring, 1);
    let sealed = seal(&mut one, b"for two", address(2));
    assert_eq!(open(&mut socket(&ring, 3), &sealed), (vec![], vec![Refusal::Forged]));
    assert_eq!(open(&mut one, &sealed), (vec![], vec![Refusal::Forged]), "nor sent back");
    assert_eq!(open(&mut socket(&ring, 2), &sealed), (b"for two".to_vec(), vec![]));
}

#[test]
fn plain_datagrams_and_those_under_other_keys_are_refused() {
    let ring = ring();
    let mut two = socket(&ring, 2);
    assert_eq!(open(&mut two, b"LC\x02\x01 plain"), (vec![], vec![Refusal::NotSealed]));
    let other = Arc::new(KeyRing::new(&keys(&[9])));
    let sealed = seal(&mut socket(&other, 1), b"text", address(2));
    assert_eq!(open(&mut two, &sealed), (vec![], vec![Refusal::UnknownKey]));
    // The right id with the wrong key: a guess.
    let right = seal(&mut socket(&ring, 1), b"text", address(2));
    let mut guess = sealed;
    guess[4..6].copy_from_slice(&right[4..6]);
    assert_eq!(open(&mut two, &guess), (vec![], vec![Refusal::Forged]));
    // Plain bytes behind a sealed datagram.
    let mut both = right;
    both.extend(b"LC\x02\x01 plain");
    assert_eq!(open(&mut two, &both), (b"text".to_vec(), vec![Refusal::NotSealed]));
}

#[test]
fn two_sockets_of_one_number_share_no_nonce() {
    let ring = ring();
    let mut sockets = [3, 1 << 63, u64::MAX].map(|first| {
        lanecast_sealing::DatagramSealing::new(Arc::clone(&ring), address(1), (7, first))
    });
    let texts = sockets.each_mut().map(|socket| seal(socket, &[0; 32], address(2)));
    let counters =
        texts.each_ref().map(|text| u64::from_le_bytes(text[16..24].try_into().unwrap()));
    assert_eq!(counters, [1, 1 << 62, u64::MAX >> 1]);
    assert_ne!(texts[0][24..], texts[1][24..]);
}
