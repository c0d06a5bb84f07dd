# What the scripts here that start a server share. They set `service` and source this with their own arguments.
#
# It makes a temporary $directory, which is removed at the end, after `stop` has killed the process $server_pid.

if [ $# -eq 0 ]; then
    echo "usage: $0 COMMAND [ARGUMENT...]" >&2
    exit 2
fi

directory=$(mktemp -d "${TMPDIR:-/tmp}/fieldline-$service.XXXXXX")
server_pid=

stop() {
    if [ -n "$server_pid" ]; then
        kill -9 "$server_pid" 2>/dev/null || true
        wait "$server_pid" 2>/dev/null || true
        server_pid=
    fi
}

clean_up() {
    status=$?
    trap - EXIT INT TERM
    stop
    rm -rf "$directory"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# needs PACKAGES PROGRAM...: fails unless the programs are there.
needs() {
    packages=$1
    shift
    for program in "$@"; do
        if ! command -v "$program" >/dev/null 2>&1; then
            echo "$0: $program not found; on Debian: apt-get install $packages" >&2
            exit 127
        fi
    done
}

# comes_up FILE TEXT SECONDS: waits until the server has written the text.
comes_up() {
    waited=0
    while kill -0 "$server_pid" 2>/dev/null && [ "$waited" -lt $(($3 * 20)) ]; do
        if grep -q "$2" "$1" 2>/dev/null; then
            return 0
        fi
        sleep 0.05
        waited=$((waited + 1))
    done
    return 1
}

# on_a_free_port START ATTEMPTS LOG: calls START with $port set until it succeeds. Any port may be taken by the time the
# server binds it, or one of those behind it: others are tried.
on_a_free_port() {
    attempt=0
    while :; do
        attempt=$((attempt + 1))
        port=$((20000 + ($$ * 7 + attempt * 1237) % 12000))
        if "$1"; then
            return 0
        fi
        stop
        if [ "$attempt" -ge "$2" ]; then
            cat "$3" >&2
            exit 1
        fi
    done
}

# maven_jars POM NAME [ARGUMENT...]: sets $library to a directory with what the POM names. Maven has it the first time; later
# it is in target/services, under the name.
maven_jars() {
    scripts=$(cd "$(dirname "$0")" && pwd)
    pom=$scripts/$1
    library=${CARGO_TARGET_DIR:-$scripts/../../target}/services/$2
    shift 2
    mkdir -p "$library"
    library=$(cd "$library" && pwd)
    (
        # Several that start at once must not write over one another.
        flock 9
        [ -f "$library/complete" ] ||
            mvn --quiet --batch-mode --file "$pom" "$@" \
                org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
                -DincludeScope=runtime -DoutputDirectory="$library" >&2 &&
            touch "$library/complete"
    ) 9>"$library.lock" || exit 1
}
