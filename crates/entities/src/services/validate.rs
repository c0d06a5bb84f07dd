//! Checks that several entities share, in the words of the REST API.

use serde_json::Value;

use super::{ServiceError, ServiceResult};

/// Longest text of a plain field, in characters.
const MAX_TEXT: usize = 255;

/// A text that must be there: `Device name should be specified!`.
pub(super) fn required(what: &str, text: &str) -> ServiceResult<()> {
    if text.trim().is_empty() {
        return Err(ServiceError::invalid(format!("{what} should be specified!")));
    }
    if text.contains('\0') {
        return Err(ServiceError::invalid(format!(
            "{what} should not contain 0x00 symbol!"
        )));
    }
    Ok(())
}

/// Fields that must not be longer than a column.
pub(super) fn lengths(fields: &[(&str, Option<&str>)]) -> ServiceResult<()> {
    for (name, text) in fields {
        let Some(text) = text else { continue };
        if text.chars().count() > MAX_TEXT {
            return Err(ServiceError::invalid(format!(
                "Validation error: {name} length must be equal or less than {MAX_TEXT}"
            )));
        }
        if text.contains('\0') {
            return Err(ServiceError::invalid(format!(
                "Validation error: {name} should not contain 0x00 symbol"
            )));
        }
    }
    Ok(())
}

/// An e-mail address.
pub(super) fn email(address: &str) -> ServiceResult<()> {
    if is_email(address) {
        Ok(())
    } else {
        Err(ServiceError::invalid(format!(
            "Invalid email address format '{address}'!"
        )))
    }
}

fn is_email(address: &str) -> bool {
    let Some((local, domain)) = address.split_once('@') else {
        return false;
    };
    let Some((_, top)) = domain.rsplit_once('.') else {
        return false;
    };
    let local_part = |c: char| c.is_ascii_alphanumeric() || "_!#$%&'*+/=?`{|}~^.-".contains(c);
    let host_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    !local.is_empty()
        && local.chars().all(local_part)
        && domain.len() > top.len() + 1
        && domain.chars().all(host_part)
        && top.len() >= 2
        && top.chars().all(|c| c.is_ascii_alphabetic())
}

/// Free-form JSON must be an object where it is given.
pub(super) fn json_object(name: &str, value: Option<&Value>) -> ServiceResult<()> {
    match value {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(_) => Err(ServiceError::invalid(format!("{name} must be a JSON object!"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn email_addresses_have_a_host_with_a_top_level_domain() {
        for good in ["a@b.co", "first.last+tag@sub.example.org", "o'neil@x-y.io"] {
            assert!(is_email(good), "{good}");
        }
        for bad in [
            "", "a", "a@b", "@b.co", "a@.co", "a b@c.de", "a@b@c.de", "a@b.c", "a@b.1x",
        ] {
            assert!(!is_email(bad), "{bad}");
        }
    }
}
