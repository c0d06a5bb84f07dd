//! The lists of the administration.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use fieldline_codec::topic::TopicFilter;
use fieldline_core::ports::{
    BrokerAdminError, BrokerAdminResult, BrokerClientSubscription, BrokerClientType, BrokerRetainedFilter,
    BrokerRetainedMessage, BrokerSessionFilter, BrokerSessionInfo, BrokerShareGroup,
    BrokerSubscriptionFilter,
};
use fieldline_model::page::{PageData, PageLink};

use super::{info_of, retained_row, shown};
use crate::broker::Broker;
use crate::message::BrokerMessage;
use crate::paging::{PageBuilder, RowOrder, SoughtText, has, permits};
use crate::session::{BrokerSession, StoredSubscription};

/// What is taken under a lock at a time: sessions, subscriptions of one, or retained messages.
const SLICE: usize = 1_024;
/// Most bytes of the payloads on a page of several retained messages.
const MAX_PAGE_BYTES: usize = 32 << 20;
/// Most members that are shown of a shared subscription.
const MAX_MEMBERS: usize = 1_000;
const SHARED: &str = "$share/";

/// How rows are sorted by a property; `Some(None)` if they come in this order.
pub(super) type KnownOrder<T> = Option<Option<RowOrder<T>>>;

pub(super) fn sought(text: Option<&str>) -> Option<SoughtText> {
    text.map(SoughtText::new)
}

fn is_between(at_ms: i64, between: Option<(i64, i64)>) -> bool {
    between.is_none_or(|(first, last)| (first..=last).contains(&at_ms))
}

/// Passes all sessions to `visit`, by client identifier.
pub(super) fn each_session(broker: &Broker, mut visit: impl FnMut(&Arc<BrokerSession>)) {
    let mut last: Option<Arc<str>> = None;
    loop {
        let slice: Vec<Arc<BrokerSession>> = {
            let sessions = broker.sessions.read();
            let start = match &last {
                Some(last) => Bound::Excluded(&**last),
                None => Bound::Unbounded,
            };
            let rest = sessions.range::<str, _>((start, Bound::Unbounded));
            rest.take(SLICE).map(|(_, session)| session.clone()).collect()
        };
        for session in &slice {
            visit(session);
        }
        match slice.last() {
            Some(session) => last = Some(session.client_id.clone()),
            None => return,
        }
    }
}

/// Passes the subscriptions of a session from a filter on to `visit`, until it returns `false`.
fn each_subscription(
    session: &BrokerSession,
    from: &str,
    mut visit: impl FnMut(&str, &StoredSubscription) -> bool,
) {
    let mut last: Option<Box<str>> = None;
    loop {
        let mut slice: Vec<(Box<str>, StoredSubscription)> = {
            let inner = session.lock();
            let start = match &last {
                Some(last) => Bound::Excluded(&**last),
                None => Bound::Included(from),
            };
            let rest = inner.subscriptions.range::<str, _>((start, Bound::Unbounded));
            rest.take(SLICE)
                .map(|(filter, subscription)| (filter.clone(), *subscription))
                .collect()
        };
        let is_last = slice.len() < SLICE;
        for (filter, subscription) in &slice {
            if !visit(filter, subscription) {
                return;
            }
        }
        last = match slice.pop() {
            Some((filter, _)) if !is_last => Some(filter),
            _ => return,
        };
    }
}

const fn rank(client_type: BrokerClientType) -> u8 {
    match client_type {
        BrokerClientType::Application => 0,
        BrokerClientType::Device => 1,
    }
}

fn session_order(property: &str) -> KnownOrder<BrokerSessionInfo> {
    let order: RowOrder<BrokerSessionInfo> = match property {
        // There is one node.
        "id" | "clientId" | "nodeId" => return Some(None),
        "connectionState" => |one, other| other.is_connected.cmp(&one.is_connected),
        "clientType" => |one, other| rank(one.client_type).cmp(&rank(other.client_type)),
        "subscriptionsCount" => |one, other| one.subscriptions.cmp(&other.subscriptions),
        "connectedAt" => |one, other| one.connected_ms.cmp(&other.connected_ms),
        "disconnectedAt" => |one, other| one.disconnected_ms.cmp(&other.disconnected_ms),
        "clientIpAdr" => |one, other| one.address.cmp(&other.address),
        "cleanStart" => |one, other| one.clean_start.cmp(&other.clean_start),
        "queuedMsgs" => |one, other| one.queued.cmp(&other.queued),
        "droppedMsgs" => |one, other| one.dropped.cmp(&other.dropped),
        _ => return None,
    };
    Some(Some(order))
}

fn is_listed(filter: &BrokerSessionFilter, address: Option<&SoughtText>, info: &BrokerSessionInfo) -> bool {
    let seen_ms = match info.is_connected {
        true => info.connected_ms,
        false => info.disconnected_ms,
    };
    filter.is_connected.is_none_or(|it| it == info.is_connected)
        && filter.client_type.is_none_or(|it| it == info.client_type)
        && filter.clean_start.is_none_or(|it| it == info.clean_start)
        && filter
            .subscriptions
            .is_none_or(|(order, count)| order.holds(info.subscriptions, count))
        && is_between(seen_ms, filter.between_ms)
        && address.is_none_or(|sought| {
            info.address
                .is_some_and(|address| sought.is_in(&address.to_string()))
        })
}

/// A page of the sessions.
pub(super) fn sessions(
    broker: &Broker,
    filter: &BrokerSessionFilter,
    link: PageLink,
) -> BrokerAdminResult<PageData<BrokerSessionInfo>> {
    let text = sought(link.text_search.as_deref());
    let address = sought(filter.address.as_deref());
    let by_client: RowOrder<BrokerSessionInfo> = |one, other| one.client_id.cmp(&other.client_id);
    let mut page = PageBuilder::new(link, session_order, by_client)?;
    each_session(broker, |session| {
        if !has(text.as_ref(), &session.client_id) {
            return;
        }
        let info = info_of(session, &session.lock());
        if is_listed(filter, address.as_ref(), &info) {
            page.offer(|| info);
        }
    });
    Ok(page.finish())
}

fn subscription_order(property: &str) -> KnownOrder<BrokerClientSubscription> {
    let order: RowOrder<BrokerClientSubscription> = match property {
        "clientId" => return Some(None),
        "topicFilter" => |one, other| one.subscription.filter.cmp(&other.subscription.filter),
        "qos" => |one, other| one.subscription.qos.cmp(&other.subscription.qos),
        "noLocal" => |one, other| one.subscription.no_local.cmp(&other.subscription.no_local),
        "retainAsPublish" => |one, other| {
            let (one, other) = (&one.subscription, &other.subscription);
            one.retain_as_published.cmp(&other.retain_as_published)
        },
        "retainHandling" => |one, other| {
            let (one, other) = (&one.subscription, &other.subscription);
            one.retain_handling.cmp(&other.retain_handling)
        },
        "subscriptionId" => |one, other| {
            let (one, other) = (one.subscription.id, other.subscription.id);
            (one.is_none(), one).cmp(&(other.is_none(), other))
        },
        _ => return None,
    };
    Some(Some(order))
}

/// A page of the subscriptions of all clients.
pub(super) fn subscriptions(
    broker: &Broker,
    filter: &BrokerSubscriptionFilter,
    link: PageLink,
) -> BrokerAdminResult<PageData<BrokerClientSubscription>> {
    let text = sought(link.text_search.as_deref());
    let client = sought(filter.client_id.as_deref());
    let part = sought(filter.filter.as_deref());
    let matches = |name: &str| {
        let topic = filter.topic.as_deref();
        topic.is_none_or(|topic| TopicFilter::parse(name).is_ok_and(|parsed| parsed.matches(topic)))
    };
    let by_client: RowOrder<BrokerClientSubscription> = |one, other| {
        let by_filter = || one.subscription.filter.cmp(&other.subscription.filter);
        one.client_id.cmp(&other.client_id).then_with(by_filter)
    };
    let mut page = PageBuilder::new(link, subscription_order, by_client)?;
    each_session(broker, |session| {
        if !has(text.as_ref(), &session.client_id) || !has(client.as_ref(), &session.client_id) {
            return;
        }
        each_subscription(session, "", |name, subscription| {
            let StoredSubscription { options, id } = subscription;
            let is_listed = has(part.as_ref(), name)
                && permits(&filter.qos, &(options.qos as u8))
                && permits(&filter.retain_handling, &(options.retain_handling as u8))
                && filter.no_local.is_none_or(|it| it == options.no_local)
                && filter
                    .retain_as_published
                    .is_none_or(|it| it == options.retain_as_published)
                && filter.id.is_none_or(|it| it == *id)
                && matches(name);
            if is_listed {
                page.offer(|| BrokerClientSubscription {
                    client_id: session.client_id.clone(),
                    subscription: shown(name, subscription),
                });
            }
            true
        });
    });
    Ok(page.finish())
}

/// Filter, share name and kind of the members of a shared subscription.
type GroupKey = (Box<str>, Box<str>, u8);

fn group_order(property: &str) -> KnownOrder<BrokerShareGroup> {
    let order: RowOrder<BrokerShareGroup> = match property {
        "topicFilter" => return Some(None),
        "shareName" => |one, other| one.share_name.cmp(&other.share_name),
        _ => return None,
    };
    Some(Some(order))
}

/// A page of the shared subscriptions.
pub(super) fn share_groups(
    broker: &Broker,
    share_name: Option<&str>,
    client_id: Option<&str>,
    link: PageLink,
) -> BrokerAdminResult<PageData<BrokerShareGroup>> {
    let (text, share) = (sought(link.text_search.as_deref()), sought(share_name));
    let client = sought(client_id);
    let by_filter: RowOrder<BrokerShareGroup> = |one, other| one.filter.cmp(&other.filter);
    let mut page = PageBuilder::new(link, group_order, by_filter)?;
    let mut groups: BTreeMap<GroupKey, (BrokerShareGroup, bool)> = BTreeMap::new();
    each_session(broker, |session| {
        each_subscription(session, SHARED, |name, _| {
            if !name.starts_with(SHARED) {
                return false;
            }
            let Ok(TopicFilter {
                share_name: Some(share_name),
                filter,
            }) = TopicFilter::parse(name)
            else {
                return true;
            };
            if !has(text.as_ref(), filter) || !has(share.as_ref(), share_name) {
                return true;
            }
            let client_type = session.lock().client_type;
            let key = (filter.into(), share_name.into(), rank(client_type));
            let (group, is_sought) = groups.entry(key).or_insert_with(|| {
                let group = BrokerShareGroup {
                    share_name: share_name.into(),
                    filter: filter.into(),
                    client_type,
                    members: Vec::new(),
                };
                (group, false)
            });
            *is_sought |= has(client.as_ref(), &session.client_id);
            if group.members.len() < MAX_MEMBERS {
                let member = (session.client_id.clone(), session.is_connected());
                group.members.push(member);
            }
            true
        });
    });
    for (group, is_sought) in groups.into_values() {
        if is_sought {
            page.offer(|| group);
        }
    }
    Ok(page.finish())
}

fn retained_order(property: &str) -> KnownOrder<Arc<BrokerMessage>> {
    let order: RowOrder<Arc<BrokerMessage>> = match property {
        "topic" => |one, other| one.topic.cmp(&other.topic),
        "qos" => |one, other| one.qos.cmp(&other.qos),
        "createdTime" => |one, other| one.created_ms.cmp(&other.created_ms),
        _ => return None,
    };
    Some(Some(order))
}

/// A page of the retained messages.
pub(super) fn retained(
    broker: &Broker,
    filter: &BrokerRetainedFilter,
    mut link: PageLink,
) -> BrokerAdminResult<PageData<BrokerRetainedMessage>> {
    let text = sought(link.text_search.as_deref());
    let topic = sought(filter.topic.as_deref());
    let payload = sought(filter.payload.as_deref());
    let now_ms = broker.clock.now_ms();
    // They come in no order.
    link.sort_property.get_or_insert_with(|| "topic".to_owned());
    let by_topic: RowOrder<Arc<BrokerMessage>> = |one, other| one.topic.cmp(&other.topic);
    let mut page = PageBuilder::new(link, retained_order, by_topic)?;
    let mut start = 0;
    loop {
        let slice = broker.retained.read().slice(start, SLICE);
        let Some(slice) = slice else { break };
        start += SLICE;
        for message in slice {
            let is_listed = !message.is_expired(now_ms)
                && has(text.as_ref(), &message.topic)
                && has(topic.as_ref(), &message.topic)
                && permits(&filter.qos, &(message.qos as u8))
                && is_between(message.created_ms, filter.between_ms)
                && (payload.is_none() || has(payload.as_ref(), &String::from_utf8_lossy(&message.payload)));
            if is_listed {
                page.offer(|| message);
            }
        }
    }
    let page = page.finish();
    let bytes: usize = page.data.iter().map(|message| message.payload.len()).sum();
    if bytes > MAX_PAGE_BYTES && page.data.len() > 1 {
        return Err(BrokerAdminError::Invalid(format!(
            "The payloads of this page have more than {MAX_PAGE_BYTES} bytes: ask for a smaller one"
        )));
    }
    Ok(page.map(|message| retained_row(&message)))
}
