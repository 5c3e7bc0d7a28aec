package doctor

import (
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// release is a version that was released; others, of builds between releases,
// cannot be compared with one.
var release = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)$`)

// versionOf returns the version that an installation runs: its image's tag, or,
// where that says nothing, what the chart wrote; empty where neither is a release.
func versionOf(deployment appsv1.Deployment) string {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(container.Image, "@")
		tag := image[strings.LastIndex(image, ":")+1:]
		if found := release.FindStringSubmatch(tag); found != nil {
			return found[1]
		}
	}
	if found := release.FindStringSubmatch(deployment.Labels["app.kubernetes.io/version"]); found != nil {
		return found[1]
	}
	return ""
}

// versions finds installations that are of another version than the command
// which asks: its rule book may say something else than theirs.
func (p *Patient) versions(object string, deployment appsv1.Deployment) []Finding {
	own := release.FindStringSubmatch(p.Command)
	runs := versionOf(deployment)
	switch {
	case runs == "":
		return []Finding{note(object, "look at its image", "its version cannot be seen: neither its image's tag nor its label app.kubernetes.io/version is a release's")}
	case own != nil && own[1] != runs:
		return []Finding{note(object, "use the command of release "+runs, "it runs version %s, and this command is %s: what they say of a claim may differ", runs, own[1])}
	}
	return nil
}
