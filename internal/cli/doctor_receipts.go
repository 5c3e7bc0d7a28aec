package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/doctor"
	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

const receiptsCheck = "receipts"

// checkReceipts compares the receipts of a directory with the live volumes.
func checkReceipts(ctx context.Context, s *session, dir string) ([]doctor.Finding, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, usageError("--receipts: %s holds no file *.json", dir)
	}
	var found []doctor.Finding
	for _, file := range files {
		record, err := readReceipt(file)
		if err != nil {
			found = append(found, doctor.Finding{Check: receiptsCheck, Level: doctor.Problem, Object: file, Message: err.Error(), Remedy: "restore the receipt from where it was written first"})
			continue
		}
		found = append(found, compareReceipt(ctx, s, file, record)...)
	}
	return found, nil
}

func compareReceipt(ctx context.Context, s *session, file string, record receipt.Receipt) []doctor.Finding {
	if record.Cluster == nil {
		return nil // refused before any cluster was asked: nothing lives
	}
	verified, err := retain.Verify(ctx, liveReader{s}, record, retain.AccessFacts{CADigest: record.Cluster.CADigest})
	var found []doctor.Finding
	for _, volume := range verified.Volumes {
		for _, drift := range volume.Drift {
			found = append(found, doctor.Finding{Check: receiptsCheck, Level: doctor.Problem, Object: "pv/" + volume.Name,
				Message: drift, Remedy: "mooring retain verify " + file + "; see docs/retained-volumes.md"})
		}
	}
	if err != nil && len(found) == 0 {
		found = append(found, doctor.Finding{Check: receiptsCheck, Level: doctor.Problem, Object: file, Message: err.Error(), Remedy: "mooring retain verify " + file})
	}
	return found
}

// liveReader reads for retain with the identity that asks.
type liveReader struct{ *session }

var _ retain.Reader = liveReader{}

// Version implements retain.Reader.
func (r liveReader) Version(context.Context) (string, error) {
	version, err := r.API.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("ask for the server's version: %w", err)
	}
	return version.GitVersion, nil
}

// Namespace implements retain.Reader.
func (r liveReader) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	seen, err := r.session.Namespace(ctx, name)
	if err == nil && seen.Object == nil {
		err = fmt.Errorf("namespace %s cannot be read: %w", name, os.ErrPermission)
	}
	return seen.Object, err
}

// Volume implements retain.Reader.
func (r liveReader) Volume(ctx context.Context, name string) (map[string]any, error) {
	seen, err := r.session.Volume(ctx, name)
	if err != nil || seen.Object == nil {
		if seen.Hidden {
			err = fmt.Errorf("volumes cannot be read: %w", os.ErrPermission)
		}
		return nil, err
	}
	seen.Object.APIVersion, seen.Object.Kind = "v1", "PersistentVolume"
	return runtime.DefaultUnstructuredConverter.ToUnstructured(seen.Object)
}

// Claim implements retain.Reader.
func (r liveReader) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	seen, err := r.session.Claim(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	if err == nil && seen.Hidden {
		err = fmt.Errorf("claims of namespace %s cannot be read: %w", namespace, os.ErrPermission)
	}
	return seen.Object, err
}

// Volumes implements retain.Reader.
func (r liveReader) Volumes(ctx context.Context, visit func(*corev1.PersistentVolume)) error {
	volumes, seen, err := r.session.Volumes(ctx)
	if err == nil && !seen {
		err = fmt.Errorf("volumes cannot be listed: %w", os.ErrPermission)
	}
	for i := range volumes {
		visit(&volumes[i])
	}
	return err
}
