//! Publishes smart-meter telemetry over many MQTT connections in closed loop, and prints what was acknowledged.
//!
//! `mqtt_load HOST:PORT CONNECTIONS IN_FLIGHT SECONDS TOKEN…` — connections use the tokens in turn, so the server must allow
//! several sessions of a device (`FIELDLINE_MQTT_SESSIONS_PER_DEVICE`) where there are fewer tokens than connections.
//!
//! A connection writes IN_FLIGHT publishes at once and waits for all their acknowledgements, as a device with a window does.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fieldline_codec::{Connect, Packet, PacketId, Publish, PublishTemplate, QoS, Version, decode_frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

type Failure = Box<dyn Error + Send + Sync>;

struct Shared {
    acknowledged: AtomicU64,
    stop: AtomicBool,
    latencies: Mutex<Vec<u32>>,
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, connections, in_flight, seconds, tokens @ ..] = args.as_slice() else {
        return Err("usage: mqtt_load HOST:PORT CONNECTIONS IN_FLIGHT SECONDS TOKEN...".into());
    };
    let (connections, in_flight, seconds): (usize, u16, u64) =
        (connections.parse()?, in_flight.parse()?, seconds.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let shared = Arc::new(Shared {
        acknowledged: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        latencies: Mutex::default(),
    });
    runtime.block_on(async {
        let mut devices = Vec::new();
        let connecting = Instant::now();
        for index in 0..connections {
            let token = tokens
                .get(index % tokens.len().max(1))
                .ok_or("at least one token is needed")?;
            devices.push(connect(address, token, index).await?);
        }
        println!(
            "{connections} connections in {:.2} s",
            connecting.elapsed().as_secs_f64()
        );
        let started = Instant::now();
        let tasks: Vec<_> = devices
            .into_iter()
            .map(|stream| tokio::spawn(publish(stream, in_flight, shared.clone())))
            .collect();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let (acknowledged, elapsed) = (shared.acknowledged.load(Ordering::Relaxed), started.elapsed());
        shared.stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await??;
        }
        let mut latencies = std::mem::take(&mut *shared.latencies.lock().map_err(|_| "a task has panicked")?);
        latencies.sort_unstable();
        let at = |part: f64| {
            latencies
                .get((latencies.len() as f64 * part) as usize)
                .copied()
                .unwrap_or(0)
        };
        println!(
            "{:.0} messages/s acknowledged; latency p50 {} us, p99 {} us, p99.9 {} us",
            acknowledged as f64 / elapsed.as_secs_f64(),
            at(0.5),
            at(0.99),
            at(0.999)
        );
        Ok(())
    })
}

async fn connect(address: &str, token: &str, index: usize) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut out = Vec::new();
    let name = format!("load-{index}");
    Connect {
        username: Some(token),
        keep_alive: 0,
        ..Connect::new(Version::V311, &name)
    }
    .encode(&mut out)?;
    stream.write_all(&out).await?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await?;
    if answer != [0x20, 2, 0, 0] {
        Err(format!("refused: {answer:?}").into())
    } else {
        Ok(stream)
    }
}

async fn publish(mut stream: TcpStream, in_flight: u16, shared: Arc<Shared>) -> Result<(), Failure> {
    let payload = br#"{"energy":123456,"voltage":229.7,"power":431.25}"#;
    let message = Publish {
        qos: QoS::AtLeastOnce,
        ..Publish::new("v1/devices/me/telemetry", payload)
    };
    let template = PublishTemplate::new(&message, Version::V311)?;
    let mut out = Vec::new();
    for id in 1..=in_flight {
        template.write(PacketId::new(id), &mut out);
    }
    let mut input = [0; 4096];
    let mut latencies = Vec::new();
    while !shared.stop.load(Ordering::Relaxed) {
        let sent = Instant::now();
        stream.write_all(&out).await?;
        let (mut open, mut kept) = (in_flight, 0);
        while open > 0 {
            let read = stream.read(input.get_mut(kept..).unwrap_or_default()).await?;
            if read == 0 {
                return Err("the server has closed a connection".into());
            }
            let (filled, mut used) = (kept + read, 0);
            while let Some((packet, length)) =
                decode_frame(input.get(used..filled).unwrap_or_default(), 4096, Version::V311)?
            {
                used += length;
                if matches!(packet, Packet::Puback(_)) {
                    open -= 1;
                }
            }
            input.copy_within(used..filled, 0);
            kept = filled - used;
        }
        latencies.push(sent.elapsed().as_micros() as u32);
        shared
            .acknowledged
            .fetch_add(u64::from(in_flight), Ordering::Relaxed);
    }
    shared
        .latencies
        .lock()
        .map_err(|_| "a task has panicked")?
        .extend(latencies);
    Ok(())
}
