use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpListener;

use super::*;

fn rules(entries: &[&str]) -> EgressRules {
    EgressRules::parse(entries).unwrap()
}

fn verdict(rules: &EgressRules, address: &str) -> Result<(), EgressDenial> {
    check_address(rules, address, address.parse().unwrap())
}

#[test]
fn only_public_addresses_are_reached() {
    let none = EgressRules::default();
    for (reason, addresses) in [
        (
            "loopback",
            "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::1",
        ),
        ("unspecified address", "0.0.0.0 0.255.0.1 :: ::ffff:0.0.0.0"),
        (
            "link-local range",
            "169.254.0.0 169.254.255.255 fe80::1 febf::1 64:ff9b::a9fe:1",
        ),
        (
            "private range",
            "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 fc00::1 fdff::1 fec0::1 \
             ::ffff:10.1.2.3 64:ff9b::a01:203 64:ff9b:1::a01:203 2002:c0a8:1::1 2001:0:a01:203::1 \
             2001:0:808:808::f5fe:fdfc 2606:4700::5efe:10.1.2.3 2606:4700::200:5efe:10.1.2.3",
        ),
        ("shared range of carriers", "100.64.0.0 100.127.255.255"),
        ("benchmarking range", "198.18.0.0 198.19.255.255 2001:2::1"),
        (
            "documentation range",
            "192.0.2.1 198.51.100.1 203.0.113.255 2001:db8::1 3fff::1",
        ),
        ("multicast", "224.0.0.0 239.255.255.255 ff02::1"),
        ("broadcast", "255.255.255.255"),
        (
            "reserved range",
            "240.0.0.0 192.0.0.1 192.88.99.1 100::1 ::8.8.8.8 ::127.0.0.1",
        ),
        (
            "metadata service of a cloud",
            "169.254.169.254 169.254.170.2 100.100.100.200 192.0.0.192 168.63.129.16 fd00:ec2::254 \
             ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1",
        ),
    ] {
        for address in addresses.split_whitespace() {
            let refused = verdict(&none, address).expect_err(address);
            assert_eq!(refused.reason, reason, "{address}");
        }
    }
    for address in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "64:ff9b::101:101",
        "2002:101:101::1",
        "fbff::1",
        "2001:0:808:808::f7f7:f7f7",
    ] {
        assert_eq!(verdict(&none, address), Ok(()), "{address}");
    }
}

#[test]
fn ranges_open_what_they_hold_and_what_stands_for_it() {
    let some = rules(&["10.1.0.0/16", "fd12::/16"]);
    for address in [
        "10.1.2.3",
        "::ffff:10.1.2.3",
        "64:ff9b::a01:203",
        "2002:a01:203::1",
        "fd12::1",
    ] {
        assert_eq!(verdict(&some, address), Ok(()), "{address}");
    }
    for address in [
        "10.2.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "fd13::1",
        "2001:0:a01:203::f5ff:fdfc",
    ] {
        assert!(verdict(&some, address).is_err(), "{address}");
    }
}

#[test]
fn hosts_are_named_exactly_or_by_what_they_are_under() {
    let some = rules(&[
        "mqtt.corp.example",
        "*.lab.example",
        "Db.Corp.Example.:5432",
        "10.0.0.5:1883",
    ]);
    for (host, port, allowed) in [
        ("mqtt.corp.example", 1, true),
        ("MQTT.corp.example.", 1, true),
        ("x.mqtt.corp.example", 1, false),
        ("a.lab.example", 1, true),
        ("a.b.lab.example", 1, true),
        ("lab.example", 1, false),
        ("evillab.example", 1, false),
        ("db.corp.example", 5432, true),
        ("db.corp.example", 5433, false),
        ("10.0.0.5", 1883, true),
        ("10.0.0.5", 22, false),
    ] {
        assert_eq!(some.allows_host(host, port), allowed, "{host}:{port}");
    }
    for wrong in [
        "",
        "*",
        "*.",
        "a b",
        "http://a",
        "a/b",
        "10.0.0/8",
        "127.1",
        "0x7f.1",
        "a:b",
        "a:70000",
        "*.10",
        "a..b",
        "*a.example",
    ] {
        assert!(EgressRules::parse(&[wrong]).is_err(), "{wrong}");
    }
    assert!(EgressRules::parse(&["10.0.0.0/8"; MAX]).is_ok());
    assert!(EgressRules::parse(&["10.0.0.0/8"; MAX + 1]).is_err());
}

const MAX: usize = rules::MAX_ENTRIES;

/// Answers each question with the next list, and stays with the last one.
struct Changing {
    answers: Vec<Vec<&'static str>>,
    asked: AtomicUsize,
}

impl Changing {
    fn new(answers: &[&[&'static str]]) -> Arc<Self> {
        Arc::new(Self {
            answers: answers.iter().map(|answer| answer.to_vec()).collect(),
            asked: AtomicUsize::new(0),
        })
    }
}

impl NameLookup for Changing {
    fn lookup<'a>(&'a self, _: &'a str, port: u16) -> EgressFuture<'a, io::Result<Vec<SocketAddr>>> {
        let turn = self
            .asked
            .fetch_add(1, Ordering::SeqCst)
            .min(self.answers.len() - 1);
        let found = self.answers[turn]
            .iter()
            .map(|ip| SocketAddr::new(ip.parse().unwrap(), port));
        Box::pin(std::future::ready(Ok(found.collect())))
    }
}

#[tokio::test]
async fn of_the_addresses_of_a_name_those_are_taken_that_may_be_reached() {
    let mixed = Changing::new(&[&["127.0.0.1", "1.1.1.1", "10.0.0.1"]]);
    let egress = Egress::fixed(EgressRules::default()).with_lookup(mixed.clone());
    assert_eq!(
        egress.addresses("a.example", 5).await.unwrap(),
        ["1.1.1.1:5".parse().unwrap()]
    );
    // Which of them a proxy takes is not known.
    assert!(egress.check_behind_proxy("a.example", 5).await.is_err());
    let egress = Egress::fixed(rules(&["10.0.0.0/8"])).with_lookup(mixed.clone());
    assert_eq!(egress.addresses("a.example", 5).await.unwrap().len(), 2);
    let egress = Egress::fixed(rules(&["a.example:5"])).with_lookup(mixed.clone());
    assert_eq!(egress.addresses("A.example.", 5).await.unwrap().len(), 3);
    assert_eq!(egress.addresses("a.example", 6).await.unwrap().len(), 1);
    let error = Egress::fixed(EgressRules::default())
        .with_lookup(Changing::new(&[&["10.0.0.1"]]))
        .addresses("a.example", 5)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "address 10.0.0.1 of host a.example is refused: private range; the operator may allow it by egress.allow"
    );
    let error = Egress::fixed(EgressRules::default())
        .with_lookup(Changing::new(&[&["1.1.1.1"]]))
        .addresses("Metadata.Google.Internal.", 80)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("metadata service of a cloud"),
        "{error}"
    );
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_the_second_time_gains_nothing() {
    let inside = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = inside.local_addr().unwrap().port();
    // Public when it is looked at, and inside when it is asked for again: nobody asks again.
    let lookup = Changing::new(&[&["203.0.113.1"], &["127.0.0.1"]]);
    let egress = Egress::fixed(rules(&["203.0.113.0/24"])).with_lookup(lookup.clone());
    let found = egress.addresses("rebinding.example", port).await.unwrap();
    assert_eq!(found, [SocketAddr::from(([203, 0, 113, 1], port))]);
    assert_eq!(lookup.asked.load(Ordering::SeqCst), 1);
    // And whoever connects anew is looked at anew.
    let error = egress.connect("rebinding.example", port).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);

    let client = crate::http::service_client(&egress, std::time::Duration::from_secs(5)).unwrap();
    let url = format!("http://rebinding.example:{port}/");
    let error = client.send(client.post(url.as_str())).await.unwrap_err();
    assert!(
        error.contains("address 127.0.0.1 of host rebinding.example is refused"),
        "{error}"
    );
    let nobody = std::future::poll_fn(|cx| std::task::Poll::Ready(inside.poll_accept(cx).is_pending()));
    assert!(nobody.await, "nothing has connected");
}

#[tokio::test]
async fn addresses_are_looked_at_however_they_are_written() {
    let egress = Egress::fixed(EgressRules::default());
    let client = crate::http::service_client(&egress, std::time::Duration::from_secs(5)).unwrap();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "0",
        "169.254.169.254",
        "LocalHost",
        "[64:ff9b::7f00:1]",
    ] {
        let error = client
            .send(client.post(format!("http://{host}:9/")))
            .await
            .unwrap_err();
        assert!(error.contains("is refused"), "{host}: {error}");
        // Where no URL is parsed, the operating system reads them.
        if !host.starts_with("[64") {
            let error = egress.connect(host, 9).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{host}: {error}");
        }
    }
}

#[tokio::test]
async fn this_machine_is_not_reached_by_its_own_addresses() {
    assert!(is_own("127.0.0.1".parse().unwrap()));
    assert!(!is_own("1.1.1.1".parse().unwrap()));
}
