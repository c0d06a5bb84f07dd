//! Datagrams of CoAP: whatever decodes must survive being written and read again.

#![no_main]

use fieldline_codec::coap::{
    CoapBlock, CoapDecodeError, CoapEncoder, CoapMessage, CoapOptionNumber, read_uint,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let message = match CoapMessage::decode(input) {
        Ok(message) => message,
        Err(CoapDecodeError::Malformed(header, _)) => {
            assert_eq!(input[2..4], header.id.to_be_bytes());
            return;
        }
        Err(CoapDecodeError::NotCoap) => return,
    };
    let mut encoder = CoapEncoder::new(message.kind, message.code, message.id, message.token);
    for (number, value) in message.options() {
        encoder.option(number, value);
        let _ = read_uint(value);
        if let (CoapOptionNumber::BLOCK1 | CoapOptionNumber::BLOCK2, Some(block)) =
            (number, CoapBlock::decode(value))
        {
            assert_eq!(CoapBlock::decode(&block.encode().to_be_bytes()[1..]), Some(block));
            assert!(block.offset() < 1 << 30);
        }
    }
    let written = encoder.finish(message.payload);
    assert!(written.len() <= input.len(), "the shortest form is no longer");
    assert_eq!(CoapMessage::decode(&written), Ok(message));
});
