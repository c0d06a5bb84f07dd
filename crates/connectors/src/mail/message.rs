//! The body of a message of type `SEND_EMAIL`, and the mail it becomes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lettre::Message;
use lettre::message::header::ContentType;
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};
use serde::Deserialize;
use serde_json::Value;

use crate::config;
use crate::lenient;
use crate::outcome::ConnectorError;

/// A mail, as the node that makes mails of messages leaves it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OutgoingEmail {
    /// The sender; that of the mail server's configuration if it is blank.
    #[serde(deserialize_with = "lenient::string")]
    pub from: String,
    /// The receivers, separated by commas.
    #[serde(deserialize_with = "lenient::string")]
    pub to: String,
    /// The receivers of a copy.
    #[serde(deserialize_with = "lenient::string")]
    pub cc: String,
    /// The receivers of a copy that the others do not see.
    #[serde(deserialize_with = "lenient::string")]
    pub bcc: String,
    /// The subject.
    #[serde(deserialize_with = "lenient::string")]
    pub subject: String,
    /// The text.
    #[serde(deserialize_with = "lenient::string")]
    pub body: String,
    /// Identifiers of images in the text, and the images in Base64 or as data URLs.
    #[serde(deserialize_with = "lenient::pairs")]
    pub images: Vec<(String, String)>,
    /// Whether the text is HTML.
    #[serde(deserialize_with = "lenient::boolean")]
    pub html: bool,
}

impl OutgoingEmail {
    /// Reads the body of a message; fails if it names no receiver.
    pub fn from_json(body: &str) -> Result<Self, ConnectorError> {
        let value: Value = serde_json::from_str(body)
            .map_err(|_| ConnectorError::bare("The body of the message is not JSON"))?;
        let email: Self = config::read(&value)
            .map_err(|error| ConnectorError::bare(format!("The body of the message is no email: {error}")))?;
        if email.to.trim().is_empty() {
            return Err(ConnectorError::bare("Email destination can not be blank"));
        }
        Ok(email)
    }

    /// Makes the mail. `mail_from` is the sender where the mail names none.
    pub(super) fn message(&self, mail_from: &str) -> Result<Message, String> {
        let from = if self.from.trim().is_empty() {
            mail_from
        } else {
            &self.from
        };
        if from.trim().is_empty() {
            return Err("email has no sender".to_owned());
        }
        let mut builder = Message::builder()
            .from(address(from)?)
            .subject(self.subject.as_str())
            .date_now();
        for to in addresses(&self.to)? {
            builder = builder.to(to);
        }
        for cc in addresses(&self.cc)? {
            builder = builder.cc(cc);
        }
        for bcc in addresses(&self.bcc)? {
            builder = builder.bcc(bcc);
        }
        let text = SinglePart::builder()
            .header(if self.html {
                ContentType::TEXT_HTML
            } else {
                ContentType::TEXT_PLAIN
            })
            .body(self.body.clone());
        let message = if self.images.is_empty() {
            builder.singlepart(text)
        } else {
            let mut parts = MultiPart::related().singlepart(text);
            for (id, image) in &self.images {
                parts = parts.singlepart(inline(id, image)?);
            }
            builder.multipart(parts)
        };
        message.map_err(|error| error.to_string())
    }
}

fn inline(id: &str, image: &str) -> Result<SinglePart, String> {
    let (declared, data) = match image.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((kind, data)) => (kind.split(';').next(), data),
        None => (None, image),
    };
    let data: String = data
        .chars()
        .filter(|character| !character.is_ascii_whitespace())
        .collect();
    let bytes = STANDARD
        .decode(data)
        .map_err(|_| format!("image '{id}' is not Base64"))?;
    let kind = declared
        .filter(|kind| kind.starts_with("image/"))
        .unwrap_or(by_extension(id));
    let kind = ContentType::parse(kind).map_err(|_| format!("image '{id}' has no valid type"))?;
    if id.is_empty()
        || id
            .chars()
            .any(|character| character.is_control() || "<>".contains(character))
    {
        return Err(format!("'{id}' cannot be the identifier of an image"));
    }
    Ok(Attachment::new_inline(id.to_owned()).body(bytes, kind))
}

fn by_extension(name: &str) -> &'static str {
    let extension = name
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("png") => "image/png",
        Some("jpg" | "jpeg" | "jpe") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("svg") => "image/svg+xml",
        Some("bmp") => "image/bmp",
        Some("webp") => "image/webp",
        _ => "application/octet-stream",
    }
}

fn addresses(list: &str) -> Result<Vec<Mailbox>, String> {
    list.split(',')
        .map(str::trim)
        .filter(|address| !address.is_empty())
        .map(address)
        .collect()
}

fn address(text: &str) -> Result<Mailbox, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("'{}' is not an email address", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_needs_receivers() {
        let error = OutgoingEmail::from_json(r#"{"to": " ", "subject": "s"}"#).unwrap_err();
        assert_eq!(error.message, "Email destination can not be blank");
        assert!(error.metadata.is_empty());
    }

    #[test]
    fn hidden_receivers_are_not_in_the_mail() {
        let json = r#"{"from": null, "to": "a@x.org, b@x.org", "cc": null, "bcc": "c@x.org", "subject": "s",
            "body": "<img src='cid:i'>", "html": true, "images": {"i": "data:image/png;base64,/wD+"}}"#;
        let message = OutgoingEmail::from_json(json)
            .unwrap()
            .message("d@x.org")
            .unwrap();
        assert_eq!(message.envelope().to().len(), 3);
        let text = String::from_utf8(message.formatted()).unwrap();
        assert!(!text.contains("c@x.org"), "{text}");
        for part in [
            "From: d@x.org",
            "multipart/related",
            "Content-ID: <i>",
            "image/png",
            "/wD+",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
