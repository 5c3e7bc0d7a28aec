package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// isExplained checks that `mooring explain`, typed by an administrator, gives the
// controller's answer, word for word, and by the rules themselves but where only
// the controller can know.
func (w *world) isExplained(claim *corev1.PersistentVolumeClaim, said corev1.PersistentVolumeClaimCondition) {
	w.Helper()
	if differs := w.explainDiffers(claim, said); differs != "" {
		w.Error(differs)
	}
}

// explainDiffers returns how the answer of explain is another; "" if it is not.
func (w *world) explainDiffers(claim *corev1.PersistentVolumeClaim, said corev1.PersistentVolumeClaimCondition) string {
	var out, errs bytes.Buffer
	code := cli.Run(w.Context(), []string{"explain", claim.Namespace + "/" + claim.Name, "-o", "json",
		"--provisioner-name=" + names.Provisioner(), "--kubeconfig=" + w.plane.AdminKubeconfigFile()},
		cli.Env{Out: &out, Err: &errs, Version: "test"})
	var x cli.Explanation
	if err := json.Unmarshal(out.Bytes(), &x); err != nil {
		return fmt.Sprintf("explain: %v\n%s%s(exit code %d)", err, &out, &errs, code)
	}
	from := "rules"
	if reason := mirror.Reason(said.Reason); reason == mirror.VolumeRejected || reason == mirror.MirrorOfAnother {
		from = "controller"
	}
	if string(x.Reason) != said.Reason || x.Message != said.Message || x.From != from || code == 0 || len(x.NotVisible) > 0 {
		return fmt.Sprintf("explain says %s by the %s: %s\nthe controller says %s: %s\n%s%s(exit code %d)", x.Reason, x.From, x.Message, said.Reason, said.Message, &out, &errs, code)
	}
	return ""
}
