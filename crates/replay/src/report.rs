//! What is answered.

use std::collections::BTreeMap;
use std::time::Duration;

use fieldline_model::kv::KvValue;
use fieldline_model::replay::{ReplayAlarms, ReplayNode, ReplayPoint, ReplayStored, ReplaySummary};
use fieldline_model::{RuleChainId, RuleNodeId};
use fieldline_rules::chain_registry::TenantChains;
use fieldline_rules::node_types::PREFIX;
use fieldline_rules::worker::node_activity::{NodeActivity, NodeActivityLog};

use super::alarms::AlarmTimeline;
use super::difference::{OriginatorNames, replayed_alarm};
use super::is_executed;
use super::plan::ReplayPlan;
use super::play::ReplayProgress;
use super::record::ReplayRecord;

/// Names of series that are told apart.
const MAX_KEYS: usize = 10_000;
const OTHER_KEYS: &str = "...";

pub(super) fn summary(
    plan: &ReplayPlan,
    progress: &ReplayProgress,
    record: &ReplayRecord,
    took: Duration,
) -> ReplaySummary {
    let failure = progress.last_failure.as_ref();
    ReplaySummary {
        rule_chain_id: plan.chain_id(),
        rule_chain_name: plan.chain.name.clone(),
        draft: plan.is_draft,
        start_ts: plan.start,
        end_ts: progress.until,
        devices: plan.devices.len() as u64,
        series: plan.series.values().map(|keys| keys.len() as u64).sum(),
        messages: progress.messages,
        follow_ups: progress.follow_ups,
        dropped_follow_ups: progress.dropped,
        timers: progress.timers,
        failed: progress.failed,
        last_failure: failure
            .map(|failure| format!("{} / {}: {}", failure.chain, failure.node, failure.error)),
        duration_ms: took.as_millis() as u64,
        truncated_by: progress.truncated_by.map(str::to_owned),
        not_changed: record
            .changes
            .iter()
            .map(|(what, count)| (what.clone().into_owned(), *count))
            .collect(),
    }
}

pub(super) fn stored(record: &ReplayRecord, samples: usize) -> ReplayStored {
    let mut keys: BTreeMap<String, u64> = BTreeMap::new();
    let mut sample = Vec::new();
    for (subject, series) in &record.series {
        for (key, points) in series {
            let is_known = keys.contains_key(&**key) || keys.len() < MAX_KEYS;
            let name = if is_known { &**key } else { OTHER_KEYS };
            *keys.entry(name.to_owned()).or_default() += points.len() as u64;
            let point = |(ts, value): (&i64, &KvValue)| ReplayPoint {
                entity: subject.entity,
                key: key.to_string(),
                ts: *ts,
                stored: None,
                replayed: Some(value.to_json()),
            };
            let room = samples.saturating_sub(sample.len());
            sample.extend(points.iter().take(room).map(point));
        }
    }
    ReplayStored {
        points: record.points(),
        keys,
        attributes: record.attribute_writes.clone(),
        sample,
    }
}

pub(super) fn alarms(
    courses: &[AlarmTimeline],
    updates: u64,
    names: &OriginatorNames,
    limit: usize,
) -> ReplayAlarms {
    let count = |is: fn(&&AlarmTimeline) -> bool| courses.iter().filter(is).count() as u64;
    let mut touched: Vec<&AlarmTimeline> = courses.iter().filter(|course| course.is_touched).collect();
    touched.sort_by_key(|course| course.alarm.start_ts);
    ReplayAlarms {
        active_at_start: count(|course| course.was_active),
        raised: count(|course| !course.was_active),
        updated: updates,
        cleared: count(|course| course.cleared),
        alarms: touched
            .into_iter()
            .take(limit)
            .map(|course| replayed_alarm(course, names))
            .collect(),
    }
}

/// A node, before it is known what it did.
pub(super) struct ReplayNodeInfo {
    id: RuleNodeId,
    chain: RuleChainId,
    chain_name: String,
    name: String,
    class: String,
    /// Whether it is of the chain that is replayed.
    is_own: bool,
}

/// The nodes of all chains, those of the replayed one first.
pub(super) fn nodes_of(chains: &TenantChains, own: RuleChainId) -> Vec<ReplayNodeInfo> {
    let mut shown: Vec<ReplayNodeInfo> = chains
        .all()
        .flat_map(|chain| {
            chain.nodes.iter().map(move |node| ReplayNodeInfo {
                id: node.id,
                chain: chain.id,
                chain_name: chain.name.to_string(),
                name: node.name.to_string(),
                class: format!("{PREFIX}{}", node.class),
                is_own: chain.id == own,
            })
        })
        .collect();
    shown.sort_by_key(|node| (!node.is_own, node.chain));
    shown
}

pub(super) fn nodes(shown: &[ReplayNodeInfo], watch: &NodeActivityLog) -> Vec<ReplayNode> {
    let nothing = NodeActivity::default();
    shown
        .iter()
        .filter(|node| node.is_own || watch.node(node.id).is_some())
        .map(|node| {
            let did = watch.node(node.id).unwrap_or(&nothing);
            let total_us = did.time.as_micros() as u64;
            ReplayNode {
                id: node.id,
                rule_chain_id: node.chain,
                rule_chain_name: node.chain_name.clone(),
                name: node.name.clone(),
                node_type: node.class.clone(),
                executed: is_executed(&node.class),
                input: did.input,
                output: did
                    .output
                    .iter()
                    .map(|(label, count)| (label.to_string(), *count))
                    .collect(),
                failures: did.failures,
                last_error: did.last_error.clone(),
                total_us,
                mean_us: did.time.as_secs_f64() * 1e6 / did.input.max(1) as f64,
            }
        })
        .collect()
}
