//! What is known of a picture: its type, its size, and a smaller one of it.

use std::io::Cursor;
use std::time::Duration;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Longest side of a smaller picture, in pixels.
const PREVIEW_SIDE: u32 = 250;
/// Largest file that is decoded, in bytes.
pub(super) const MAX_DECODED_FILE: u64 = 8 << 20;
/// Most bytes that decoding may take.
const MAX_DECODED: u64 = 48 << 20;
/// Longest side of a picture that is decoded, in pixels.
const MAX_SIDE: u32 = 16_384;
/// Bytes that the making of smaller pictures takes: one at a time, its file and what decoders keep besides included.
pub const PREVIEW_MEMORY: u64 = 2 * MAX_DECODED + MAX_DECODED_FILE;
/// How long a picture waits for its turn to be decoded; without one it stands for itself.
const PATIENCE: Duration = Duration::from_secs(10);
const SVG: &str = "image/svg+xml";
/// Most bytes that reading the head of a picture may take.
const MAX_HEAD: u64 = 4 << 20;

/// One at a time, since each may take many bytes.
static TURN: Semaphore = Semaphore::const_new(1);

/// What the beginning of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PictureHead {
    /// Its type, which browsers are told.
    pub(super) media_type: &'static str,
    /// Its width in pixels; zero where it is not known.
    pub(super) width: u32,
    /// Its height.
    pub(super) height: u32,
    format: Option<ImageFormat>,
}

/// A smaller picture.
#[derive(Debug)]
pub(super) struct Preview {
    pub(super) data: Vec<u8>,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl PictureHead {
    /// Looks at the beginning of a file; `None` where it is no picture. What a client says of its type does not count.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let Ok(format) = image::guess_format(head) else {
            let (width, height) = svg_size(head)?;
            return Some(Self {
                media_type: SVG,
                width,
                height,
                format: None,
            });
        };
        let media_type = match format {
            ImageFormat::Png => "image/png",
            ImageFormat::Jpeg => "image/jpeg",
            ImageFormat::Gif => "image/gif",
            ImageFormat::WebP => "image/webp",
            ImageFormat::Bmp => "image/bmp",
            ImageFormat::Ico => "image/x-icon",
            ImageFormat::Avif => "image/avif",
            ImageFormat::Tiff => "image/tiff",
            _ => return None,
        };
        let mut reader = ImageReader::with_format(Cursor::new(head), format);
        // A profile of colours is unpacked with the head, whatever the size of the picture.
        let mut limits = Limits::default();
        limits.max_alloc = Some(MAX_HEAD);
        reader.limits(limits);
        let (width, height) = reader
            .into_dimensions()
            .ok()
            .or_else(|| plain_size(head, format))
            .unwrap_or_default();
        Some(Self {
            media_type,
            width,
            height,
            format: Some(format),
        })
    }

    /// Whether a smaller picture is worth its making, and within bounds.
    pub(super) fn needs_preview(&self, size: u64) -> bool {
        let is_large = self.width > PREVIEW_SIDE || self.height > PREVIEW_SIDE;
        let pixels = u64::from(self.width) * u64::from(self.height);
        let is_read = matches!(
            self.format,
            Some(ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP)
        );
        is_large
            && is_read
            && size <= MAX_DECODED_FILE
            && pixels * 4 <= MAX_DECODED
            && self.width.max(self.height) <= MAX_SIDE
    }
}

/// Waits for the turn to have a whole file in memory; `None` where it takes long.
pub(super) async fn turn() -> Option<SemaphorePermit<'static>> {
    tokio::time::timeout(PATIENCE, TURN.acquire()).await.ok()?.ok()
}

/// Makes a smaller picture; `None` where the file is broken or takes too much.
pub(super) async fn preview(
    head: PictureHead,
    data: Vec<u8>,
    turn: SemaphorePermit<'static>,
) -> Option<Preview> {
    let format = head.format?;
    let made = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        shrink(format, &data)
    });
    made.await.ok()?
}

fn shrink(format: ImageFormat, data: &[u8]) -> Option<Preview> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED);
    let mut reader = ImageReader::with_format(Cursor::new(data), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    if decoder.total_bytes() > MAX_DECODED {
        return None;
    }
    let whole = DynamicImage::from_decoder(decoder).ok()?;
    let mut small = whole.thumbnail(PREVIEW_SIDE, PREVIEW_SIDE);
    drop(whole);
    small.apply_orientation(orientation);
    // Eight bits a channel are enough for a small one.
    let small = match small.color().has_alpha() {
        true => DynamicImage::ImageRgba8(small.to_rgba8()),
        false => DynamicImage::ImageRgb8(small.to_rgb8()),
    };
    let mut made = Vec::new();
    small
        .write_to(&mut Cursor::new(&mut made), ImageFormat::Png)
        .ok()?;
    Some(Preview {
        data: made,
        width: small.width(),
        height: small.height(),
    })
}

/// The size of formats that are not decoded.
fn plain_size(head: &[u8], format: ImageFormat) -> Option<(u32, u32)> {
    let number = |at: usize| Some(i32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    match format {
        ImageFormat::Bmp => Some((number(18)?.unsigned_abs(), number(22)?.unsigned_abs())),
        ImageFormat::Ico => {
            // A zero stands for 256.
            let side = |at: usize| {
                Some(
                    head.get(at)?
                        .checked_sub(1)
                        .map_or(256, |less| u32::from(less) + 1),
                )
            };
            Some((side(6)?, side(7)?))
        }
        _ => None,
    }
}

/// The size of an SVG, or of its view box; `None` where the first element is another.
fn svg_size(head: &[u8]) -> Option<(u32, u32)> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut reader = Reader::from_reader(head);
    loop {
        match reader.read_event().ok()? {
            Event::Start(root) | Event::Empty(root) => {
                return (root.local_name().as_ref() == b"svg").then(|| size_of_root(&root));
            }
            Event::Text(text) if !text.iter().all(u8::is_ascii_whitespace) => return None,
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn size_of_root(root: &BytesStart<'_>) -> (u32, u32) {
    let attribute = |name: &str| {
        let found = root.try_get_attribute(name).ok().flatten()?;
        String::from_utf8(found.value.into_owned()).ok()
    };
    let length = |name: &str| {
        let text = attribute(name)?;
        let number = text.trim().trim_end_matches("px");
        number.parse::<f32>().ok().filter(|size| *size >= 1.0)
    };
    let view_box = attribute("viewBox").unwrap_or_default();
    let mut sides = view_box
        .split([' ', ','])
        .filter(|text| !text.is_empty())
        .filter_map(|text| text.parse::<f32>().ok())
        .skip(2);
    let (wide, high) = (sides.next(), sides.next());
    let whole = |size: Option<f32>| size.map_or(0, |size| size.clamp(0.0, 1e6) as u32);
    (whole(length("width").or(wide)), whole(length("height").or(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut made = Vec::new();
        DynamicImage::new_rgb8(width, height)
            .write_to(&mut Cursor::new(&mut made), ImageFormat::Png)
            .unwrap();
        made
    }

    #[tokio::test]
    async fn a_large_picture_gets_a_small_one_of_the_same_shape() {
        let data = png(1_000, 400);
        let head = PictureHead::of(&data).unwrap();
        assert_eq!(
            (head.media_type, head.width, head.height),
            ("image/png", 1_000, 400)
        );
        assert!(head.needs_preview(data.len() as u64));
        let small = preview(head, data, turn().await.unwrap()).await.unwrap();
        assert_eq!((small.width, small.height), (250, 100));
        assert_eq!(PictureHead::of(&small.data).unwrap().width, 250);
        let icon = PictureHead::of(&png(250, 16)).unwrap();
        assert!(!icon.needs_preview(100));
    }

    #[tokio::test]
    async fn a_picture_that_claims_too_many_pixels_or_is_broken_is_not_decoded() {
        let mut bomb = png(8, 8);
        bomb[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
        // The checksum of the head is wrong now, which only some readers mind.
        if let Some(head) = PictureHead::of(&bomb) {
            assert!(!head.needs_preview(bomb.len() as u64));
        }
        let mut torn = png(600, 600);
        let head = PictureHead::of(&torn).unwrap();
        torn.truncate(torn.len() / 2);
        assert!(preview(head, torn, turn().await.unwrap()).await.is_none());
    }

    #[test]
    fn an_svg_is_known_by_its_first_element() {
        let drawn = br#"<?xml version="1.0"?><!-- by hand --><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"/>"#;
        let head = PictureHead::of(drawn).unwrap();
        assert_eq!((head.media_type, head.width, head.height), (SVG, 40, 20));
        let sized =
            PictureHead::of(b"<svg width='12.5px' height=\"7\" viewBox='0 0 1 1'><g/></svg>").unwrap();
        assert_eq!((sized.width, sized.height), (12, 7));
        for other in [
            &b"<html><svg/></html>"[..],
            b"<script>alert(1)</script>",
            b"text <svg/>",
            b"{}",
            b"",
        ] {
            assert_eq!(PictureHead::of(other), None);
        }
    }
}
