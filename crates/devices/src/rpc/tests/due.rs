//! When calls are looked at: those alone whose time has come.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::super::pending::PendingRpcs;
use super::*;
use crate::downlink::ToDeviceRpc;

fn numbered(device: DeviceId, number: i32, expires_ms: i64, persistent: bool) -> Arc<ToDeviceRpc> {
    Arc::new(ToDeviceRpc {
        id: new_uuid(),
        tenant: TenantId::NULL,
        device,
        number,
        method: String::new(),
        params: String::new(),
        expires_ms,
        oneway: false,
        persistent,
    })
}

#[test]
fn whatever_happens_to_calls_it_is_known_when_to_look_at_which() {
    let mut random = StdRng::seed_from_u64(7);
    for submit_strategy in [
        RpcSubmitStrategy::Burst,
        RpcSubmitStrategy::SequentialOnAckFromDevice,
        RpcSubmitStrategy::SequentialOnResponseFromDevice,
    ] {
        let options = Options {
            submit_strategy,
            max_retries: 2,
            ..Options::default()
        };
        let mut book = PendingRpcs::starting_at(0, &options);
        let devices = [DeviceId::new(), DeviceId::new()];
        let mut calls = Vec::new();
        let mut now = 0;
        for _ in 0..2_000 {
            now += random.random_range(0..4_000);
            let number = book.next_number();
            let device = devices[random.random_range(0..devices.len())];
            let expires = now + random.random_range(1..60_000);
            let call = numbered(device, number, expires, random.random());
            book.add(call.clone(), None, None, true);
            calls.push(call);
            let call = &calls[random.random_range(0..calls.len())];
            match random.random_range(0..6) {
                0 => {
                    book.await_acknowledgement(call, Some(now));
                }
                1 => {
                    book.await_acknowledgement(call, None);
                }
                2 => book.give_up(call, now),
                3 => {
                    book.mark_acknowledged(call, now);
                }
                4 => {
                    book.take_back(call);
                }
                _ => {
                    book.remove(call.device, call.number);
                }
            }
            let late = book.take_late(now);
            assert!(late.expired.iter().all(|pending| pending.rpc.expires_ms <= now));
            let [noted, as_they_say] = book.due();
            assert_eq!(noted, as_they_say);
            assert!(noted.first().is_none_or(|(due, ..)| *due > now));
            calls.retain(|call| book.get(call.device, call.number).is_some());
            calls.push(numbered(device, -1, now, false));
        }
    }
}
