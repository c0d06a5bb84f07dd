#!/usr/bin/env bash
# Fuzzes decoders with libFuzzer: fuzz.sh SECONDS [TARGET...], so many seconds each; all targets if none is named.
#
# cargo-fuzz is not needed, nor a nightly compiler: the coverage that guides libFuzzer is a compiler pass that the stable
# one has. The workspace denies unsafe code, so that an address sanitizer would find little, at a third of the speed.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

seconds=$1
shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in fuzz_targets/*.rs; do
        targets+=("$(basename "$source" .rs)")
    done
fi

# Only what is built for the target is instrumented, not build scripts and macros.
triple=$(rustc -vV | sed -n 's/^host: //p')
flags="--cfg fuzzing -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 -Cpasses=sancov-module"
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=" -Cllvm-args=-sanitizer-coverage-$option"
done
RUSTFLAGS="$flags" cargo build --release --target "$triple" "${targets[@]/#/--bin=}"

for target in "${targets[@]}"; do
    corpus=corpus/$target
    mkdir -p "$corpus" "artifacts/$target"
    inputs=("$corpus")
    [ ! -d "seeds/$target" ] || inputs+=("seeds/$target")
    log=artifacts/$target/last.log
    echo "fuzzing $target for $seconds s"
    if ! "target/$triple/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=131072 \
        -artifact_prefix="artifacts/$target/" -print_final_stats=1 "${inputs[@]}" >"$log" 2>&1; then
        tail -n 60 "$log"
        echo "$target failed; the input is in fuzz/artifacts/$target"
        exit 1
    fi
    sed -n 's/^stat::number_of_executed_units: */  executions: /p; s/^stat::peak_rss_mb: */  peak MiB: /p' "$log"
done
