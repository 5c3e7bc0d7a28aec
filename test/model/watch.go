package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// recall is how long versions of objects are kept after they were replaced: a
// deletion may rest on what was read a moment before.
const recall = 5 * time.Second

// watcher sees every change of every object, and looks for what must not be
// even for a moment.
type watcher struct {
	m     *Model
	mutex sync.Mutex
	found []string

	versions map[string][]version // of claims, namespaces, classes, volumes
	// lives are the mirror volumes by UID: from and to which revision, and of
	// which origin.
	lives   map[types.UID]*life
	gone    []goneOrigin
	ended   map[types.UID]bool // claims that Mooring deleted
	exposed map[string]time.Time
	worst   map[string]time.Duration
}

type version struct {
	from   time.Time
	object client.Object // nil once it is gone
}

type life struct {
	name         string
	origin       types.UID
	claim        types.UID
	since, until uint64
}

type goneOrigin struct {
	uid      types.UID
	name     string
	revision uint64
}

// watch begins to watch.
func (m *Model) watch() *watcher {
	m.Helper()
	w := &watcher{
		m: m, versions: map[string][]version{}, lives: map[types.UID]*life{}, ended: map[types.UID]bool{},
		exposed: map[string]time.Time{}, worst: map[string]time.Duration{},
	}
	informers, err := cache.New(m.options.Plane.Admin(), cache.Options{})
	m.must(err, "prepare to watch")
	for _, object := range []client.Object{&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &corev1.Namespace{}, &storagev1.StorageClass{}} {
		informer, err := informers.GetInformer(m.Context(), object, cache.BlockUntilSynced(false))
		m.must(err, "watch %T", object)
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(now any) { w.see(nil, now) },
			UpdateFunc: func(before, now any) { w.see(before, now) },
			DeleteFunc: func(last any) { w.see(last, nil) },
		})
		m.must(err, "watch %T", object)
	}
	go func() { _ = informers.Start(m.Context()) }()
	if !informers.WaitForCacheSync(m.Context()) {
		m.Fatal("the watch does not begin")
	}
	return w
}

// see takes in one change.
func (w *watcher) see(before, now any) {
	if tombstone, ok := before.(toolscache.DeletedFinalStateUnknown); ok {
		before = tombstone.Obj
	}
	old, _ := before.(client.Object)
	object, _ := now.(client.Object)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.remember(old, object)
	switch last := last(old, object).(type) {
	case *corev1.PersistentVolume:
		was, _ := old.(*corev1.PersistentVolume)
		w.volume(was, last, object == nil)
	case *corev1.PersistentVolumeClaim:
		was, _ := old.(*corev1.PersistentVolumeClaim)
		w.claim(was, last, object == nil)
	}
}

func last(old, now client.Object) client.Object {
	if now == nil {
		return old
	}
	return now
}

func (w *watcher) remember(old, now client.Object) {
	object := last(old, now)
	key := fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
	at := time.Now()
	kept := append(w.versions[key], version{at, now})
	for len(kept) > 1 && at.Sub(kept[1].from) > recall {
		kept = kept[1:]
	}
	w.versions[key] = kept
}

func (w *watcher) say(format string, args ...any) {
	w.found = append(w.found, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// volume looks at a change of a volume, if it is a mirror.
func (w *watcher) volume(was, now *corev1.PersistentVolume, isGone bool) {
	claim := types.UID(now.Annotations[names.MirrorClaimUID()])
	known := w.lives[now.UID]
	if known == nil && claim == "" {
		return
	}
	revision := revisionOf(now)
	if known == nil {
		known = &life{name: now.Name, since: revision}
		w.lives[now.UID] = known
		if was == nil {
			w.made(now, claim)
		}
	}
	if claim != "" {
		known.claim, known.origin = claim, types.UID(now.Annotations[names.OriginClaimUID()])
	}
	if isGone {
		known.until = revision
	}
	w.expose(now.Name+" not Retain", !isGone && now.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain)
	w.expose(now.Name+" Available", !isGone && now.Status.Phase == corev1.VolumeAvailable)
}

// made looks at a new mirror volume.
func (w *watcher) made(now *corev1.PersistentVolume, claim types.UID) {
	ref := now.Spec.ClaimRef
	if now.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || ref == nil || ref.UID != claim {
		w.say("volume %s was made as %s for %+v", now.Name, now.Spec.PersistentVolumeReclaimPolicy, ref)
	}
	for uid, other := range w.lives {
		if uid != now.UID && other.claim == claim && other.until == 0 && other.name != now.Name {
			w.say("volumes %s and %s are both for claim %s", other.name, now.Name, claim)
		}
	}
}

// expose measures for how long something is as it should not be.
func (w *watcher) expose(what string, is bool) {
	since, was := w.exposed[what]
	switch {
	case is && !was:
		w.exposed[what] = time.Now()
	case !is && was:
		delete(w.exposed, what)
		_, kind, _ := strings.Cut(what, " ")
		w.worst[kind] = max(w.worst[kind], time.Since(since))
	}
}

// claim looks at a change of a claim.
func (w *watcher) claim(was, now *corev1.PersistentVolumeClaim, isGone bool) {
	w.m.mutex.Lock()
	byTest, let, forced := w.m.deleted[now.UID], w.m.let[now.UID], w.m.forced[now.UID]
	w.m.mutex.Unlock()
	hadForeign := was != nil && slices.Contains(was.Finalizers, foreign)
	if hadForeign && !let && (isGone || !slices.Contains(now.Finalizers, foreign)) {
		w.say("claim %s: somebody took off a finalizer that is not Mooring's", keyOf(now))
	}
	isOrigin := slices.Contains(w.m.owners, now.Namespace)
	if isOrigin && isGone && !forced && now.Annotations[names.AllowDeletion()] != "true" {
		w.gone = append(w.gone, goneOrigin{now.UID, now.Name, revisionOf(now)})
	}
	if byTest || w.ended[now.UID] || !isGone && now.DeletionTimestamp == nil {
		return
	}
	if isOrigin {
		w.say("origin %s is deleted, and its owner did not do it", keyOf(now))
		return
	}
	w.ended[now.UID] = true
	if !w.mayHaveEnded(now) {
		w.say("claim %s is deleted, and its grant had not ended, or its class does not say Delete:\n%s", keyOf(now), w.m.show(now))
	}
}

// mayHaveEnded reports whether, by any of the versions of origin, volume,
// namespace and class that were there within the last seconds, the claim's grant
// had ended and its class said Delete.
func (w *watcher) mayHaveEnded(claim *corev1.PersistentVolumeClaim) bool {
	volumes := w.recent(&corev1.PersistentVolume{}, client.ObjectKey{Name: claim.Spec.VolumeName})
	for _, object := range volumes {
		volume, ok := object.(*corev1.PersistentVolume)
		if !ok || volume.Annotations[names.OriginClaim()] == "" {
			continue
		}
		key := split(volume.Annotations[names.OriginClaim()])
		for _, originObject := range w.recent(&corev1.PersistentVolumeClaim{}, key) {
			for _, namespace := range w.recent(&corev1.Namespace{}, client.ObjectKey{Name: claim.Namespace}) {
				for _, class := range w.recent(&storagev1.StorageClass{}, client.ObjectKey{Name: *claim.Spec.StorageClassName}) {
					if w.ends(claim, volume, originObject, namespace, class) {
						return true
					}
				}
			}
		}
	}
	return false
}

func (w *watcher) ends(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, originObject, namespaceObject, classObject client.Object) bool {
	s := &snapshot{now: time.Now(), claims: map[client.ObjectKey]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{}}
	if origin, ok := originObject.(*corev1.PersistentVolumeClaim); ok {
		s.claims[keyOf(origin)] = origin
		for _, object := range w.recent(&corev1.PersistentVolume{}, client.ObjectKey{Name: origin.Spec.VolumeName}) {
			if data, ok := object.(*corev1.PersistentVolume); ok {
				s.volumes[data.Name] = data
			}
		}
	}
	if namespaceObject != nil {
		s.namespaces = map[string]map[string]string{claim.Namespace: namespaceObject.GetLabels()}
	}
	if class, ok := classObject.(*storagev1.StorageClass); ok {
		s.classes = map[string]*storagev1.StorageClass{class.Name: class}
	}
	deletes, _ := s.deletes(claim)
	reason := s.expectBound(claim, volume).reason
	return deletes && reason != "" && reason != mirror.OriginPending
}

// recent returns the versions of an object that were there lately; nil stands
// for its absence.
func (w *watcher) recent(kind client.Object, key client.ObjectKey) []client.Object {
	var objects []client.Object
	for _, v := range w.versions[fmt.Sprintf("%T %s", kind, key)] {
		objects = append(objects, v.object)
	}
	if len(objects) == 0 {
		return []client.Object{nil}
	}
	return objects
}

func revisionOf(object client.Object) uint64 {
	revision, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return revision
}

// violations returns what was found so far, now that all is at rest.
func (w *watcher) violations() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, origin := range w.gone {
		for _, l := range w.lives {
			isThere := l.since < origin.revision && (l.until == 0 || l.until > origin.revision)
			if l.origin == origin.uid && isThere {
				w.say("origin %s went at revision %d, and its mirror volume %s was there (%d to %d)", origin.name, origin.revision, l.name, l.since, l.until)
			}
		}
	}
	w.gone = nil
	return strings.Join(w.found, "\n")
}

func (w *watcher) summary() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return fmt.Sprintf("%d mirror volumes, %d claims deleted by Mooring; at the longest %v not Retain and %v Available after somebody's edit",
		len(w.lives), len(w.ended), w.worst["not Retain"], w.worst["Available"])
}
