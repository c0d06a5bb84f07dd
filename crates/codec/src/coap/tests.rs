use proptest::prelude::*;

use super::*;

fn number(value: u16) -> CoapOptionNumber {
    CoapOptionNumber(value)
}

#[test]
fn what_does_not_follow_the_format_is_told_apart() {
    let malformed = |datagram: &[u8]| match CoapMessage::decode(datagram) {
        Err(CoapDecodeError::Malformed(header, _)) => header.id,
        other => panic!("{datagram:02x?}: {other:?}"),
    };
    for datagram in [&[][..], &[0x40, 1, 0], &[0x80, 1, 0, 1], &[0x00, 1, 0, 1]] {
        assert_eq!(
            CoapMessage::decode(datagram),
            Err(CoapDecodeError::NotCoap),
            "{datagram:02x?}"
        );
    }
    for datagram in [
        &[0x49, 1, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9][..],
        &[0x44, 1, 0, 7, 1, 2],
        &[0x40, 0, 0, 7, 0xFF, 1],
        &[0x41, 0, 0, 7, 1],
        &[0x40, 1, 0, 7, 0xFF],
        &[0x40, 1, 0, 7, 0xB5, b'a'],
        &[0x40, 1, 0, 7, 0xF0],
        &[0x40, 1, 0, 7, 0x0F],
        &[0x40, 1, 0, 7, 0xD0],
        &[0x40, 1, 0, 7, 0xE0, 0xFF],
        &[0x40, 1, 0, 7, 0xE0, 0xFF, 0xFF],
        &[0x40, 1, 0, 7, 0xE0, 0xFE, 0x00, 0xE0, 0xFE, 0x00],
    ] {
        assert_eq!(malformed(datagram), 7);
    }
    let many: Vec<u8> = [0x40, 1, 0, 7].into_iter().chain([0xB0]).chain([0; 64]).collect();
    assert_eq!(malformed(&many), 7, "65 options");
    assert!(CoapMessage::decode(&many[..68]).is_ok());
}

#[test]
fn blocks_and_numbers_keep_within_their_bits() {
    assert_eq!(CoapBlock::decode(&[]), CoapBlock::new(0, false, 0));
    assert_eq!(CoapBlock::decode(&[0x1E]), CoapBlock::new(1, true, 6));
    assert_eq!(
        CoapBlock::decode(&[0xFF, 0xFF, 0xF6]),
        CoapBlock::new((1 << 20) - 1, false, 6)
    );
    assert_eq!(CoapBlock::decode(&[0x0F]), None, "the reserved size");
    assert_eq!(CoapBlock::decode(&[0, 0, 0, 1]), None);
    assert_eq!(CoapBlock::new(1 << 20, false, 0), None);
    let block = CoapBlock::new(3, true, 2).unwrap();
    assert_eq!((block.size(), block.offset(), block.encode()), (64, 192, 0x3A));
    assert_eq!((read_uint(&[]), read_uint(&[1, 0])), (Some(0), Some(256)));
    assert_eq!(read_uint(&[0; 5]), None);
}

proptest! {
    #[test]
    fn decoding_reads_what_encoding_wrote(
        code in 1_u8..,
        id: u16,
        token in proptest::collection::vec(any::<u8>(), 0..=8),
        mut options in proptest::collection::vec(
            (0_u16.., proptest::collection::vec(any::<u8>(), 0..400)), 0..8),
        payload in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        options.sort();
        let token = CoapToken::new(&token).unwrap();
        let mut encoder = CoapEncoder::new(CoapMessageType::NonConfirmable, CoapCode(code), id, token);
        for (option, value) in &options {
            encoder.option(number(*option), value);
        }
        let datagram = encoder.finish(&payload);
        let message = CoapMessage::decode(&datagram).unwrap();
        prop_assert_eq!((message.kind, message.code.0, message.id), (CoapMessageType::NonConfirmable, code, id));
        prop_assert_eq!((message.token, message.payload), (token, &payload[..]));
        let read: Vec<_> = message.options().map(|(option, value)| (option.0, value.to_vec())).collect();
        prop_assert_eq!(read, options);
    }

    #[test]
    fn no_datagram_makes_it_fail(datagram in proptest::collection::vec(any::<u8>(), 0..128)) {
        if let Ok(message) = CoapMessage::decode(&datagram) {
            let taken: usize = message.options().map(|(_, value)| value.len()).sum();
            prop_assert!(taken + message.payload.len() < datagram.len());
        }
    }
}
