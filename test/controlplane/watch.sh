# The guardian: told on its input which processes exist, it ends them when the
# input ends, which is when the process that started it is gone. Every line is
# answered, so that nobody goes on before the guardian knows.
trap '' HUP INT QUIT TERM
known=
while read -r word pid; do
	case $word in
	watch)
		known="$known $pid:$(identity "$pid")"
		echo done
		;;
	forget)
		rest=
		for each in $known; do
			[ "${each%%:*}" = "$pid" ] || rest="$rest $each"
		done
		known=$rest
		echo done
		;;
	detach)
		echo "$known"
		exit 0
		;;
	esac
done
finish "$1" $known
