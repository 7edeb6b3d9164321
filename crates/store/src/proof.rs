//! Proof that an administrator knows a store's key, which itself is never sent.

use lanecast_wire::store::DEREGISTER_PROOF;
use ring::hmac;

/// Keeps proofs apart from other uses of a key.
const LABEL: &[u8] = b"lanecast store deregister 1";

/// The proof for the store with this name that stands behind `frame`, which has its challenge.
pub(crate) fn prove(key: u128, store: &str, frame: &[u8]) -> [u8; DEREGISTER_PROOF] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key.to_le_bytes());
    let tag = hmac::sign(&key, &content(store, frame));
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Whether `frame` ends with a proof for the store with this name. Takes the same time for all
/// wrong ones.
pub(crate) fn is_proven(key: u128, store: &str, frame: &[u8]) -> bool {
    let Some((frame, proof)) = frame.split_last_chunk::<DEREGISTER_PROOF>() else { return false };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key.to_le_bytes());
    hmac::verify(&key, &content(store, frame), proof).is_ok()
}

fn content(store: &str, frame: &[u8]) -> Vec<u8> {
    let length = u8::try_from(store.len()).expect("a name that was checked");
    [LABEL, &[length], store.as_bytes(), frame].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_good_for_one_key_one_store_and_one_frame() {
        let frame = [b"frame".as_slice(), &prove(7, "a", b"frame")].concat();
        assert!(is_proven(7, "a", &frame));
        assert!(!is_proven(8, "a", &frame) && !is_proven(7, "b", &frame));
        for index in 0..frame.len() {
            let mut other = frame.clone();
            other[index] ^= 1;
            assert!(!is_proven(7, "a", &other), "byte {index}");
            assert!(!is_proven(7, "a", &frame[..index]), "{index} bytes");
        }
        assert!(!is_proven(7, "a", b""));
    }

    /// The first bytes of a proof that another implementation of the page has to find.
    #[test]
    fn the_proof_is_that_of_the_page() {
        let proof = prove(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10, "store-1", &[0xaa; 80]);
        let text: String = proof[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "b458fc177b597372");
    }
}
