//! What clients of the publish/subscribe broker show who have not been let in: messages of SCRAM, tokens and the keys that they are
//! signed with. The first byte says what it is, and two parts follow with a line feed and a zero between them.

#![no_main]

use fieldline_entities::broker_access::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((what, rest)) = input.split_first() else {
        return;
    };
    let between = rest.windows(2).position(|bytes| bytes == b"\n\0");
    let (one, other) = match between {
        Some(place) => (&rest[..place], &rest[place + 2..]),
        None => (rest, &rest[..0]),
    };
    match what % 2 {
        0 => fuzzing::scram_exchange(one, other),
        _ => fuzzing::token(&String::from_utf8_lossy(one), &String::from_utf8_lossy(other)),
    }
});
