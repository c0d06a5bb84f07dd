//! Packs the built user interface below `ui/files` into the program. Without it the program serves the API alone.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=ui");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("ui/files");
    let mut files = BTreeMap::new();
    if root.is_dir() {
        collect(&root, &root, &mut files)?;
    }
    let mut code = String::from("&[\n");
    for (path, file) in &files {
        if path.ends_with(".br") || path.ends_with(".gz") {
            continue;
        }
        let mut hasher = DefaultHasher::new();
        fs::read(file)?.hash(&mut hasher);
        let bytes = |suffix: &str| files.get(&format!("{path}{suffix}"));
        let content = match (bytes(".gz"), bytes(".br")) {
            (Some(gzip), Some(brotli)) => format!(
                "PackedContent::Compressed {{ gzip: include_bytes!({gzip:?}), brotli: include_bytes!({brotli:?}) }}"
            ),
            _ => format!("PackedContent::Plain(include_bytes!({file:?}))"),
        };
        writeln!(
            code,
            "PackedFile {{ path: {path:?}, etag: \"\\\"{:016x}\\\"\", content: {content} }},",
            hasher.finish()
        )?;
    }
    code.push(']');
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("packed.rs"), code)?;
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
