package inventory

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// Account is all that this identity can see of one mirror claim.
type Account struct {
	Claim *corev1.PersistentVolumeClaim
	// Volume is the claim's mirror volume, nil where there is none or it cannot
	// be read.
	Volume *corev1.PersistentVolume
	// Facts are what the ladder rests on; Complete says that nothing of it was
	// hidden from this identity, so that the ladder gives the controller's
	// answer.
	Facts    mirror.Facts
	Complete bool
}

// Explain reads what there is to know about a claim; Claim is nil where there is
// none.
func (c *Cluster) Explain(ctx context.Context, key types.NamespacedName, refuseUnknown bool) (Account, error) {
	account := Account{Facts: mirror.Facts{Names: c.Names, RefuseUnknownDrivers: refuseUnknown, Now: time.Now()}, Complete: true}
	claim, err := c.Claim(ctx, key)
	if err != nil || claim.Object == nil {
		return account, err
	}
	account.Claim, account.Facts.Claim = claim.Object, claim.Object
	if claim.Object.Spec.StorageClassName != nil {
		class, err := c.Class(ctx, *claim.Object.Spec.StorageClassName)
		if err != nil {
			return account, err
		}
		account.Facts.Class = class.Object
		account.Complete = account.Complete && !class.Hidden
	}
	if err := c.namespaceOf(ctx, &account); err != nil {
		return account, err
	}
	volume, err := c.Volume(ctx, mirror.NameOf(claim.Object))
	if err != nil {
		return account, err
	}
	if volume.Object != nil && mirror.RecordOf(c.Names, volume.Object).IsMirror() {
		account.Volume = volume.Object
	}
	origin := mirror.Origin(c.Names, claim.Object)
	if account.Volume != nil {
		origin = mirror.RecordOf(c.Names, account.Volume).Origin
	}
	return account, c.originOf(ctx, &account, origin)
}

func (c *Cluster) namespaceOf(ctx context.Context, account *Account) error {
	namespace, err := c.Namespace(ctx, account.Claim.Namespace)
	if err != nil {
		return err
	}
	account.Complete = account.Complete && !namespace.Hidden
	if namespace.Object != nil {
		account.Facts.NamespaceLabels = namespace.Object.Labels
	}
	return nil
}

// originOf reads the origin, its volume and driver, and the claim's rivals.
func (c *Cluster) originOf(ctx context.Context, account *Account, key types.NamespacedName) error {
	origin, err := c.Claim(ctx, key)
	if err != nil {
		return err
	}
	account.Facts.Origin = origin.Object
	account.Complete = account.Complete && !origin.Hidden
	if origin.Object == nil {
		return nil
	}
	volume, err := c.Volume(ctx, origin.Object.Spec.VolumeName)
	if err != nil {
		return err
	}
	account.Facts.OriginVolume = volume.Object
	account.Complete = account.Complete && !volume.Hidden
	if volume.Object == nil || volume.Object.Spec.CSI == nil {
		return nil
	}
	driver, err := c.Driver(ctx, volume.Object.Spec.CSI.Driver)
	if err != nil {
		return err
	}
	account.Facts.Driver = driver.Object
	account.Complete = account.Complete && !driver.Hidden
	account.Facts.Rivals, err = c.rivals(ctx, account, key)
	return err
}

// rivals returns the claims of the namespace that mirror the origin or ask to.
func (c *Cluster) rivals(ctx context.Context, account *Account, origin types.NamespacedName) ([]mirror.Rival, error) {
	claims, _, err := c.Claims(ctx, account.Claim.Namespace, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	classes, _, err := c.Classes(ctx)
	if err != nil {
		return nil, err
	}
	volumes, _, err := c.Mirrors(ctx, origin)
	if err != nil {
		return nil, err
	}
	served := map[types.UID]bool{}
	for i := range volumes {
		served[mirror.RecordOf(c.Names, &volumes[i]).ClaimUID] = true
	}
	var rivals []mirror.Rival
	for i := range claims {
		class := ""
		if claims[i].Spec.StorageClassName != nil {
			class = *claims[i].Spec.StorageClassName
		}
		_, ours := classes[class]
		asks := ours && mirror.Origin(c.Names, &claims[i]) == origin
		if rival, ok := mirror.RivalOf(c.Names, &claims[i], served[claims[i].UID]); ok && (asks || rival.Served) {
			rivals = append(rivals, rival)
		}
	}
	return rivals, nil
}
