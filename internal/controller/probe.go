package controller

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the cluster does with a dataSourceRef to another namespace.
const (
	referenceKept    = "kept"
	referenceDropped = "dropped"
	referenceUnknown = "unknown"
)

// probe asks the API server once, by a dry run in the controller's own
// namespace, whether it keeps a dataSourceRef to another namespace. Where the
// gate CrossNamespaceVolumeDataSource is off it drops the whole reference and
// answers success (kubernetes pkg/api/persistentvolumeclaim/util.go), so that
// asking is the only way to know.
type probe struct {
	live      client.Client
	namespace string
	metrics   *metrics
	log       logr.Logger
}

// NeedLeaderElection lets every replica know.
func (p *probe) NeedLeaderElection() bool { return false }

// Start asks and reports. It never fails: a controller that does not know
// still serves both forms.
func (p *probe) Start(ctx context.Context) error {
	state, err := p.ask(ctx)
	p.metrics.reference.WithLabelValues(state).Set(1)
	switch {
	case err != nil:
		p.log.Info("whether the cluster keeps dataSourceRef.namespace is unknown; both forms are served", "why", err.Error())
	case state == referenceKept:
		p.log.Info("the cluster keeps dataSourceRef.namespace: mirror claims can use either form")
	case state == referenceDropped:
		p.log.Info("the cluster drops dataSourceRef.namespace: mirror claims need the annotation form")
	default:
		p.log.Info("whether the cluster keeps dataSourceRef.namespace was not asked: the own namespace is not known (POD_NAMESPACE)")
	}
	return nil
}

func (p *probe) ask(ctx context.Context) (string, error) {
	if p.namespace == "" {
		return referenceUnknown, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "mooring-probe-", Namespace: p.namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(""),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1")},
			},
			DataSourceRef: &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "probe", Namespace: ptr.To("probe")},
		},
	}
	if err := p.live.Create(ctx, claim, client.DryRunAll); err != nil {
		return referenceUnknown, err
	}
	if ref := claim.Spec.DataSourceRef; ref != nil && ref.Namespace != nil {
		return referenceKept, nil
	}
	return referenceDropped, nil
}
