#!/bin/sh
# For cron, on a machine of the administrators: are the retained volumes still exactly
# what their manifests say? It creates nothing. What cron mails is what is wrong.
#
#   17 3 * * *  nightly.sh /srv/volumes /root/retain.kubeconfig
set -eu
checkout=$1
kubeconfig=$2

status=0
for manifest in "$checkout"/volumes/*.yaml; do
	report=$(mooring retain preview "$manifest" --kubeconfig "$kubeconfig" 2>&1) || {
		status=$?
		printf '%s\n%s\n\n' "$manifest: exit code $status" "$report"
		continue
	}
	case $report in
	*"outcome      unchanged"*) ;;
	*) status=1 && printf '%s\n%s\n\n' "$manifest: is not there yet" "$report" ;;
	esac
done
exit "$status"
