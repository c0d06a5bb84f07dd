#!/usr/bin/env bash
# Fuzzes with libFuzzer: fuzz.sh SECONDS [TARGET...], so many seconds each; all targets that need no rule engine if none is named.
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
        target=$(basename "$source" .rs)
        # With the rule engine they take minutes to build.
        case $target in json_path | pattern) continue ;; esac
        targets+=("$target")
    done
fi

# Only what is built for the target is instrumented, not build scripts and macros.
triple=$(rustc -vV | sed -n 's/^host: //p')
flags="--cfg fuzzing -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 -Cpasses=sancov-module"
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=" -Cllvm-args=-sanitizer-coverage-$option"
done
features=()
[[ " ${targets[*]} " != *" json_path "* && " ${targets[*]} " != *" pattern "* ]] || features=(--features rules)
RUSTFLAGS="$flags" cargo build --release --target "$triple" "${features[@]}" "${targets[@]/#/--bin=}"

# Seconds and memory that one input may take: what people write into configurations has a budget of its own to stay within.
limits() {
    case $1 in
    json_path | pattern | expression | tbel_script | csv_import) echo "-timeout=10 -rss_limit_mb=1024" ;;
    *) echo "-timeout=10 -rss_limit_mb=2048" ;;
    esac
}

fuzz() {
    local target=$1 corpus=corpus/$1 log=artifacts/$1/last.log
    mkdir -p "$corpus" "artifacts/$target"
    local inputs=("$corpus")
    [ ! -d "seeds/$target" ] || inputs+=("seeds/$target")
    local bounds
    read -ra bounds <<<"$(limits "$target")"
    if ! "target/$triple/release/$target" -max_total_time="$seconds" "${bounds[@]}" -max_len=131072 \
        -artifact_prefix="artifacts/$target/" -print_final_stats=1 "${inputs[@]}" >"$log" 2>&1; then
        tail -n 60 "$log"
        echo "$target failed; the input is in fuzz/artifacts/$target"
        return 1
    fi
    echo "fuzzed $target for $seconds s"
    sed -n 's/^stat::number_of_executed_units: */  executions: /p; s/^stat::peak_rss_mb: */  peak MiB: /p' "$log"
}

# One target a processor at a time.
processors=$(nproc)
for ((first = 0; first < ${#targets[@]}; first += processors)); do
    running=()
    for target in "${targets[@]:first:processors}"; do
        fuzz "$target" &
        running+=($!)
    done
    failed=0
    for process in "${running[@]}"; do
        wait "$process" || failed=1
    done
    [ $failed = 0 ] || exit 1
done
