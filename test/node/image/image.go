// Package image makes OCI images of one static program, as tar archives that
// containerd imports: no registry, no pull, no other tool.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// entry is a file or, with a nil content, a directory of a tar archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

type object = map[string]any

// Write writes an image whose entry point is the program, under a name such as
// example.test/program:1, with the directories that Pods need to mount into.
func Write(archive, name, program string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the image's program: %w", err)
	}
	layer, err := pack(
		entry{name: "dev/", mode: 0o755}, entry{name: "etc/", mode: 0o755}, entry{name: "proc/", mode: 0o555},
		entry{name: "sys/", mode: 0o555}, entry{name: "tmp/", mode: 0o1777}, entry{name: "program", mode: 0o755, content: content})
	if err != nil {
		return err
	}
	config, err := json.Marshal(object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Entrypoint": []string{"/program"}},
		"rootfs": object{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(object{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": descriptor(configType, config), "layers": []object{descriptor(layerType, layer)},
	})
	if err != nil {
		return err
	}
	listed := descriptor(manifestType, manifest)
	listed["platform"] = object{"architecture": runtime.GOARCH, "os": "linux"}
	listed["annotations"] = object{"io.containerd.image.name": name}
	index, err := json.Marshal(object{"schemaVersion": 2, "manifests": []object{listed}})
	if err != nil {
		return err
	}
	packed, err := pack(
		entry{name: "oci-layout", mode: 0o644, content: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		entry{name: "index.json", mode: 0o644, content: index},
		blob(layer), blob(config), blob(manifest))
	if err != nil {
		return err
	}
	return os.WriteFile(archive, packed, 0o644)
}

func pack(entries ...entry) ([]byte, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		if e.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(e.content); err != nil {
			return nil, err
		}
	}
	return packed.Bytes(), writer.Close()
}

func blob(content []byte) entry {
	return entry{name: "blobs/sha256/" + digest(content)[len("sha256:"):], mode: 0o644, content: content}
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func descriptor(mediaType string, content []byte) object {
	return object{"mediaType": mediaType, "digest": digest(content), "size": len(content)}
}
