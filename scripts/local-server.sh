# What with-dynamodb and with-sqs share: a server from Maven, started by Java for one command and stopped after it.
# Whoever sources this sets
#
#	product	its name for people
#	variable	the variable that names its URL to the command
#	tools	the folder with its pom.xml and Loopback.java, which prints that URL
#	size	what Maven fetches
#	heap	Java's -Xmx: the tests' data is small; without a bound Java takes a quarter of the machine's memory
#	takes	what it takes, for people
#	without	what happens without it
#
# and calls with_server "$@". It may define other_start and other_stop, for where Java or Maven is missing.

root=$(cd "$(dirname "$0")/.." && pwd)
patience=60 # seconds until a start counts as failed

say() { echo "${0##*/}: $*" >&2; }

# What Java, Maven and Docker print is read only when something failed.
failed() {
	say "$1"
	tail -n 15 "$work/log" >&2
	return 1
}

# The directory gets its name, which changes with pom.xml, only once it is full.
fetch() {
	jars=$root/.cache/${tools##*/}-$(cksum <"$tools/pom.xml" | cut -d ' ' -f 1)
	[ ! -d "$jars" ] || return 0
	say "fetching $product by Maven ($size, only the first time)"
	if mvn -q -B -f "$tools/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" >"$work/log" 2>&1; then
		mv "$work/jars" "$jars"
	else
		say "Maven could not fetch $product: $(sed -n '/\[ERROR\]/{s/.*\[ERROR\] //p;q;}' "$work/log")"
		return 1
	fi
}

start_java() {
	# javac because Loopback.java is run from source; Java is asked because macOS has a java that only says where to get one.
	command -v mvn >/dev/null && command -v javac >/dev/null && java -version >/dev/null 2>&1 || return
	fetch || return
	: >"$work/endpoint"
	java "$heap" -Djava.library.path="$jars" -cp "$jars/*" "$tools/Loopback.java" >"$work/endpoint" 2>"$work/log" &
	java=$!
	tenths=0
	until read -r endpoint <"$work/endpoint"; do
		kill -0 "$java" 2>/dev/null && [ $tenths -lt $((patience * 10)) ] ||
			failed "$product did not start:" || return
		tenths=$((tenths + 1))
		sleep 0.1
	done
}

other_start() { return 1; }
other_stop() { :; }

stop() {
	[ -z "$java" ] || { kill "$java" && wait "$java"; } 2>/dev/null || :
	other_stop
	rm -rf "$work"
}

with_server() {
	if [ $# -eq 0 ]; then
		echo "usage: scripts/${0##*/} COMMAND [ARGUMENT...]" >&2
		exit 2
	fi
	eval "endpoint=\${$variable:-}"
	[ -z "$endpoint" ] || exec "$@"

	java=''
	mkdir -p "$root/.cache"
	work=$(mktemp -d "$root/.cache/${0##*/}.XXXXXX")
	trap stop EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM

	if start_java || other_start; then
		export "$variable=$endpoint"
	elif [ "${CI:-}" = true ]; then
		say "$product is not available ($takes), and CI=true asks for it"
		exit 1
	else
		say "$product is not available ($takes): $without"
		unset "$variable"
	fi
	"$@"
}
