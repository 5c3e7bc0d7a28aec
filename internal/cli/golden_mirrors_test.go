package cli

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// The scenes of the commands that tell how mirrors stand.

func explainScenes() []scene {
	at := func(state string, arrange func(*fakeAPI)) scene {
		return scene{command: "explain", state: state, args: "team-b/data", outputs: people, arrange: arrange}
	}
	all := []scene{
		at("by-rules-Bound", cluster(bound)),
		at("by-rules-Allowed", cluster()),
		at("by-rules-Refused", cluster(granted("required-target-ns-labels", "team=c"))),
		at("by-rules-Waiting", cluster(originPending)),
		at("by-rules-Revoked", cluster(revoked)),
		at("by-rules-Unclear", cluster(bound, func(e *estate) { e.origin.Spec.VolumeName = "another" })),
		at("by-controller-Bound", tenant(bound, func(e *estate) {
			e.say(corev1.ConditionTrue, mirror.Mirrored, "mirrors team-a/data until 2027-06-30T18:00:00Z")
		})),
		at("by-controller-nothing-said", tenant()),
		at("being-deleted", cluster(bound, func(e *estate) { deleted(e.claim) })),
		at("no-claim", cluster(func(e *estate) { e.claim = nil })),
		at("no-mirror", cluster(func(e *estate) { e.claim.Annotations, e.claim.Spec.StorageClassName = nil, nil })),
		at("cluster-fails", func(f *fakeAPI) {
			cluster()(f)
			f.fails["GET api/v1/namespaces/team-b/persistentvolumeclaims/"] = status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd is not there")
		}),
	}
	for _, doc := range mirror.Reasons() {
		all = append(all, at(string(doc.Reason), tenant(reasoned(doc))))
	}
	return all
}

// reasoned has the controller tell a claim a reason, of the list.
func reasoned(doc mirror.ReasonDoc) func(*estate) {
	return func(e *estate) {
		switch {
		case slices.Contains([]mirror.Reason{mirror.OriginReplaced, mirror.RecordBroken, mirror.Mirrored}, doc.Reason):
			bound(e)
		case doc.Reason == mirror.VolumeLost:
			e.claim.Spec.VolumeName, e.claim.Status.Phase = "pvc-"+mirrorUID, corev1.ClaimLost
		}
		e.say(corev1.ConditionFalse, doc.Reason, "what the controller says of "+string(doc.Reason))
		if doc.Reason == mirror.Mirrored {
			e.say(corev1.ConditionTrue, doc.Reason, "mirrors team-a/data again")
		}
	}
}

func originPending(e *estate) {
	e.origin.Spec.VolumeName, e.origin.Status.Phase = "", corev1.ClaimPending
}

// inState has the claim in a state of mooring list.
func inState(state inventory.State) func(*estate) {
	return map[inventory.State]func(*estate){
		inventory.Bound:   bound,
		inventory.Revoked: revoked,
		inventory.Unclear: func(e *estate) { bound(e); said(mirror.OriginBindingBroken, "the origin's binding is broken")(e) },
		inventory.Waiting: said(mirror.OriginPending, "origin team-a/data is not bound yet"),
		inventory.Refused: said(mirror.TooLarge, "asks for more than the origin has"),
		inventory.Pending: func(*estate) {},
		inventory.Lost: func(e *estate) {
			e.claim.Spec.VolumeName, e.claim.Status.Phase = "pvc-"+mirrorUID, corev1.ClaimLost
			said(mirror.VolumeLost, "its volume is gone")(e)
		},
		inventory.Ending: func(e *estate) { bound(e); deleted(e.claim) },
	}[state]
}

var mirrorStates = []inventory.State{
	inventory.Bound, inventory.Revoked, inventory.Unclear, inventory.Waiting, inventory.Refused, inventory.Pending, inventory.Lost, inventory.Ending,
}

// crowd puts a claim of each state into the cluster, each in a namespace of its
// own, and two of another origin.
func crowd(f *fakeAPI) {
	for i, state := range mirrorStates {
		e := newEstate()
		namespace := "team-" + strings.ToLower(string(state))
		e.claim.Namespace, e.claim.UID = namespace, types.UID(fmt.Sprintf("%s%d", mirrorUID[:35], i))
		if i%2 == 1 {
			e.claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		}
		inState(state)(e)
		e.onto(f)
	}
	e := newEstate()
	e.claim.Annotations[e.names.Origin()], e.claim.Name = "courses/intro", "intro"
	e.onto(f)
}

func listScenes() []scene {
	at := func(state, args string, arrange func(*fakeAPI)) scene {
		return scene{command: "list", state: state, args: args, outputs: people, arrange: arrange}
	}
	only := func(s scene, output string) scene { s.outputs = []string{output}; return s }
	all := []scene{
		at("none", "", cluster(func(e *estate) { e.claim = nil })),
		at("none-of-the-kind", "-A --denied", cluster(bound)),
		at("all-in-all-namespaces", "-A", crowd),
		only(at("wide", "-A", cluster(bound)), "wide"),
		only(at("name", "-A", crowd), "name"),
		at("of-one-origin", "-A --origin courses/intro", crowd),
		at("seen-by-a-tenant", "-A", tenant(bound)),
		{command: "list", state: "Gone", args: "--watch", outputs: people, show: showGone, part: "#/$defs/mirror"},
	}
	for _, state := range mirrorStates {
		all = append(all, at(string(state), "-n team-b", cluster(inState(state))))
	}
	return all
}

// showGone prints what a watch tells of a mirror claim that is no more.
func showGone(out io.Writer, output string) error {
	e := newEstate()
	bound(e)
	row := inventory.RowOf(e.names, e.claim, e.volume)
	row.State = inventory.Gone
	f := &listFlags{output: output}
	printer := f.printer(Env{Out: out, Err: out}, &session{Cluster: &inventory.Cluster{}}, &inventory.Listing{Namespace: "team-b"})
	return printer.change(row)
}

func mapScenes() []scene {
	at := func(state, args string, arrange func(*fakeAPI)) scene {
		return scene{command: "map", state: state, args: args, outputs: []string{"mermaid", "json"}, arrange: arrange}
	}
	drawn := func(s scene) scene { s.outputs = []string{"svg", "dot", "mermaid", "json"}; return s }
	all := []scene{
		drawn(at("none", "", cluster(func(e *estate) { e.claim = nil }))),
		drawn(at("all", "", crowd)),
		at("of-one-origin", "--origin courses/intro", crowd),
		at("without-origin", "", cluster(said(mirror.NoOrigin, "names no origin"), func(e *estate) { e.claim.Annotations = nil })),
		at("seen-by-a-tenant", "", tenant(bound)),
	}
	for _, state := range mirrorStates {
		all = append(all, at(string(state), "", cluster(inState(state))))
	}
	return all
}
