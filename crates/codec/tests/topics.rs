//! Topic names and filters, with the examples of MQTT 5 §4.7 and §4.8.

use fieldline_codec::topic::{TopicFilter, TopicFilterError, is_valid_name, matches};

#[test]
fn filters_match_as_the_specification_says() {
    let table = [
        ("sport/tennis/player1/#", "sport/tennis/player1", true),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
        (
            "sport/tennis/player1/#",
            "sport/tennis/player1/score/wimbledon",
            true,
        ),
        ("sport/tennis/player1/#", "sport/tennis/player10", false),
        ("sport/#", "sport", true),
        ("#", "any/thing", true),
        ("#", "/", true),
        ("#", "$SYS/load", false),
        ("+/load", "$SYS/load", false),
        ("$SYS/#", "$SYS/load", true),
        ("$SYS/+", "$SYS/load", true),
        ("sport/tennis/+", "sport/tennis/player1", true),
        ("sport/tennis/+", "sport/tennis/player1/ranking", false),
        ("sport/+", "sport", false),
        ("sport/+", "sport/", true),
        ("+/+", "/finance", true),
        ("/+", "/finance", true),
        ("+", "/finance", false),
        ("a/b", "a/b/", false),
        ("a/b", "A/b", false),
        ("a/b/c", "a/b", false),
    ];
    for (filter, topic, expected) in table {
        assert_eq!(matches(filter, topic), expected, "{filter} on {topic}");
    }
}

#[test]
fn misplaced_wildcards_are_refused() {
    for filter in ["#", "+", "a/#", "+/a/#", "/", "a//b", "$SYS/#", "a b/ü"] {
        assert!(TopicFilter::parse(filter).is_ok(), "{filter}");
    }
    for filter in ["a#", "a/#/b", "#/", "a+", "+a/b", "a/b#"] {
        assert_eq!(
            TopicFilter::parse(filter),
            Err(TopicFilterError::Wildcard),
            "{filter}"
        );
    }
    assert_eq!(TopicFilter::parse(""), Err(TopicFilterError::Empty));
    assert_eq!(TopicFilter::parse("a\0"), Err(TopicFilterError::Nul));
    assert_eq!(
        TopicFilter::parse(&"a".repeat(65_536)),
        Err(TopicFilterError::TooLong)
    );
}

#[test]
fn share_names_are_split_off() {
    let shared = TopicFilter::parse("$share/group/a/+").expect("valid");
    assert_eq!((shared.share_name, shared.filter), (Some("group"), "a/+"));
    assert!(shared.matches("a/b") && shared.has_wildcard());
    assert_eq!(TopicFilter::parse("$share//a"), Err(TopicFilterError::ShareName));
    assert_eq!(
        TopicFilter::parse("$share/g+/a"),
        Err(TopicFilterError::ShareName)
    );
    assert_eq!(TopicFilter::parse("$share/g/"), Err(TopicFilterError::Empty));
    assert_eq!(TopicFilter::parse("$share/g"), Err(TopicFilterError::Empty));
    assert_eq!(
        TopicFilter::parse("$shared/g").map(|filter| filter.share_name),
        Ok(None)
    );
}

#[test]
fn topic_names_have_no_wildcards() {
    assert!(is_valid_name("v1/devices/me/telemetry") && is_valid_name("/") && is_valid_name("$SYS"));
    assert!(!is_valid_name("") && !is_valid_name("a/+") && !is_valid_name("a#") && !is_valid_name("a\0b"));
}
