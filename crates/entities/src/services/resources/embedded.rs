//! Images within the JSON of dashboards, widget types and others: data URLs become image resources, links go over to other ones.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fieldline_model::TenantId;
use fieldline_model::entity::{
    IMAGE_PREFIX, RESOURCE_PREFIX, ResourceSubType, ResourceType, TbResourceInfo, WidgetTypeDetails,
};
use serde_json::{Map, Value};

use super::{ImageFields, files};
use crate::services::{ServiceContext, ServiceErrorKind, ServiceResult};

/// Most images that become resources at once; more stay as they are until the next save.
const MAX_IMAGES: usize = 500;
/// Links that are looked at in one document.
const MAX_LINKS: usize = 1_000;
/// Depth of JSON that is walked.
const MAX_DEPTH: usize = 100;
/// Longest title that is made from names.
const MAX_TITLE: usize = 200;
/// The field of a descriptor that has JSON as a text.
const DEFAULT_CONFIG: &str = "defaultConfig";

/// Where a data URL without a mark is an image that user interfaces resolve. `*` stands for any name or index.
type ImagePlaces = &'static [(&'static [&'static str], &'static str)];

const IN_DASHBOARD: ImagePlaces = &[
    (&["settings", "dashboardLogoUrl"], "logo"),
    (
        &[
            "states",
            "*",
            "layouts",
            "*",
            "gridSettings",
            "backgroundImageUrl",
        ],
        "background",
    ),
    (
        &["widgets", "*", "config", "settings", "backgroundImageUrl"],
        "background",
    ),
    (
        &["widgets", "*", "config", "settings", "mapImageUrl"],
        "map image",
    ),
    (
        &["widgets", "*", "config", "settings", "markerImage"],
        "marker image",
    ),
    (
        &["widgets", "*", "config", "settings", "markerImages", "*"],
        "marker image",
    ),
    (
        &["widgets", "*", "config", "settings", "background", "imageUrl"],
        "background",
    ),
    (
        &["widgets", "*", "config", "settings", "background", "imageBase64"],
        "background",
    ),
    (
        &[
            "widgets",
            "*",
            "config",
            "datasources",
            "*",
            "dataKeys",
            "*",
            "settings",
            "customIcon",
        ],
        "custom icon",
    ),
];

const IN_WIDGET_CONFIG: ImagePlaces = &[
    (&["settings", "backgroundImageUrl"], "background"),
    (&["settings", "mapImageUrl"], "map image"),
    (&["settings", "markerImage"], "marker image"),
    (&["settings", "markerImages", "*"], "marker image"),
    (&["settings", "background", "imageUrl"], "background"),
    (&["settings", "background", "imageBase64"], "background"),
    (&["settings", "scadaSymbolUrl"], "SCADA symbol"),
    (
        &["datasources", "*", "dataKeys", "*", "settings", "customIcon"],
        "custom icon",
    ),
];

/// A text of a document, and what it is of.
struct FoundText<'v> {
    of: String,
    text: &'v mut String,
}

fn is_data(text: &str) -> bool {
    text.starts_with("data:image/")
}

fn is_marked_data(text: &str) -> bool {
    text.strip_prefix(IMAGE_PREFIX).is_some_and(is_data)
        || (text.starts_with("tb-image:") && text.contains(";data:"))
}

/// Gathers the images of a document that are to become resources.
fn gather<'v>(
    value: &'v mut Value,
    places: ImagePlaces,
    path: &mut Vec<&'v str>,
    found: &mut Vec<FoundText<'v>>,
) {
    if path.len() >= MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) => {
            let place = places.iter().find(|(place, _)| {
                place.len() == path.len()
                    && place
                        .iter()
                        .zip(path.iter())
                        .all(|(expected, name)| *expected == "*" || expected == name)
            });
            if is_marked_data(text) || (is_data(text) && place.is_some()) {
                let of = place.map_or_else(|| path.last().copied().unwrap_or("image"), |(_, of)| *of);
                found.push(FoundText {
                    of: of.to_owned(),
                    text,
                });
            }
        }
        Value::Array(items) => {
            for item in items {
                path.push("#");
                gather(item, places, path, found);
                path.pop();
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                path.push(name);
                gather(field, places, path, found);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What is known of an image besides its data.
struct DataUrl<'a> {
    key: Option<String>,
    title: Option<String>,
    sub_type: Option<ResourceSubType>,
    etag: Option<String>,
    media_type: &'a str,
    base64: &'a str,
}

impl<'a> DataUrl<'a> {
    /// Reads `data:image/png;base64,…`, also behind `tb-image;` or `tb-image:KEY:TITLE:SUBTYPE:ETAG;`, where the fields are base64.
    fn parse(text: &'a str) -> Option<Self> {
        let (fields, data) = match text.strip_prefix("tb-image:") {
            Some(rest) => rest.split_once(';')?,
            None => ("", text.strip_prefix(IMAGE_PREFIX).unwrap_or(text)),
        };
        let (media_type, data) = data.strip_prefix("data:")?.split_once(';')?;
        let decoded = |field: Option<&str>| {
            let field = field.filter(|field| !field.is_empty())?;
            String::from_utf8(STANDARD.decode(field).ok()?).ok()
        };
        let mut fields = fields.split(':');
        Some(Self {
            key: decoded(fields.next()),
            title: decoded(fields.next()),
            sub_type: decoded(fields.next()).and_then(|name| name.parse().ok()),
            etag: fields.next().filter(|etag| !etag.is_empty()).map(str::to_owned),
            media_type,
            base64: data.strip_prefix("base64,")?,
        })
    }
}

/// The link of an image resource for a data URL; `None` where it stays as it is.
async fn link_of(
    context: &ServiceContext,
    tenant: TenantId,
    title: &str,
    text: &str,
) -> ServiceResult<Option<String>> {
    let Some(url) = DataUrl::parse(text) else {
        return Ok(None);
    };
    let Ok(data) = STANDARD.decode(url.base64) else {
        return Ok(None);
    };
    let etag = match (data.is_empty(), &url.etag) {
        (false, _) => files::etag(&data),
        (true, Some(etag)) => etag.clone(),
        (true, None) => return Ok(None),
    };
    let resources = &context.stores.resources;
    if let Some(known) = resources.by_etag(tenant, ResourceType::Image, &etag).await? {
        return Ok(Some(format!("{IMAGE_PREFIX}{}", known.link())));
    }
    if data.is_empty() {
        return Ok(None);
    }
    let title = url.title.unwrap_or_else(|| title.to_owned());
    let key = url
        .key
        .unwrap_or_else(|| format!("{}.{}", file_stem(&title), extension(url.media_type)));
    let image = ImageFields {
        title: Some(title.clone()),
        file_name: Some(key),
        sub_type: url.sub_type,
        is_public: true,
        ..ImageFields::default()
    };
    match super::save_image_bytes(context, tenant, image, None, &data).await {
        Ok(saved) => Ok(Some(format!("{IMAGE_PREFIX}{}", saved.link()))),
        // What is no image, or has no room, stays where it is: the document is still as it was.
        Err(error) if error.kind() == ServiceErrorKind::Invalid => {
            tracing::debug!(%error, title, "an image stays within its document");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The end of a file's name.
fn extension(media_type: &str) -> &str {
    match media_type.strip_prefix("image/").unwrap_or(media_type) {
        "jpeg" => "jpg",
        "svg+xml" => "svg",
        "x-icon" | "vnd.microsoft.icon" => "ico",
        kind if kind.chars().all(|char| char.is_ascii_alphanumeric()) => kind,
        _ => "img",
    }
}

/// A title as the name of a file: letters and digits alone.
fn file_stem(title: &str) -> String {
    let mut stem = String::with_capacity(title.len());
    for char in title.chars().filter(|char| !matches!(char, '"' | '\'')) {
        match char.is_alphanumeric() {
            true => stem.extend(char.to_lowercase()),
            false if stem.is_empty() || stem.ends_with('_') => {}
            false => stem.push('_'),
        }
    }
    let stem = stem.trim_end_matches('_');
    if stem.is_empty() { "image" } else { stem }.to_owned()
}

async fn convert(
    context: &ServiceContext,
    tenant: TenantId,
    prefix: &str,
    found: Vec<FoundText<'_>>,
) -> ServiceResult<bool> {
    let mut changed = false;
    for one in found.into_iter().take(MAX_IMAGES) {
        let title: String = format!("{prefix} {}", one.of).chars().take(MAX_TITLE).collect();
        if let Some(link) = link_of(context, tenant, &title, one.text).await? {
            *one.text = link;
            changed = true;
        }
    }
    Ok(changed)
}

/// Makes a resource of the picture of an entity, if it is a data URL.
pub(in crate::services) async fn keep_image(
    context: &ServiceContext,
    tenant: TenantId,
    title: &str,
    image: &mut Option<String>,
) -> ServiceResult<()> {
    let Some(text) = image
        .as_mut()
        .filter(|text| is_data(text) || is_marked_data(text))
    else {
        return Ok(());
    };
    let title: String = title.chars().take(MAX_TITLE).collect();
    if let Some(link) = link_of(context, tenant, &title, text).await? {
        *text = link;
    }
    Ok(())
}

/// Makes resources of the images of a dashboard.
pub(in crate::services) async fn keep_dashboard_images(
    context: &ServiceContext,
    tenant: TenantId,
    name: &str,
    configuration: &mut Value,
) -> ServiceResult<()> {
    let mut found = Vec::new();
    gather(configuration, IN_DASHBOARD, &mut Vec::new(), &mut found);
    convert(context, tenant, &format!("\"{name}\" dashboard"), found).await?;
    Ok(())
}

/// Makes resources of the images of a widget type.
pub(in crate::services) async fn keep_widget_images(
    context: &ServiceContext,
    tenant: TenantId,
    details: &mut WidgetTypeDetails,
) -> ServiceResult<()> {
    let of_system = if tenant.is_null() { "system " } else { "" };
    let prefix = format!("\"{}\" {of_system}widget", details.base.name);
    keep_image(
        context,
        tenant,
        &format!("{prefix} image"),
        &mut details.texts.image,
    )
    .await?;
    let mut found = Vec::new();
    gather(&mut details.descriptor, &[], &mut Vec::new(), &mut found);
    convert(context, tenant, &prefix, found).await?;
    let Some(mut config) = default_config(&details.descriptor) else {
        return Ok(());
    };
    let mut found = Vec::new();
    gather(&mut config, IN_WIDGET_CONFIG, &mut Vec::new(), &mut found);
    if convert(context, tenant, &prefix, found).await? {
        details.descriptor[DEFAULT_CONFIG] = Value::String(config.to_string());
    }
    Ok(())
}

/// The configuration that a descriptor has as a text.
fn default_config(descriptor: &Value) -> Option<Value> {
    let text = descriptor.get(DEFAULT_CONFIG)?.as_str()?;
    serde_json::from_str(text).ok()
}

/// Links that go over to others.
#[derive(Debug, Clone, Default)]
pub struct ResourceLinks(pub(super) HashMap<String, String>);

impl ResourceLinks {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces a text that is a link.
    pub fn rewrite(&self, text: &mut String) {
        let Some((prefix, link)) = split_link(text) else {
            return;
        };
        let (base, end) = match link.strip_suffix("/preview") {
            Some(base) => (base, "/preview"),
            None => (link, ""),
        };
        if let Some(new) = self.0.get(base) {
            *text = format!("{prefix}{new}{end}");
        }
    }

    /// Replaces all links of a document.
    pub fn rewrite_all(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        each_text(value, 0, &mut |text| self.rewrite(text));
    }

    /// Replaces all links of a widget type.
    pub fn rewrite_widget(&self, details: &mut WidgetTypeDetails) {
        if self.is_empty() {
            return;
        }
        if let Some(image) = &mut details.texts.image {
            self.rewrite(image);
        }
        self.rewrite_all(&mut details.descriptor);
        if let Some(mut config) = default_config(&details.descriptor) {
            self.rewrite_all(&mut config);
            details.descriptor[DEFAULT_CONFIG] = Value::String(config.to_string());
        }
    }
}

/// The prefix and the path of a text that is a link to a resource.
fn split_link(text: &str) -> Option<(&'static str, &str)> {
    [
        (IMAGE_PREFIX, "/api/images/"),
        (RESOURCE_PREFIX, "/api/resource/"),
    ]
    .into_iter()
    .find_map(|(prefix, path)| {
        let link = text.strip_prefix(prefix)?;
        link.starts_with(path).then_some((prefix, link))
    })
}

fn each_text(value: &mut Value, depth: usize, visit: &mut impl FnMut(&mut String)) {
    if depth >= MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| each_text(item, depth + 1, visit)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| each_text(field, depth + 1, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Adds the links of a document to those that are known.
fn collect_links(value: &Value, depth: usize, links: &mut Vec<String>) {
    if depth >= MAX_DEPTH || links.len() >= MAX_LINKS {
        return;
    }
    match value {
        Value::String(text) => add_link(text, links),
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_links(item, depth + 1, links)),
        Value::Object(fields) => fields
            .values()
            .for_each(|field| collect_links(field, depth + 1, links)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn add_link(text: &str, links: &mut Vec<String>) {
    if let Some((_, link)) = split_link(text) {
        let link = link.strip_suffix("/preview").unwrap_or(link);
        if !links.iter().any(|known| known == link) {
            links.push(link.to_owned());
        }
    }
}

/// The links of a picture and of documents, those within a default configuration included.
pub fn used_links(image: Option<&str>, documents: &[&Value]) -> Vec<String> {
    let mut links = Vec::new();
    if let Some(image) = image {
        add_link(image, &mut links);
    }
    for document in documents {
        collect_links(document, 0, &mut links);
        if let Some(config) = default_config(document) {
            collect_links(&config, 0, &mut links);
        }
    }
    links
}

/// The resource that a link is to, as a tenant reads it.
pub(super) async fn resolve(
    context: &ServiceContext,
    tenant: TenantId,
    link: &str,
) -> ServiceResult<Option<TbResourceInfo>> {
    let Some((kind, scope, key)) = parts_of(link) else {
        return Ok(None);
    };
    let owner = match scope {
        "tenant" => tenant,
        "system" => TenantId::NULL,
        _ => return Ok(None),
    };
    Ok(context.stores.resources.by_key(owner, kind, key).await?)
}

fn parts_of(link: &str) -> Option<(ResourceType, &str, &str)> {
    if let Some(rest) = link.strip_prefix("/api/images/") {
        let (scope, key) = rest.split_once('/')?;
        return Some((
            ResourceType::Image,
            scope,
            key.strip_suffix("/preview").unwrap_or(key),
        ));
    }
    let mut rest = link.strip_prefix("/api/resource/")?.splitn(3, '/');
    let kind: ResourceType = rest.next()?.to_uppercase().parse().ok()?;
    Some((kind, rest.next()?, rest.next()?))
}

/// Links in the place of ids: how dashboards and widget types of former versions name scripts.
pub(super) fn scripts_by_id<'v>(value: &'v mut Value, path: &[&str], found: &mut Vec<&'v mut Value>) {
    let Some((first, rest)) = path.split_first() else {
        let id = value.get("id").and_then(Value::as_str);
        if id.is_some() {
            found.push(value);
        }
        return;
    };
    match value {
        Value::Array(items) if *first == "*" => {
            for item in items {
                scripts_by_id(item, rest, found);
            }
        }
        Value::Object(fields) => each_field(fields, first, |field| scripts_by_id(field, rest, found)),
        _ => {}
    }
}

fn each_field<'v>(fields: &'v mut Map<String, Value>, name: &str, mut visit: impl FnMut(&'v mut Value)) {
    for (known, field) in fields.iter_mut() {
        if name == "*" || known == name {
            visit(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_are_found_where_they_are_marked_or_where_user_interfaces_look_for_them() {
        let mut dashboard = json!({
            "settings": {"dashboardLogoUrl": "data:image/png;base64,AA=="},
            "widgets": {"w1": {"config": {
                "settings": {
                    "markerImages": ["data:image/gif;base64,AA=="],
                    "own": "data:image/png;base64,AA==",
                    "marked": "tb-image;data:image/png;base64,AA==",
                },
            }}},
        });
        let mut found = Vec::new();
        gather(&mut dashboard, IN_DASHBOARD, &mut Vec::new(), &mut found);
        let names: Vec<&str> = found.iter().map(|one| one.of.as_str()).collect();
        assert_eq!(names, ["logo", "marker image", "marked"]);
    }

    #[test]
    fn a_data_url_says_what_its_image_was_called() {
        let named = format!(
            "tb-image:{}:{}:{};data:image/svg+xml;base64,AAAA",
            STANDARD.encode("pump.svg"),
            STANDARD.encode("Pump"),
            STANDARD.encode("SCADA_SYMBOL")
        );
        let url = DataUrl::parse(&named).unwrap();
        assert_eq!(
            (url.key.as_deref(), url.title.as_deref(), url.sub_type),
            (Some("pump.svg"), Some("Pump"), Some(ResourceSubType::ScadaSymbol))
        );
        assert_eq!((url.media_type, url.base64), ("image/svg+xml", "AAAA"));
        assert!(DataUrl::parse("data:text/html,hi").is_none());
        assert_eq!(
            file_stem("\"Fleet's\" dashboard -- map image "),
            "fleets_dashboard_map_image"
        );
        assert_eq!(extension("image/jpeg"), "jpg");
        assert_eq!(extension("image/../x"), "img");
    }

    #[test]
    fn links_are_found_and_rewritten_within_json_texts_too() {
        let mut details = WidgetTypeDetails {
            descriptor: json!({
                "resources": [{"url": "tb-resource;/api/resource/js_module/tenant/a.js"}],
                "defaultConfig": "{\"i\":\"tb-image;/api/images/tenant/a.png/preview\"}",
            }),
            ..WidgetTypeDetails::default()
        };
        let links = used_links(Some("tb-image;/api/images/system/b.png"), &[&details.descriptor]);
        assert_eq!(
            links,
            [
                "/api/images/system/b.png",
                "/api/resource/js_module/tenant/a.js",
                "/api/images/tenant/a.png"
            ]
        );
        let map = HashMap::from([(
            "/api/images/tenant/a.png".into(),
            "/api/images/tenant/z.png".into(),
        )]);
        ResourceLinks(map).rewrite_widget(&mut details);
        let config = details.descriptor["defaultConfig"].as_str().unwrap();
        assert_eq!(config, "{\"i\":\"tb-image;/api/images/tenant/z.png/preview\"}");
    }
}
