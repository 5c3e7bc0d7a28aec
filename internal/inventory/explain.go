package inventory

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// Account is all that this identity can see of one claim.
type Account struct {
	// Claim is nil where there is none or it is hidden.
	Claim  *corev1.PersistentVolumeClaim
	Hidden bool
	// IsMirror says that the claim is, or asks to be, a mirror.
	IsMirror bool
	// Volume is the claim's mirror volume, nil where there is none or it cannot
	// be read.
	Volume *corev1.PersistentVolume
	// Situation is what the controller's ladders rest on, as far as it is seen.
	Situation mirror.Situation
}

// Explain reads what there is to know about a claim.
func (c *Cluster) Explain(ctx context.Context, key types.NamespacedName) (Account, error) {
	account := Account{Situation: mirror.Situation{Facts: mirror.Facts{Names: c.Names, Now: time.Now()}}}
	claim, err := c.Claim(ctx, key)
	account.Claim, account.Hidden = claim.Object, claim.Hidden
	if err != nil || claim.Object == nil {
		return account, err
	}
	situation := &account.Situation
	situation.Claim, situation.Said = claim.Object, ConditionOf(c.Names, claim.Object)
	for _, read := range []func(context.Context, *mirror.Situation) error{c.classOf, c.namespaceOf, c.volumeOf} {
		if err := read(ctx, situation); err != nil {
			return account, err
		}
	}
	if situation.Volume != nil && mirror.RecordOf(c.Names, situation.Volume).IsMirror() {
		account.Volume = situation.Volume
	}
	account.IsMirror = c.isMirror(account)
	if !account.IsMirror {
		return account, nil
	}
	if account.Volume == nil {
		return account, c.originOf(ctx, situation, mirror.Origin(c.Names, claim.Object))
	}
	return account, c.recordedOf(ctx, situation, mirror.RecordOf(c.Names, account.Volume))
}

// isMirror is the controller's, but where the class is hidden: a claim that
// names an origin is then taken for what it most likely is.
func (c *Cluster) isMirror(account Account) bool {
	classes, class := map[string]storagev1.StorageClass{}, account.Situation.Class
	if class != nil && class.Provisioner == c.Names.Provisioner() {
		classes[class.Name] = *class
	}
	return IsMirrorClaim(c.Names, account.Claim, classes, account.Volume) ||
		account.Situation.Hidden.Class && mirror.Origin(c.Names, account.Claim).Name != ""
}

func (c *Cluster) classOf(ctx context.Context, s *mirror.Situation) error {
	if s.Claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := c.Class(ctx, *s.Claim.Spec.StorageClassName)
	s.Class, s.Hidden.Class = class.Object, class.Hidden
	return err
}

func (c *Cluster) namespaceOf(ctx context.Context, s *mirror.Situation) error {
	namespace, err := c.Namespace(ctx, s.Claim.Namespace)
	s.Hidden.Namespace = namespace.Hidden
	if namespace.Object != nil {
		s.NamespaceLabels = namespace.Object.Labels
	}
	return err
}

func (c *Cluster) volumeOf(ctx context.Context, s *mirror.Situation) error {
	volume, err := c.Volume(ctx, mirror.NameOf(s.Claim))
	s.Volume, s.Hidden.Volume = volume.Object, volume.Hidden
	if err != nil || !mirror.IsRestored(s.Claim) {
		return err
	}
	// Whether the claim of that name lives is known to who sees all claims.
	all, seen, err := c.Claims(ctx, "", metav1.ListOptions{})
	s.FormerName = seen && !slices.ContainsFunc(all, func(other corev1.PersistentVolumeClaim) bool {
		return mirror.VolumeName(other.UID) == s.Claim.Spec.VolumeName
	})
	return err
}

// recordedOf reads what a mirror volume's record names: mostly one volume, which
// is the origin's.
func (c *Cluster) recordedOf(ctx context.Context, s *mirror.Situation, record mirror.Record) error {
	if err := c.originOf(ctx, s, record.Origin); err != nil {
		return err
	}
	if s.OriginVolume != nil && s.OriginVolume.Name == record.OriginVolume {
		s.RecordedVolume = s.OriginVolume
		return nil
	}
	volume, err := c.Volume(ctx, record.OriginVolume)
	s.RecordedVolume = volume.Object
	return err
}

// originOf reads the origin, its volume and driver, and the claim's rivals
// where they count. What hangs on something hidden is hidden as well.
func (c *Cluster) originOf(ctx context.Context, s *mirror.Situation, key types.NamespacedName) error {
	origin, err := c.Claim(ctx, key)
	s.Origin, s.Hidden.Origin = origin.Object, origin.Hidden
	if origin.Hidden {
		s.Hidden.OriginVolume, s.Hidden.Driver, s.Hidden.Rivals = true, true, true
	}
	if err != nil || origin.Object == nil {
		return err
	}
	volume, err := c.Volume(ctx, origin.Object.Spec.VolumeName)
	s.OriginVolume, s.Hidden.OriginVolume = volume.Object, volume.Hidden
	if volume.Hidden {
		s.Hidden.Driver, s.Hidden.Rivals = true, true
	}
	if err != nil || volume.Object == nil || volume.Object.Spec.CSI == nil {
		return err
	}
	s.Hidden.Rivals = s.Hidden.Class || s.Hidden.Namespace // whether they count is not seen
	driver, err := c.Driver(ctx, volume.Object.Spec.CSI.Driver)
	s.Driver, s.Hidden.Driver = driver.Object, driver.Hidden
	if err != nil || s.Hidden.Driver || !mirror.Decide(s.Facts).SharesHandle {
		return err
	}
	return c.rivalsOf(ctx, s, key)
}

// rivalsOf reads the claims of the namespace that mirror the origin or ask to.
func (c *Cluster) rivalsOf(ctx context.Context, s *mirror.Situation, origin types.NamespacedName) error {
	claims, seesClaims, err := c.Claims(ctx, s.Claim.Namespace, metav1.ListOptions{})
	if err != nil {
		return err
	}
	classes, seesClasses, err := c.Classes(ctx)
	if err != nil {
		return err
	}
	volumes, seesVolumes, err := c.Mirrors(ctx, origin)
	if err != nil {
		return err
	}
	s.Hidden.Rivals = !seesClaims || !seesClasses || !seesVolumes
	served := map[types.UID]bool{}
	for i := range volumes {
		served[mirror.RecordOf(c.Names, &volumes[i]).ClaimUID] = true
	}
	s.Rivals = c.rivals(claims, classes, served, origin)
	return nil
}

func (c *Cluster) rivals(claims []corev1.PersistentVolumeClaim, classes map[string]storagev1.StorageClass, served map[types.UID]bool, origin types.NamespacedName) []mirror.Rival {
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
	return rivals
}
