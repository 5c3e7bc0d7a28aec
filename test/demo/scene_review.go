package main

import (
	"context"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What the scenes of the retained volume share: the names in examples/retain*
// and the files that a user of docs/retained-volumes.md makes.
const (
	retainedVolume   = "projects"
	retainedManifest = "examples/retained-nfs.yaml"
	retainedClaim    = "research/projects"
	retainKubeconfig = "retain.kubeconfig"
	receiptFile      = "receipt.json"
)

// Exit codes, as docs/exit-codes.md has them.
const (
	exitOK              = 0
	exitManifestInvalid = 10
	exitBackendShared   = 40
)

var planDigest = regexp.MustCompile(`(?m)^plan digest +(sha256:[0-9a-f]{64})$`)

// reviewScene is all that happens before a retained volume is made.
func reviewScene(ctx context.Context, s *stage) error {
	s.tell.say("The other door. A manifest is checked offline, before there are any credentials; this one the API server would take.")
	if _, err := s.mooring(ctx, exitManifestInvalid, "retain", "check", "examples/retained-bad.yaml"); err != nil {
		return err
	}
	if _, err := s.mooring(ctx, exitOK, "retain", "check", retainedManifest, "--policy", "examples/retained-policy.yaml"); err != nil {
		return err
	}
	if err := s.harmlessIdentity(ctx); err != nil {
		return err
	}
	s.tell.say("The preview reads the cluster and writes nothing. Its plan digest is what a person approves.")
	out, err := s.mooring(ctx, exitOK, "retain", "preview", retainedManifest, "--kubeconfig", retainKubeconfig, "-o", "preview.json")
	if err != nil {
		return err
	}
	found := planDigest.FindStringSubmatch(out)
	if found == nil {
		return fmt.Errorf("the preview prints no plan digest")
	}
	s.approved = found[1]
	if volume, err := s.volume(retainedVolume)(ctx); !apierrors.IsNotFound(err) {
		return surprised(volume, "a preview makes no volume (%v)", err)
	}
	_, err = s.mooring(ctx, exitOK, "retain", "verify", "preview.json")
	return err
}

// harmlessIdentity makes the only kind of kubeconfig that mooring retain takes,
// of an account that can read and create volumes.
func (s *stage) harmlessIdentity(ctx context.Context) error {
	s.tell.say("An identity that can create a volume, and can change or delete none:")
	if err := s.types(ctx, "apply", "-f", "examples/retain-rbac.yaml"); err != nil {
		return err
	}
	if err := s.typesInto(ctx, "token", "create", "token", "retain", "-n", "mooring-retain", "--duration", "1h"); err != nil {
		return err
	}
	const authority = `{{index (index .clusters 0).cluster "certificate-authority-data" | base64decode}}`
	if err := s.typesInto(ctx, "ca.crt", "config", "view", "--raw", "-o", "go-template="+authority); err != nil {
		return err
	}
	return s.mooringInto(ctx, retainKubeconfig, "retain", "kubeconfig",
		"--server", s.plane.Admin().Host, "--ca", "ca.crt", "--token-file", "token")
}
