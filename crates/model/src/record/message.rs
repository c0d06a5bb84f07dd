//! A message of the rule engine as a record's body.
//!
//! ```text
//! message := id [16] · customer [16] · rule chain [16] · node [16] · data type u8
//!            · text label · text type · text queue · count varint · (text name · text value)* · text data
//! text    := length varint · bytes
//! ```
//!
//! The null id stands for none.

use uuid::Uuid;

use super::{KIND_MESSAGE, MESSAGE_VERSION, RecordBatch};
use crate::kv::{CorruptData, pack_key, read_varint, take, take_array, write_varint};
use crate::message::{DataType, MetadataMap, MsgType, QueueMessage};
use crate::{CustomerId, EntityId, EntityKey, NULL_UUID, RuleChainId, RuleNodeId, TenantId};

impl RecordBatch {
    /// Adds a message about an entity of a tenant.
    pub fn push_message(&mut self, tenant: TenantId, message: &QueueMessage) {
        let subject = EntityKey {
            tenant,
            entity: message.originator,
        };
        let start = self.begin_version(MESSAGE_VERSION, KIND_MESSAGE, subject, message.ts);
        let (node, label) = match &message.from {
            Some((node, label)) => (node.0, label.as_str()),
            None => (NULL_UUID, ""),
        };
        let out = &mut self.bytes;
        out.extend_from_slice(message.id.as_bytes());
        let customer = message.customer.map_or(NULL_UUID, |id| id.0);
        out.extend_from_slice(customer.as_bytes());
        let chain = message.rule_chain.map_or(NULL_UUID, |id| id.0);
        out.extend_from_slice(chain.as_bytes());
        out.extend_from_slice(node.as_bytes());
        out.push(match message.data_type {
            DataType::Json => 0,
            DataType::Text => 1,
            DataType::Binary => 2,
        });
        pack_key(label, out);
        pack_key(message.msg_type.name(), out);
        pack_key(message.queue.as_deref().unwrap_or_default(), out);
        write_varint(message.metadata.len() as u64, out);
        for (name, value) in message.metadata.iter() {
            pack_key(name, out);
            pack_key(value, out);
        }
        pack_key(&message.data, out);
        self.end(start);
    }
}

/// Reads the body of a message record.
pub fn decode(originator: EntityId, ts: i64, mut bytes: &[u8]) -> Result<QueueMessage, CorruptData> {
    let bytes = &mut bytes;
    let id = Uuid::from_bytes(take_array(bytes)?);
    let [customer, chain, node] = [id_of(bytes)?, id_of(bytes)?, id_of(bytes)?];
    let data_type = match take_array::<1>(bytes)? {
        [0] => DataType::Json,
        [1] => DataType::Text,
        [2] => DataType::Binary,
        _ => return Err(CorruptData("unknown data type of a message")),
    };
    let label = text(bytes)?;
    let msg_type = MsgType::from(text(bytes)?);
    let queue = text(bytes)?;
    let count = read_varint(bytes)?;
    let mut metadata = MetadataMap::new();
    for _ in 0..count {
        metadata.set(text(bytes)?, text(bytes)?);
    }
    Ok(QueueMessage {
        id,
        ts,
        msg_type,
        originator,
        customer: customer.map(CustomerId),
        metadata,
        data_type,
        data: text(bytes)?.to_owned(),
        queue: (!queue.is_empty()).then(|| queue.to_owned()),
        rule_chain: chain.map(RuleChainId),
        from: node.map(|node| (RuleNodeId(node), label.to_owned())),
    })
}

fn id_of(bytes: &mut &[u8]) -> Result<Option<Uuid>, CorruptData> {
    let id = Uuid::from_bytes(take_array(bytes)?);
    Ok((id != NULL_UUID).then_some(id))
}

fn text<'a>(bytes: &mut &'a [u8]) -> Result<&'a str, CorruptData> {
    let length = read_varint(bytes)? as usize;
    std::str::from_utf8(take(bytes, length)?).map_err(|_| CorruptData("text that is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{JournalRecord, RecordBody, split};
    use crate::{DeviceId, EntityType};

    #[test]
    fn a_message_comes_back_as_it_was_and_damage_is_reported() {
        let tenant = TenantId::new();
        let mut message = QueueMessage::new(
            MsgType::from("my type"),
            DeviceId::new().into(),
            17,
            [("a", "1"), ("b", "ü")].into_iter().collect(),
            "{\"x\":1}".to_owned(),
        );
        message.customer = Some(CustomerId::new());
        message.data_type = DataType::Text;
        message.from = Some((RuleNodeId::new(), "Success".to_owned()));
        message.rule_chain = Some(RuleChainId::new());
        message.queue = Some("HighPriority".to_owned());
        for message in [
            message.clone(),
            QueueMessage {
                queue: None,
                from: None,
                customer: None,
                rule_chain: None,
                ..message
            },
        ] {
            let mut batch = RecordBatch::new();
            batch.push_message(tenant, &message);
            let bytes = split(batch.as_bytes()).next().unwrap().unwrap();
            let record = JournalRecord::decode(bytes).unwrap();
            let RecordBody::Message(body) = record.body else {
                panic!()
            };
            assert_eq!(
                (record.subject.tenant, record.subject.entity.entity_type),
                (tenant, EntityType::Device)
            );
            assert_eq!(
                decode(record.subject.entity, record.received_ms, body).unwrap(),
                message
            );
            for cut in 0..body.len() {
                assert!(decode(record.subject.entity, 0, &body[..cut]).is_err());
            }
        }
    }
}
