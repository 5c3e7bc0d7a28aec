package cli

import (
	"net/http"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// The scenes of the commands that tell and change who may mirror, and of mirror.

func accessScenes() []scene {
	at := func(state, args string, arrange func(*fakeAPI)) scene {
		return scene{command: "access", state: state, args: args, outputs: people, arrange: arrange}
	}
	inUse := []func(*estate){bound, used("team-a", "data", "own"), used("team-b", "data", "first", "second"), granted("read-only-target-ns-labels", "team=c")}
	return []scene{
		at("granted-and-mirrored", "team-a/data", cluster(inUse...)),
		at("not-granted", "team-a/data", cluster(granted("required-target-ns-labels", ""))),
		at("tried", "team-a/data --as-of-selector team=c", cluster(inUse...)),
		at("broken-grant", "team-a/data", cluster(granted("required-target-ns-labels", "team in ("))),
		at("expires", "team-a/data", cluster(granted("grant-expires", "2999-12-31T00:00:00Z"))),
		at("origin-gone", "team-a/data", cluster(bound, func(e *estate) { e.origin = nil })),
		at("being-deleted", "team-a/data", cluster(bound, func(e *estate) { deleted(e.origin) })),
		at("seen-by-its-owner", "team-a/data", seenFrom("team-a", inUse...)),
		at("of-a-mirror", "team-b/data", cluster(bound)),
		at("of-an-unbound-mirror", "team-b/data", cluster()),
		at("of-a-nameless-mirror", "team-b/data", cluster(said(mirror.OriginMalformed, "cannot be read"), func(e *estate) { e.claim.Annotations[e.names.Origin()] = "nonsense" })),
		at("no-claim", "team-a/none", cluster()),
		at("not-visible", "team-a/data", tenant()),
	}
}

// The answers of an API server that does not write.
var (
	notAllowed = status(http.StatusForbidden, metav1.StatusReasonForbidden, `User "u" cannot write claims`)
	conflict   = status(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
)

// failing has the cluster answer a request with an error.
func failing(arrange func(*fakeAPI), request string, with metav1.Status) func(*fakeAPI) {
	return func(f *fakeAPI) {
		arrange(f)
		f.fails[request] = with
	}
}

const patchOrigin = "PATCH api/v1/namespaces/team-a/persistentvolumeclaims/data"

func shareScenes() []scene {
	unshared := granted("required-target-ns-labels", "")
	all := []scene{
		{state: "gains", args: "--with team=c --yes", arrange: cluster(unshared)},
		{state: "read-only", args: "--with team=b --read-only --yes", arrange: cluster(unshared)},
		{state: "expires", args: "--with team=b --expires 2999-12-31T00:00:00Z --yes", arrange: cluster()},
		{state: "expired", args: "--with team=b --expires 2020-01-01T00:00:00Z --yes", arrange: cluster()},
		{state: "replaces", args: "--with team=c --yes", arrange: cluster(bound)},
		{state: "everybody", args: "--with kubernetes.io/metadata.name --yes", arrange: cluster(unshared, func(e *estate) {
			for name, labels := range e.spaces {
				labels["kubernetes.io/metadata.name"] = name
			}
		})},
		{state: "a-mirror", args: "--with team=c --yes", arrange: cluster(unshared, func(e *estate) { e.origin.Annotations[e.names.Origin()] = "team-d/data" })},
		{state: "nothing-to-write", args: "--with team=b", arrange: cluster()},
		{state: "client-dry-run", args: "--with team=c --dry-run=client", arrange: cluster(unshared)},
		{state: "server-dry-run", args: "--with team=c --dry-run=server", arrange: cluster(unshared)},
		{state: "confirmed", args: "--with team=c", answer: "y\n", arrange: cluster(unshared)},
		{state: "not-confirmed", args: "--with team=c", answer: "n\n", arrange: cluster(unshared)},
		{state: "nobody-to-confirm", args: "--with team=c", arrange: cluster(unshared)},
		{state: "namespaces-hidden", args: "--with team=c --yes", arrange: seenFrom("team-a", unshared)},
		{state: "no-claim", args: "--with team=c --yes", arrange: cluster(func(e *estate) { e.origin = nil })},
		{state: "not-visible", args: "--with team=c --yes", arrange: tenant()},
		{state: "not-allowed", args: "--with team=c --yes", arrange: failing(cluster(unshared), patchOrigin, notAllowed)},
		{state: "changed-meanwhile", args: "--with team=c --yes", arrange: failing(cluster(unshared), patchOrigin, conflict)},
		{state: "bad-selector", args: "--with !team --yes", arrange: cluster(unshared)},
	}
	for i := range all {
		all[i].command, all[i].args, all[i].outputs = "share", "team-a/data "+all[i].args, people
	}
	return append(all, unshareScenes()...)
}

func unshareScenes() []scene {
	both := granted("read-only-target-ns-labels", "team=c", "grant-expires", "2999-12-31T00:00:00Z")
	all := []scene{
		{state: "loses", args: "--yes", arrange: cluster(bound, both)},
		{state: "read-only", args: "--read-only --yes", arrange: cluster(both)},
		{state: "read-write", args: "--read-write --yes", arrange: cluster(both)},
		{state: "not-shared", args: "--yes", arrange: cluster(granted("required-target-ns-labels", ""))},
		{state: "client-dry-run", args: "--dry-run=client", arrange: cluster()},
		{state: "server-dry-run", args: "--dry-run=server", arrange: cluster()},
		{state: "confirmed", answer: "yes\n", arrange: cluster()},
		{state: "not-confirmed", answer: "\n", arrange: cluster()},
		{state: "nobody-to-confirm", arrange: cluster()},
		{state: "no-claim", args: "--yes", arrange: cluster(func(e *estate) { e.origin = nil })},
		{state: "not-visible", args: "--yes", arrange: tenant()},
		{state: "not-allowed", args: "--yes", arrange: failing(cluster(), patchOrigin, notAllowed)},
		{state: "changed-meanwhile", args: "--yes", arrange: failing(cluster(), patchOrigin, conflict)},
	}
	for i := range all {
		all[i].command, all[i].args, all[i].outputs = "unshare", "team-a/data "+all[i].args, people
	}
	return all
}

// becoming has a claim that is created stand like this when it is read again.
func becoming(change func(read int, claim map[string]any)) func(*fakeAPI) {
	return func(f *fakeAPI) {
		withoutClaim(f)
		f.stored = change
	}
}

func withoutClaim(f *fakeAPI) { cluster(func(e *estate) { e.claim = nil })(f) }

func isBound(claim map[string]any) {
	claim["spec"].(map[string]any)["volumeName"] = "pvc-" + mirrorUID
	claim["status"] = map[string]any{"phase": "Bound"}
}

func isTold(claim map[string]any, reason mirror.Reason, message string) {
	claim["status"] = map[string]any{"phase": "Pending", "conditions": []any{map[string]any{
		"type": newEstate().names.Condition(), "status": "False", "reason": string(reason), "message": message,
	}}}
}

func bindsAtOnce(_ int, claim map[string]any) { isBound(claim) }

func mirrorScenes() []scene {
	all := []scene{
		{state: "bound-by-annotation", arrange: becoming(bindsAtOnce)},
		{state: "bound-by-reference", arrange: func(f *fakeAPI) { becoming(bindsAtOnce)(f); f.keepsReference = true }},
		{state: "waits-then-bound", arrange: becoming(func(read int, claim map[string]any) {
			if isTold(claim, mirror.OriginPending, "origin team-a/data is not bound yet"); read > 1 {
				isBound(claim)
			}
		})},
		{state: "refused", arrange: becoming(func(_ int, claim map[string]any) {
			isTold(claim, mirror.NotShared, "team-a/data does not exist or is not shared with namespace team-b: ask its owner to share it")
		})},
		{state: "not-bound-in-time", args: "--timeout 1ms", arrange: withoutClaim},
		{state: "gone-again", arrange: failing(withoutClaim, "GET api/v1/namespaces/team-b/persistentvolumeclaims/",
			status(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"))},
		{state: "not-waited-for", args: "--wait=false", arrange: withoutClaim},
		{state: "client-dry-run", args: "--dry-run=client", arrange: withoutClaim},
		{state: "server-dry-run", args: "--dry-run=server", arrange: withoutClaim},
		{state: "read-only", args: "--read-only --name inputs --dry-run=client", arrange: withoutClaim},
		{state: "not-allowed", arrange: failing(withoutClaim, "POST api/v1/namespaces/team-b/persistentvolumeclaims", notAllowed)},
		{state: "there-already", arrange: failing(withoutClaim, "POST api/v1/namespaces/team-b/persistentvolumeclaims",
			status(http.StatusConflict, metav1.StatusReasonAlreadyExists, "already exists"))},
		{state: "own-namespace", args: "-n team-a", arrange: withoutClaim},
		{state: "no-class", arrange: cluster(func(e *estate) { e.claim, e.class = nil, nil })},
		{state: "several-classes", arrange: func(f *fakeAPI) {
			withoutClaim(f)
			f.add(&storagev1.StorageClass{TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
				ObjectMeta: metav1.ObjectMeta{Name: "pvc-mirror-ro"}, Provisioner: newEstate().names.Provisioner()})
		}},
		{state: "classes-hidden", arrange: tenant(func(e *estate) { e.claim = nil })},
	}
	for i := range all {
		all[i].command, all[i].args, all[i].outputs = "mirror", "team-a/data "+all[i].args, people
	}
	return all
}
