package cli

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// fakeAPI answers as an API server that has these objects, and no others: what
// the commands print of it is the same each time. That a real API server answers
// like this is a matter of test/people.
type fakeAPI struct {
	t *testing.T
	// objects by their paths, such as api/v1/namespaces/a/persistentvolumeclaims/data.
	objects map[string]map[string]any
	// hidden are the beginnings of paths that nobody may read, less those that
	// are shown.
	hidden, shown []string
	// fails are the answers to a method and the beginning of a path: "POST api/v1/…".
	fails map[string]metav1.Status
	// keepsReference says that a reference to another namespace is kept.
	keepsReference bool
	// stored, if there is one, changes what was created before it is read again.
	stored func(read int, claim map[string]any)
	reads  map[string]int
	// denies says that accounts may do nothing.
	denies bool
	mutex  sync.Mutex
}

// kinds are the resources that the commands ask for.
var kinds = map[string]string{
	"persistentvolumeclaims": "PersistentVolumeClaim", "persistentvolumes": "PersistentVolume", "namespaces": "Namespace", "pods": "Pod",
	"configmaps": "ConfigMap", "storageclasses": "StorageClass", "csidrivers": "CSIDriver", "deployments": "Deployment", "leases": "Lease",
	"validatingadmissionpolicies": "ValidatingAdmissionPolicy", "validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding",
}

func newFakeAPI(t *testing.T) *fakeAPI {
	return &fakeAPI{t: t, objects: map[string]map[string]any{}, fails: map[string]metav1.Status{}, reads: map[string]int{}}
}

// add adds objects by their kind, namespace and name.
func (f *fakeAPI) add(objects ...runtime.Object) {
	f.t.Helper()
	for _, object := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			f.t.Fatal(err)
		}
		meta, kind := fields["metadata"].(map[string]any), fields["kind"].(string)
		resource := ""
		for plural, of := range kinds {
			if of == kind {
				resource = plural
			}
		}
		path := "api/" + fields["apiVersion"].(string)
		if strings.Count(path, "/") == 2 { // a group and a version
			path = "apis/" + fields["apiVersion"].(string)
		}
		if namespace, _ := meta["namespace"].(string); namespace != "" {
			path += "/namespaces/" + namespace
		}
		f.objects[path+"/"+resource+"/"+meta["name"].(string)] = fields
	}
}

// kubeconfig starts the server and returns the file that leads to it.
func (f *fakeAPI) kubeconfig() string {
	f.t.Helper()
	server := httptest.NewServer(f)
	f.t.Cleanup(server.Close)
	file := filepath.Join(f.t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\n" +
		"clusters: [{name: c, cluster: {server: '" + server.URL + "'}}]\n" +
		"users: [{name: u, user: {token: none}}]\n" +
		"contexts: [{name: c, context: {cluster: c, user: u, namespace: team-b}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return file
}

// ServeHTTP implements http.Handler.
func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	path := strings.Trim(r.URL.Path, "/")
	for beginning, status := range f.fails {
		if strings.HasPrefix(r.Method+" "+path, beginning) {
			f.answer(w, int(status.Code), status)
			return
		}
	}
	begins := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
	if slices.ContainsFunc(f.hidden, begins) && !slices.ContainsFunc(f.shown, begins) {
		f.answer(w, http.StatusForbidden, status(http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: User \"u\" cannot do that"))
		return
	}
	switch r.Method {
	case http.MethodGet:
		f.get(w, path, r.URL.Query())
	case http.MethodPost:
		f.post(w, path, r)
	case http.MethodPatch:
		f.patch(w, path, r)
	default:
		f.t.Errorf("%s %s is never needed", r.Method, path)
	}
}

func status(code int32, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

func (f *fakeAPI) answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		f.t.Error(err)
	}
}

func (f *fakeAPI) get(w http.ResponseWriter, path string, query url.Values) {
	resource := path[strings.LastIndexByte(path, '/')+1:]
	if kind, isList := kinds[resource]; isList && !strings.HasSuffix(path, "/namespaces/"+resource) {
		f.list(w, path, kind, query.Get("labelSelector"))
		return
	}
	object, found := f.objects[path]
	if !found {
		f.answer(w, http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"))
		return
	}
	f.reads[path]++
	if f.stored != nil && object["kind"] == "PersistentVolumeClaim" {
		f.stored(f.reads[path], object)
	}
	f.answer(w, http.StatusOK, object)
}

// list answers with the objects of a namespace, or of all.
func (f *fakeAPI) list(w http.ResponseWriter, path, kind, selector string) {
	wanted, err := labels.Parse(selector)
	if err != nil {
		f.t.Error(err)
	}
	group, resource, items := path[:strings.LastIndexByte(path, '/')], path[strings.LastIndexByte(path, '/'):], []any{}
	for _, at := range slices.Sorted(maps.Keys(f.objects)) {
		meta := f.objects[at]["metadata"].(map[string]any)
		name, _ := meta["name"].(string)
		namespace, _ := meta["namespace"].(string)
		isThere := at == path+"/"+name || at == group+"/namespaces/"+namespace+resource+"/"+name
		if isThere && wanted.Matches(labels.Set(stringsOf(meta["labels"]))) {
			items = append(items, f.objects[at])
		}
	}
	version := strings.TrimPrefix(strings.TrimPrefix(group, "apis/"), "api/")
	version, _, _ = strings.Cut(version, "/namespaces/")
	f.answer(w, http.StatusOK, map[string]any{"apiVersion": version, "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "7"}, "items": items})
}

func stringsOf(value any) map[string]string {
	found := map[string]string{}
	fields, _ := value.(map[string]any)
	for key, value := range fields {
		found[key], _ = value.(string)
	}
	return found
}

// post stores a claim, or with a dry run says what would be stored. Reviews get
// the same answer each.
func (f *fakeAPI) post(w http.ResponseWriter, path string, r *http.Request) {
	object := f.body(r)
	if strings.HasSuffix(path, "subjectaccessreviews") {
		object["status"] = map[string]any{"allowed": !f.denies}
		f.answer(w, http.StatusCreated, object)
		return
	}
	meta := object["metadata"].(map[string]any)
	meta["uid"], meta["resourceVersion"] = "11111111-0000-4000-8000-000000000009", "8"
	spec := object["spec"].(map[string]any)
	if reference, has := spec["dataSourceRef"].(map[string]any); has && !f.keepsReference {
		delete(reference, "namespace")
	}
	object["status"] = map[string]any{"phase": "Pending"}
	name, _ := meta["name"].(string)
	if r.URL.Query().Get("dryRun") == "" {
		f.objects[path+"/"+name] = object
	}
	f.answer(w, http.StatusCreated, object)
}

// patch merges annotations, as a merge patch does.
func (f *fakeAPI) patch(w http.ResponseWriter, path string, r *http.Request) {
	change := f.body(r)["metadata"].(map[string]any)["annotations"].(map[string]any)
	object := runtime.DeepCopyJSON(f.objects[path])
	meta := object["metadata"].(map[string]any)
	annotations, has := meta["annotations"].(map[string]any)
	if !has {
		annotations = map[string]any{}
		meta["annotations"] = annotations
	}
	for key, value := range change {
		annotations[key] = value
		if value == nil {
			delete(annotations, key)
		}
	}
	if r.URL.Query().Get("dryRun") == "" {
		f.objects[path] = object
	}
	f.answer(w, http.StatusOK, object)
}

// body reads what was sent: a patch, or an object in one of Kubernetes' encodings.
func (f *fakeAPI) body(r *http.Request) map[string]any {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	if r.Method == http.MethodPatch {
		fields := map[string]any{}
		if err := json.Unmarshal(data, &fields); err != nil {
			f.t.Errorf("%v: %q", err, data)
		}
		return fields
	}
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		f.t.Errorf("%v: %q", err, data)
		return nil
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		f.t.Error(err)
	}
	return fields
}
