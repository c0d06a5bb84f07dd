//! Time-series chunks from disk: with the checksum put right, so that the decoder behind it is reached.

#![no_main]

use fieldline_storage::series::chunk::{decode, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = decode(bytes);
    let mut chunk = vec![1, 0, 0, 0, 0];
    chunk.extend_from_slice(bytes);
    let crc = crc32c::crc32c(bytes);
    chunk[1..5].copy_from_slice(&crc.to_le_bytes());
    if let Ok(columns) = decode(&chunk) {
        // What decodes is a chunk, and comes back as it was.
        let points = columns.into_points();
        let again = decode(&encode(&points))
            .expect("an encoded chunk decodes")
            .into_points();
        // NaN is not equal to itself, its text is.
        assert_eq!(format!("{points:?}"), format!("{again:?}"));
    }
});
