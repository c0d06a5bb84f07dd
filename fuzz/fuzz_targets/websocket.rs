//! Requests and frames of WebSocket: however the frames are cut, the payload and the answers are the same.

#![no_main]

use fieldline_codec::websocket::{MAX_REQUEST, WebSocketDecoder, refusal, upgrade};
use libfuzzer_sys::fuzz_target;

/// Returns the payload and the answers, or nothing if a frame violates the protocol.
fn decode(input: &[u8], piece: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut decoder, mut payload, mut replies) = (WebSocketDecoder::default(), Vec::new(), Vec::new());
    for piece in input.chunks(piece) {
        let mut bytes = piece.to_vec();
        let length = decoder.decode(&mut bytes, &mut replies).ok()?;
        assert!(length <= piece.len());
        payload.extend_from_slice(&bytes[..length]);
    }
    Some((payload, replies))
}

fuzz_target!(|input: &[u8]| {
    match upgrade(input, "/mqtt", &["mqtt", "mqttv3.1"]) {
        Ok(Some(upgraded)) => assert!(upgraded.request_len <= input.len()),
        Ok(None) => assert!(input.len() < MAX_REQUEST),
        Err(error) => assert!(refusal(error).starts_with("HTTP/1.1 4")),
    }
    let whole = decode(input, input.len().max(1));
    assert_eq!(decode(input, 1), whole);
    assert_eq!(decode(input, 7), whole);
});
