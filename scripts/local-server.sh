# Shared by with-dynamodb and with-sqs. It fetches a server with Maven, starts it with Java for one command and stops it
# afterwards. The script that sources this file sets
#
#	product	the name of the server, for messages
#	variable	the environment variable that passes the server's URL to the command
#	tools	the folder with pom.xml and Loopback.java, which prints that URL
#	size	the size of what Maven fetches, for messages
#	heap	the option -Xmx of Java. The tests need little. Without it, Java takes a quarter of the machine's memory
#	takes	what the server needs, for messages
#	without	what happens without the server, for messages
#
# and then calls with_server "$@". It may define other_start and other_stop, which are used if Java or Maven is missing.

root=$(cd "$(dirname "$0")/.." && pwd)
patience=60 # seconds that a start may take

# In the tests these options save a third of a server's processor time. In a few minutes, Java's optimizing compiler and its
# parallel garbage collector cost more than they gain.
lean='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'

say() { echo "${0##*/}: $*" >&2; }

# Shows the end of what Java, Maven or Docker printed. That output is shown only after a failure.
failed() {
	say "$1"
	tail -n 15 "$work/log" >&2
	return 1
}

# The directory gets the jars and the compiled Loopback.java. Its name depends on pom.xml and on that file. It is moved there
# only when it is complete.
fetch() {
	jars=$root/.cache/${tools##*/}-$(cat "$tools/pom.xml" "$tools/Loopback.java" | cksum | cut -d ' ' -f 1)
	[ ! -d "$jars" ] || return 0
	say "fetching $product with Maven ($size, only the first time)"
	mvn -q -B -f "$tools/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" >"$work/log" 2>&1 || {
		say "Maven could not fetch $product: $(sed -n '/\[ERROR\]/{s/.*\[ERROR\] //p;q;}' "$work/log")"
		return 1
	}
	javac -cp "$work/jars/*" -d "$work/jars" "$tools/Loopback.java" >"$work/log" 2>&1 ||
		failed "Loopback.java could not be compiled for $product:" || return
	mv "$work/jars" "$jars"
}

start_java() {
	# Loopback.java is compiled, so a JDK is needed. macOS has a java that only explains how to install one, so test that it runs.
	command -v mvn >/dev/null && command -v javac >/dev/null && java -version >/dev/null 2>&1 || return
	fetch || return
	: >"$work/endpoint"
	java "$heap" $lean -Djava.library.path="$jars" -cp "$jars:$jars/*" Loopback >"$work/endpoint" 2>"$work/log" &
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
		say "$product is not available ($takes), but CI=true requires it"
		exit 1
	else
		say "$product is not available ($takes): $without"
		unset "$variable"
	fi
	"$@"
}
