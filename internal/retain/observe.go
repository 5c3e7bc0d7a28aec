package retain

import (
	"context"
	"errors"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// readError gives an error of a read its reason. A refused read names the right
// that is missing; no error is ever taken for absence.
func readError(err error, right Right) *Error {
	if errors.Is(err, context.Canceled) {
		return refusef(Interrupted, "interrupted while reading: %w", err)
	}
	switch statusCode(err) {
	case http.StatusForbidden:
		return refusef(PermissionMissing, "the identity may not %s: %w", right, err)
	case http.StatusUnauthorized:
		return refusef(PermissionMissing, "the server does not accept the credentials of the kubeconfig, which may have expired: %w", err)
	}
	return refusef(ReadFailed, "%w", err)
}

// observeCluster reads who is asked, and who asks.
func observeCluster(ctx context.Context, c Cluster, access AccessFacts) (*receipt.Cluster, *receipt.Caller, error) {
	version, err := c.Version(ctx)
	if err != nil {
		return nil, nil, readError(err, Right{Verb: "get", Resource: "/version"})
	}
	uid, err := clusterUID(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	caller, err := c.WhoAmI(ctx)
	if err != nil {
		return nil, nil, readError(err, Right{Verb: "create", Resource: "selfsubjectreviews"})
	}
	return &receipt.Cluster{UID: uid, CADigest: access.CADigest, Server: access.Server, Version: version}, &caller, nil
}

// clusterUID returns the UID of kube-system, which is the cluster's identity:
// the namespace exists from the first start of the API server and cannot be
// deleted.
func clusterUID(ctx context.Context, c Reader) (string, error) {
	ns, err := c.Namespace(ctx, "kube-system")
	if err != nil {
		return "", readError(err, Right{Verb: "get", Resource: "namespaces", Name: "kube-system"})
	}
	return string(ns.UID), nil
}

// observeNeighbours reads every volume of the cluster once for all manifests.
func observeNeighbours(ctx context.Context, c Reader) ([]Neighbour, error) {
	var neighbours []Neighbour
	err := c.Volumes(ctx, func(volume *corev1.PersistentVolume) { neighbours = append(neighbours, NeighbourOf(volume)) })
	if err != nil {
		return nil, readError(err, Right{Verb: "list", Resource: volumes})
	}
	return neighbours, nil
}

// observe reads the facts of one manifest. A binding that is written between the
// two reads is seen by half: the volume says nothing of it and the claim does,
// which is refused as unproven.
func observe(ctx context.Context, c Reader, m Manifest, all []Neighbour) (Facts, error) {
	live, err := c.Volume(ctx, m.Name())
	if err != nil {
		return Facts{}, readError(err, Right{Verb: "get", Resource: volumes, Name: m.Name()})
	}
	claim, err := observeClaim(ctx, c, m)
	if err != nil {
		return Facts{}, err
	}
	return Facts{Live: live, Claim: claim, Neighbours: without(all, m.Name())}, nil
}

// without returns all volumes but the one of that name.
func without(all []Neighbour, name string) []Neighbour {
	return slices.DeleteFunc(slices.Clone(all), func(n Neighbour) bool { return n.Name == name })
}

func observeClaim(ctx context.Context, c Reader, m Manifest) (*corev1.PersistentVolumeClaim, error) {
	ref := m.Volume.Spec.ClaimRef
	claim, err := c.Claim(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, readError(err, Right{Verb: "get", Resource: "persistentvolumeclaims", Name: claimName(m)})
	}
	return claim, nil
}
