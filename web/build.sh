#!/usr/bin/env bash
# Builds the user interface into the folder named, unless what is there was made from the same sources.
set -euo pipefail
target=$(realpath -m "$1")
cd "$(dirname "$0")"

sources=$(find . \( -name node_modules -o -name dist -o -name test-results -o -name tests \) -prune -o -type f -print0 |
    sort -z | xargs -0 sha256sum | sha256sum)
if [ ! -d node_modules ] || ! cmp -s package-lock.json node_modules/.installed; then
    npm ci --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.installed
fi
if [ -d "$target" ] && [ "$(cat "$target.sources" 2>/dev/null)" = "$sources" ]; then
    exit 0
fi
echo "building the web user interface"
npm run --silent build -- --logLevel=error
rm -rf "$target"
cp -r dist "$target"
echo "$sources" >"$target.sources"
