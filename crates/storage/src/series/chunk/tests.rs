use fieldline_model::kv::KvValue;
use proptest::prelude::*;

use super::*;

fn any_value() -> impl Strategy<Value = KvValue> {
    prop_oneof![
        any::<bool>().prop_map(KvValue::Bool),
        any::<i64>().prop_map(KvValue::Long),
        prop::num::f64::ANY
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(KvValue::Double),
        ".{0,12}".prop_map(|text| KvValue::Text(text.into())),
        Just(KvValue::Json("[1]".into())),
    ]
}

/// Points of one type, as series mostly are, or of all.
fn values() -> impl Strategy<Value = Vec<KvValue>> {
    use proptest::collection::vec;
    prop_oneof![
        vec(any_value(), 1..300),
        vec((-50i64..50).prop_map(KvValue::Long), 1..600),
        vec(
            (0i32..5000).prop_map(|n| KvValue::Double(f64::from(n) / 10.0)),
            1..600
        ),
        vec(any::<bool>().prop_map(KvValue::Bool), 1..100),
    ]
}

fn points() -> impl Strategy<Value = Vec<StoredPoint>> {
    let start = prop_oneof![any::<i64>(), Just(1_700_000_000_000i64)];
    let steps = prop_oneof![
        Just(vec![900_000u32]),
        proptest::collection::vec(1u32..100_000, 1..20)
    ];
    let ttls = prop_oneof![Just(vec![0u32]), Just(vec![86_400]), Just(vec![0, 5, u32::MAX])];
    (values(), start, steps, ttls).prop_map(|(values, start, steps, ttls)| {
        let mut ts = start.min(i64::MAX - 1_000_000_000);
        values
            .into_iter()
            .enumerate()
            .map(|(n, value)| {
                ts += i64::from(steps[n % steps.len()]);
                StoredPoint {
                    ts,
                    ttl: ttls[n / 3 % ttls.len()],
                    value,
                }
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn a_chunk_comes_back_as_it_was(points in points()) {
        let bytes = encode(&points);
        let (header, _) = decode_header(&bytes).unwrap();
        prop_assert_eq!(header.count, points.len());
        prop_assert_eq!(header.last_ts, points.last().unwrap().ts);
        let earliest = points.iter().filter_map(|point| expiry(point.ts, point.ttl)).min();
        prop_assert_eq!(header.first_expiry, earliest);
        let columns = decode(&bytes).unwrap();
        prop_assert_eq!(columns.into_points(), points);
    }

    #[test]
    fn a_flipped_bit_never_goes_unnoticed(points in points(), place in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut bytes = encode(&points);
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn damage_behind_a_right_checksum_does_no_harm(
        points in points(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = encode(&points);
        let at = place.index(bytes.len());
        bytes[at] = byte;
        let crc = crc32c::crc32c(&bytes[5..]);
        bytes[1..5].copy_from_slice(&crc.to_le_bytes());
        let _ = decode(&bytes);
    }
}

#[test]
fn regular_series_take_little_room() {
    let points: Vec<StoredPoint> = (0..2000)
        .map(|n| StoredPoint {
            ts: 1_700_000_000_000 + n * 900_000,
            ttl: 0,
            value: KvValue::Long(17),
        })
        .collect();
    assert!(encode(&points).len() < 80);
}
