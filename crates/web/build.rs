//! Packs into the program the built user interface below `ui/files`, without which the program serves the API alone, and the pages
//! that show the description of the API.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::io::{Cursor, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipArchive;

/// What the pages of Swagger UI load, out of its whole source. The page's own script is in `documentation`.
const SWAGGER_UI: [&str; 7] = [
    "favicon-16x16.png",
    "favicon-32x32.png",
    "index.css",
    "index.html",
    "swagger-ui-bundle.js",
    "swagger-ui-standalone-preset.js",
    "swagger-ui.css",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=ui");
    println!("cargo:rerun-if-changed=documentation");
    let source = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut files = BTreeMap::new();
    let root = source.join("ui/files");
    if root.is_dir() {
        collect(&root, &root, &mut files)?;
    }
    fs::write(out.join("packed.rs"), table(&files)?)?;
    let root = out.join("documentation");
    unpack_documentation(&root, &source.join("documentation"))?;
    let mut files = BTreeMap::new();
    collect(&root, &root, &mut files)?;
    fs::write(out.join("documentation.rs"), table(&files)?)?;
    Ok(())
}

/// Writes the table of files as code. A text is kept in the compressed forms that lie beside it.
fn table(files: &BTreeMap<String, PathBuf>) -> Result<String, Box<dyn Error>> {
    let mut code = String::from("&[\n");
    for (path, file) in files {
        if path.ends_with(".br") || path.ends_with(".gz") {
            continue;
        }
        let mut hasher = DefaultHasher::new();
        fs::read(file)?.hash(&mut hasher);
        let bytes = |suffix: &str| files.get(&format!("{path}{suffix}"));
        let content = match (bytes(".gz"), bytes(".br")) {
            (Some(gzip), brotli) => {
                let brotli = brotli.map_or("None".to_owned(), |file| {
                    format!("Some(include_bytes!({file:?}))")
                });
                format!("PackedContent::Compressed {{ gzip: include_bytes!({gzip:?}), brotli: {brotli} }}")
            }
            _ => format!("PackedContent::Plain(include_bytes!({file:?}))"),
        };
        writeln!(
            code,
            "PackedFile {{ path: {path:?}, etag: \"\\\"{:016x}\\\"\", content: {content} }},",
            hasher.finish()
        )?;
    }
    code.push(']');
    Ok(code)
}

/// Writes the files of the pages below a folder, texts compressed as well. The paths are those of URLs.
fn unpack_documentation(root: &Path, own: &Path) -> Result<(), Box<dyn Error>> {
    let folder = root.join("swagger-ui");
    fs::create_dir_all(&folder)?;
    let mut archive = ZipArchive::new(Cursor::new(utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED))?;
    let first = archive
        .name_for_index(0)
        .ok_or("the archive of Swagger UI is empty")??;
    let top = first.split('/').next().unwrap_or_default().to_owned();
    for name in SWAGGER_UI {
        let mut content = Vec::new();
        archive
            .by_name(&format!("{top}/dist/{name}"))?
            .read_to_end(&mut content)?;
        write_with_compressed(&folder.join(name), &content)?;
    }
    for entry in fs::read_dir(own)? {
        let entry = entry?;
        write_with_compressed(&folder.join(entry.file_name()), &fs::read(entry.path())?)?;
    }
    Ok(())
}

fn write_with_compressed(file: &Path, content: &[u8]) -> Result<(), Box<dyn Error>> {
    fs::write(file, content)?;
    let name = file.to_str().ok_or("a file name is not UTF-8")?;
    if !name.ends_with(".png") {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(content)?;
        fs::write(format!("{name}.gz"), packer.finish()?)?;
    }
    Ok(())
}

/// Collects the files below a folder by their paths in URLs.
fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else {
            let name = path
                .strip_prefix(root)?
                .to_str()
                .ok_or("a file name is not UTF-8")?;
            files.insert(format!("/{name}"), path.clone());
        }
    }
    Ok(())
}
