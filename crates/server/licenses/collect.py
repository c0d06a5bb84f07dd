#!/usr/bin/env python3
"""Collects the licences of what is linked into `fieldline`, after a change of Cargo.lock.

usage: python3 crates/server/licenses/collect.py

Writes `crates.tsv` (name, version, licence) and `texts.txt` (the texts that must go with the program) beside this script. Of a
crate with a choice of licences, the first of PREFERRED counts. The sources have to be there: build the program first.
"""

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
PREFERRED = ("MIT", "APACHE", "BSD", "ISC", "ZLIB", "0BSD", "BSL", "UNLICENSE")
LICENSE_FILE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.I)
# Sources of other projects inside of crates, which have files of their own.
VENDORED = "-sys"
# Crates of which a build script packs files into the program.
PACKED = ("utoipa-swagger-ui-vendored",)


def linked():
    """The crates of others that the program is linked of, procedural macros and build scripts left out."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=HERE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [package["id"] for package in packages.values() if package["name"] == "fieldline-server"]
    seen = set()
    while waiting:
        package = waiting.pop()
        if package in seen or any("proc-macro" in target["kind"] for target in packages[package]["targets"]):
            continue
        seen.add(package)
        for dependency in nodes[package]["deps"]:
            is_packed = packages[dependency["pkg"]]["name"] in PACKED
            if is_packed or any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    others = (packages[package] for package in seen if packages[package]["source"])
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def files_of(package):
    """The files with the licence that counts."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if file.is_file() and LICENSE_FILE.match(file.name))
    has_choice = " OR " in package["license"] or re.search(r"\w\s*/\s*\w", package["license"])
    if has_choice and " AND " not in package["license"]:
        for name in PREFERRED:
            chosen = [file for file in files if name in file.name.upper()]
            if chosen:
                files = chosen
                break
    if package["name"].endswith(VENDORED):
        inner = (file for file in folder.rglob("*") if file.is_file() and LICENSE_FILE.match(file.name))
        files += sorted(file for file in inner if file not in files and file.suffix not in (".c", ".h", ".rs"))
    return files


def main():
    rows, texts = [], {}
    users = defaultdict(list)
    for package in linked():
        name = f"{package['name']} {package['version']}"
        rows.append(f"{package['name']}\t{package['version']}\t{package['license']}\n")
        files = files_of(package)
        for file in files:
            text = file.read_text(errors="replace").strip().replace("\r\n", "\n")
            # The same text is often wrapped in another way.
            key = re.sub(r"\W+", " ", text).lower()
            texts.setdefault(key, text)
            if name not in users[key]:
                users[key].append(name)
        if not files:
            authors = ", ".join(package["authors"]) or package["repository"]
            text = f"Licensed under {package['license']}; the source has no text of it. By {authors}"
            texts.setdefault(text, text)
            users[text].append(name)
    (HERE / "crates.tsv").write_text("".join(rows))
    with (HERE / "texts.txt").open("w") as out:
        for key, text in sorted(texts.items(), key=lambda item: users[item[0]]):
            out.write(f"{'=' * 80}\n{', '.join(users[key])}\n{'=' * 80}\n\n{text}\n\n")


if __name__ == "__main__":
    main()
