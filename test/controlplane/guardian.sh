# Kills the processes of a control plane and removes its directory. Every
# process is known by its id and the time it was born, so that a stranger who
# got the same id later is never killed.

# identity PID prints when a process was born, or nothing if it is gone.
identity() {
	if [ -r /proc/self/stat ]; then
		line=
		{ read -r line <"/proc/$1/stat"; } 2>/dev/null
		set -- ${line##*) } # what follows the program's name; the first word is the state
		case ${1:-X} in
		X | Z) ;;
		*) echo "${20}" ;;
		esac
	else
		ps -o lstart= -p "$1" 2>/dev/null | tr -s ' ' _
	fi
}

# is PID:BORN is true while that very process lives.
is() { [ -n "${1#*:}" ] && [ "$(identity "${1%%:*}")" = "${1#*:}" ]; }

# finish DIR PID:BORN... ends the processes and removes the directory.
finish() {
	dir=$1
	shift
	for each in "$@"; do
		if is "$each"; then kill -9 "${each%%:*}" 2>/dev/null; fi
	done
	for each in "$@"; do
		tries=0
		while is "$each" && [ $tries -lt 100 ]; do
			sleep 0.1
			tries=$((tries + 1))
		done
	done
	rm -rf "$dir"
}
