package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Level is how much a finding matters.
type Level string

// The levels.
const (
	// Problem: something does not work as it should; the command fails.
	Problem Level = "problem"
	// Note: to be known; nothing is wrong.
	Note Level = "note"
)

// Finding is one thing that was found.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Object is what it is about, such as pvc/team-a/data; "" for the cluster.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
	// Remedy is what to do about it.
	Remedy string `json:"remedy,omitempty"`
}

// check is one look at the patient.
type check struct {
	name string
	look func(p *Patient, now time.Time) []Finding
	// needs is what has to be seen: without it, to have found nothing says
	// nothing.
	needs []string
}

// checks are all of them, in the order in which they are told.
var checks = []check{
	{"references", references, nil},
	{"classes", classes, []string{"storageclasses"}},
	{"controller", controllers, []string{"deployments", "leases"}},
	{"rights", rightsLacking, []string{"deployments", accountRights}},
	{"policies", policies, []string{"persistentvolumeclaims", "validatingadmissionpolicies"}},
	{"fences", fences, []string{"deployments", "validatingadmissionpolicies"}},
	{"drivers", drivers, []string{"persistentvolumes", "csidrivers"}},
	{"handles", handles, []string{"persistentvolumes"}},
	{"mirrors", mirrors, []string{"persistentvolumeclaims", "persistentvolumes"}},
	{"served", served, []string{"persistentvolumes", "deployments"}},
	{"origins", origins, []string{"persistentvolumeclaims", "persistentvolumes"}},
	{"brake", brakes, []string{"deployments", "configmaps"}},
}

// Unseen returns the checks that could not see all that they look at.
func (p *Patient) Unseen() []string {
	var names []string
	for _, check := range checks {
		if slices.ContainsFunc(check.needs, p.isHidden) {
			names = append(names, check.name)
		}
	}
	return names
}

// Checks returns the names of all checks.
func Checks() []string {
	var names []string
	for _, check := range checks {
		names = append(names, check.name)
	}
	return names
}

// Findings looks at everything, and returns what was found, in the order of the
// checks and then by object.
func (p *Patient) Findings(now time.Time) []Finding {
	var all []Finding
	for _, check := range checks {
		found := check.look(p, now)
		slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Object, b.Object) })
		for _, finding := range found {
			finding.Check = check.name
			all = append(all, finding)
		}
	}
	return all
}

func problem(object, remedy, format string, args ...any) Finding {
	return Finding{Level: Problem, Object: object, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

func note(object, remedy, format string, args ...any) Finding {
	return Finding{Level: Note, Object: object, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

func references(p *Patient, _ time.Time) []Finding {
	annotation := "use the annotation " + p.Names.Origin() + ", which works everywhere (mooring mirror does)"
	switch p.Reference {
	case Kept:
		return nil
	case Dropped:
		return []Finding{note("", annotation, "the API server drops a dataSourceRef to another namespace without a word: "+
			"its feature gate CrossNamespaceVolumeDataSource is off")}
	default:
		return []Finding{note("", annotation, "whether the API server keeps a dataSourceRef to another namespace could not be asked")}
	}
}

// classes finds classes that refuse all their claims, and words in them that
// mean nothing.
func classes(p *Patient, _ time.Time) []Finding {
	if len(p.Classes) == 0 && !p.isHidden("storageclasses") {
		return []Finding{problem("", "install the chart, or create a StorageClass with this provisioner", "no StorageClass has the provisioner %s", p.Names.Provisioner())}
	}
	var found []Finding
	for i := range p.Classes {
		class := &p.Classes[i]
		object := "storageclass/" + class.Name
		for _, wrong := range unfit(p.Names, class) {
			found = append(found, problem(object, wrong.remedy, "%s", wrong.message))
		}
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			found = append(found, problem(object, "take the annotation off", "it is the default class, so that claims which name no class and no origin get it and are never bound"))
		}
	}
	return found
}

func controllers(p *Patient, now time.Time) []Finding {
	if len(p.Deployments) == 0 {
		if p.isHidden("deployments") {
			return nil
		}
		return []Finding{problem("", "install the chart; or, if the controller runs by other means, see to it yourself", "no Deployment with the label %s: nobody serves mirrors", instances)}
	}
	var found []Finding
	for _, deployment := range p.Deployments {
		object := "deployment/" + deployment.Namespace + "/" + deployment.Name
		if deployment.Status.ReadyReplicas == 0 {
			found = append(found, problem(object, "kubectl --namespace "+deployment.Namespace+" describe pods -l "+instances, "none of its %d Pods is ready", deployment.Status.Replicas))
		}
		found = append(found, p.versions(object, deployment)...)
		found = append(found, p.leading(object, p.leaseOf(deployment), deployment.Namespace, now)...)
	}
	return found
}

// leading finds installations in which nobody works.
func (p *Patient) leading(object, lease, namespace string, now time.Time) []Finding {
	if p.isHidden("leases of namespace " + namespace) {
		return nil
	}
	remedy := "kubectl --namespace " + namespace + " get lease " + lease + " -o yaml"
	for _, l := range p.Leases {
		if l.Namespace != namespace || l.Name != lease {
			continue
		}
		holder, renewed := "", time.Time{}
		if l.Spec.HolderIdentity != nil {
			holder = *l.Spec.HolderIdentity
		}
		if l.Spec.RenewTime != nil {
			renewed = l.Spec.RenewTime.Time
		}
		duration := 15 * time.Second
		if l.Spec.LeaseDurationSeconds != nil {
			duration = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
		}
		switch {
		case strings.Contains(holder, "cleanup"):
			return []Finding{problem(object, "delete the lease to let Mooring work again", "a cleanup holds the lease: no replica works")}
		case holder == "" || now.Sub(renewed) > duration:
			return []Finding{problem(object, remedy, "no replica leads: the lease was renewed last %s ago", now.Sub(renewed).Round(time.Second))}
		}
		return nil
	}
	return []Finding{note(object, remedy, "it has no lease %s: it is not running, or without leader election, or under another provisioner name", lease)}
}

func rightsLacking(p *Patient, _ time.Time) []Finding {
	var found []Finding
	for account, lacking := range p.Rights {
		found = append(found, problem("user/"+account, "compare with the chart's clusterrole.yaml; after setting on-revoke: Delete by hand, set allowClaimDeletion in the chart",
			"it may not: %s", strings.Join(lacking, ", ")))
	}
	return found
}

func brakes(p *Patient, _ time.Time) []Finding {
	var found []Finding
	for _, brake := range p.Brakes {
		if brake.Data["state"] == "engaged" {
			found = append(found, problem("configmap/"+brake.Namespace+"/"+brake.Name,
				"look what took the grants away; then: kubectl --namespace "+brake.Namespace+" patch configmap "+brake.Name+` --type merge -p '{"data":{"state":"lifted"}}'`,
				"claims are no longer deleted since %s: %s mirrors lost their grant at once, more than %s", brake.Data["since"], brake.Data["revoked"], brake.Data["limit"]))
		}
	}
	return found
}

func (p *Patient) isHidden(what string) bool {
	return slices.ContainsFunc(p.Hidden, func(hidden string) bool { return strings.HasPrefix(hidden, what) })
}

func claimObject(claim *corev1.PersistentVolumeClaim) string {
	return "pvc/" + claim.Namespace + "/" + claim.Name
}
