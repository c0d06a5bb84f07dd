//! Decoding inverts encoding, however the bytes are split, and no input causes a panic.

mod support;

use fieldline_codec::{MqttProtocolVersion, Packet, decode_frame, decode_header, frame_len};
use proptest::collection::vec;
use proptest::prelude::*;
use support::{Seed, seed, version};

const MAX: u32 = 1 << 20;

fn encode(seed: &Seed, out: &mut Vec<u8>) {
    seed.with_packet(|packet| packet.encode(seed.version, out))
        .expect("can be written");
}

/// Decodes all bytes; every decoded packet must survive encoding and decoding.
fn exercise(mut input: &[u8], version: MqttProtocolVersion) {
    while let Ok(Some((packet, used))) = decode_frame(input, MAX, version) {
        let mut out = Vec::new();
        packet
            .encode(version, &mut out)
            .expect("what was decoded can be written");
        let again = decode_frame(&out, MAX, version);
        assert_eq!(again, Ok(Some((packet, out.len()))));
        let _ = format!("{packet:?}");
        input = &input[used..];
    }
    let _ = frame_len(input, MAX, version);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn decoding_inverts_encoding(seed in seed()) {
        let mut bytes = Vec::new();
        encode(&seed, &mut bytes);
        seed.with_packet(|packet| {
            assert_eq!(decode_frame(&bytes, MAX, seed.version), Ok(Some((*packet, bytes.len()))));
            if let Packet::Publish(publish) = packet {
                assert_eq!(publish.encoded_len(seed.version), bytes.len());
            }
        });
    }

    #[test]
    fn every_proper_prefix_is_incomplete(seed in seed()) {
        let mut bytes = Vec::new();
        encode(&seed, &mut bytes);
        for end in 0..bytes.len() {
            prop_assert_eq!(decode_frame(&bytes[..end], MAX, seed.version), Ok(None));
            if let Some(header) = decode_header(&bytes[..end], seed.version).expect("valid") {
                prop_assert_eq!(header.frame_len(), bytes.len());
            }
        }
    }

    #[test]
    fn any_split_of_the_input_gives_the_same_packets(
        version in version(), seeds in vec(seed(), 1..6), cuts in vec(1..40_usize, 1..60),
    ) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for mut seed in seeds {
            seed.version = version;
            let start = stream.len();
            encode(&seed, &mut stream);
            expected.push(stream[start..].to_vec());
        }
        let mut held: Vec<u8> = Vec::new();
        let mut found = Vec::new();
        let (mut rest, mut cuts) = (stream.as_slice(), cuts.into_iter().cycle());
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
            rest = tail;
            held.extend_from_slice(piece);
            while let Some((packet, used)) = decode_frame(&held, MAX, version).expect("valid") {
                let mut out = Vec::new();
                packet.encode(version, &mut out).expect("can be written");
                found.push(out);
                held.drain(..used);
            }
        }
        prop_assert!(held.is_empty());
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn random_bytes_never_panic(version in version(), bytes in vec(any::<u8>(), 0..80)) {
        exercise(&bytes, version);
    }

    #[test]
    fn random_bodies_never_panic(version in version(), first in any::<u8>(), body in vec(any::<u8>(), 0..120)) {
        let mut bytes = vec![first, body.len() as u8];
        bytes.extend(body);
        exercise(&bytes, version);
    }

    #[test]
    fn mutated_packets_never_panic(
        seed in seed(), other in version(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut bytes = Vec::new();
        encode(&seed, &mut bytes);
        for (place, value) in changes {
            let index = place.index(bytes.len());
            bytes[index] = value;
        }
        exercise(&bytes, seed.version);
        exercise(&bytes, other);
    }
}
