//! Models of LwM2M objects: what the XML says of one.

use fieldline_model::entity::ResourceType;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Value, json};

/// Largest model that is read, in bytes.
pub(super) const MAX_MODEL: u64 = 1 << 20;
/// Most resources of an object.
const MAX_ITEMS: usize = 2_000;

/// An object as its model describes it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ObjectModel {
    pub(super) id: u16,
    pub(super) name: String,
    pub(super) version: String,
    multiple: bool,
    mandatory: bool,
    items: Vec<Item>,
}

#[derive(Debug, Default, PartialEq)]
struct Item {
    id: u16,
    name: String,
    is_readable: bool,
}

impl ObjectModel {
    /// Reads the first object of a model; `None` where there is none.
    pub(super) fn parse(xml: &[u8]) -> Option<Self> {
        let mut reader = Reader::from_reader(xml);
        let mut model = Self::default();
        let (mut has_id, mut item): (bool, Option<Item>) = (false, None);
        // Names of the elements that are open below the object.
        let mut open: Vec<String> = Vec::new();
        let mut in_object = false;
        loop {
            match reader.read_event().ok()? {
                Event::Start(element) => {
                    let name = String::from_utf8(element.local_name().as_ref().to_vec()).ok()?;
                    if !in_object {
                        in_object = name == "Object";
                        continue;
                    }
                    if name == "Item" {
                        let id = element.try_get_attribute("ID").ok()??;
                        item = Some(Item {
                            id: std::str::from_utf8(&id.value).ok()?.trim().parse().ok()?,
                            ..Item::default()
                        });
                    }
                    open.push(name);
                }
                Event::End(element) if in_object => {
                    if element.local_name().as_ref() == b"Object" {
                        break;
                    }
                    if element.local_name().as_ref() == b"Item" {
                        model.items.extend(item.take());
                        if model.items.len() > MAX_ITEMS {
                            return None;
                        }
                    }
                    open.pop();
                }
                Event::Text(text) if in_object => {
                    let raw = text.decode().ok()?;
                    let text = raw.trim();
                    match (open.last().map(String::as_str), &mut item) {
                        (Some("Name"), Some(item)) => item.name.push_str(&raw),
                        (Some("Name"), None) => model.name.push_str(&raw),
                        _ if text.is_empty() => {}
                        (Some("Operations"), Some(item)) => item.is_readable = text.contains('R'),
                        (Some("ObjectID"), None) => {
                            model.id = text.parse().ok()?;
                            has_id = true;
                        }
                        (Some("ObjectVersion"), None) => text.clone_into(&mut model.version),
                        (Some("MultipleInstances"), None) => model.multiple = text == "Multiple",
                        (Some("Mandatory"), None) => model.mandatory = text == "Mandatory",
                        _ => {}
                    }
                }
                // A letter with a name, such as an ampersand.
                Event::GeneralRef(letter) if in_object => {
                    let letter = letter.decode().ok()?;
                    let letter = quick_xml::escape::resolve_predefined_entity(&letter).unwrap_or_default();
                    match (open.last().map(String::as_str), &mut item) {
                        (Some("Name"), Some(item)) => item.name.push_str(letter),
                        (Some("Name"), None) => model.name.push_str(letter),
                        _ => {}
                    }
                }
                Event::Eof => return None,
                _ => {}
            }
        }
        for name in model
            .items
            .iter_mut()
            .map(|item| &mut item.name)
            .chain([&mut model.name])
        {
            *name = name.trim().to_owned();
        }
        if !has_id || model.name.is_empty() {
            return None;
        }
        if model.version.is_empty() {
            "1.0".clone_into(&mut model.version);
        }
        Some(model)
    }

    /// The key of its resource.
    pub(super) fn key(&self) -> String {
        format!("{}_{}", self.id, self.version)
    }

    /// The title of its resource.
    pub(super) fn title(&self) -> String {
        format!("{} id={} v{}", self.name, self.id, self.version)
    }

    /// What user interfaces choose resources from; `None` where nothing of it can be read.
    pub(super) fn shown(&self) -> Option<Value> {
        let resources: Vec<Value> = self
            .items
            .iter()
            .filter(|item| item.is_readable)
            .map(|item| {
                json!({
                    "id": item.id,
                    "name": item.name,
                    "observe": false,
                    "attribute": false,
                    "telemetry": false,
                    "keyName": key_name(&item.name),
                })
            })
            .collect();
        (!resources.is_empty()).then(|| {
            json!({
                "id": self.id,
                "keyId": self.key(),
                "name": self.name,
                "multiple": self.multiple,
                "mandatory": self.mandatory,
                "instances": [{ "id": 0, "resources": resources }],
            })
        })
    }
}

/// A name as a key: `Firmware Version` becomes `firmwareVersion`.
fn key_name(name: &str) -> String {
    let words = name.split([' ', '-', '_']).filter(|word| !word.is_empty());
    let mut key = String::with_capacity(name.len());
    for word in words {
        let mut letters = word.chars();
        let Some(first) = letters.next() else { continue };
        match key.is_empty() {
            true => key.extend(first.to_lowercase()),
            false => key.extend(first.to_uppercase()),
        }
        key.extend(letters.flat_map(char::to_lowercase));
    }
    key
}

/// Whether a resource is a model.
pub(super) fn is_model(kind: Option<ResourceType>) -> bool {
    kind == Some(ResourceType::Lwm2mModel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_says_its_key_its_title_and_what_can_be_read() {
        let xml = br#"<?xml version="1.0" encoding="utf-8"?>
            <LWM2M xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
              <Object ObjectType="MODefinition">
                <Name>Air Quality</Name><Description1><![CDATA[About air]]></Description1>
                <ObjectID>3428</ObjectID><ObjectURN>urn:oma:lwm2m:ext:3428</ObjectURN>
                <LWM2MVersion>1.0</LWM2MVersion><ObjectVersion>1.1</ObjectVersion>
                <MultipleInstances>Multiple</MultipleInstances><Mandatory>Optional</Mandatory>
                <Resources>
                  <Item ID="17"><Name> PM &lt; 10 </Name><Operations>R</Operations></Item>
                  <Item ID="6021"><Name>Measured Value-Reset</Name><Operations>E</Operations></Item>
                  <Item ID="18"><Name>min measured_Value</Name><Operations>RW</Operations></Item>
                </Resources>
              </Object>
            </LWM2M>"#;
        let model = ObjectModel::parse(xml).unwrap();
        assert_eq!(
            (model.key(), model.title()),
            ("3428_1.1".into(), "Air Quality id=3428 v1.1".into())
        );
        let shown = model.shown().unwrap();
        assert_eq!(shown["multiple"], true);
        let resources = &shown["instances"][0]["resources"];
        assert_eq!(resources.as_array().unwrap().len(), 2);
        assert_eq!(resources[0]["name"], "PM < 10");
        assert_eq!(resources[1]["keyName"], "minMeasuredValue");
        assert_eq!(
            ObjectModel::parse(b"<LWM2M><Object><Name>x</Name></Object></LWM2M>"),
            None
        );
        assert_eq!(ObjectModel::parse(b"no xml"), None);
    }
}
