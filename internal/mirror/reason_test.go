package mirror_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// declared returns the constants of type Reason in the package's source, by
// name.
func declared(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			if kind, ok := value.Type.(*ast.Ident); !ok || kind.Name != "Reason" {
				continue
			}
			for i, name := range value.Names {
				text, ok := value.Values[i].(*ast.BasicLit)
				if !ok {
					t.Fatalf("%s is not a literal", name.Name)
				}
				if constants[name.Name], err = strconv.Unquote(text.Value); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return constants
}

func TestTheListIsClosed(t *testing.T) {
	constants := declared(t)
	if len(constants) < 20 {
		t.Fatalf("found only %d constants", len(constants))
	}
	listed := map[mirror.Reason]bool{}
	for _, doc := range mirror.Reasons() {
		if listed[doc.Reason] {
			t.Errorf("%s is listed twice", doc.Reason)
		}
		listed[doc.Reason] = true
		if constants[string(doc.Reason)] != string(doc.Reason) {
			t.Errorf("%s is listed and not declared under its own name", doc.Reason)
		}
	}
	for name, value := range constants {
		if name != value {
			t.Errorf("%s is the text %q", name, value)
		}
		if !listed[mirror.Reason(value)] {
			t.Errorf("%s is declared and not listed", name)
		}
	}
}

func TestEveryReasonSaysWhatToDo(t *testing.T) {
	sides := []mirror.Side{mirror.AskingSide, mirror.Owner, mirror.Administrator, mirror.Nobody}
	last := 1
	for _, doc := range mirror.Reasons() {
		if doc.Meaning == "" || !slices.Contains(sides, doc.Mends) {
			t.Errorf("%s: meaning %q, mended by %q", doc.Reason, doc.Meaning, doc.Mends)
		}
		if nobody := doc.Mends == mirror.Nobody; nobody != (doc.Remedy == "") || nobody != (doc.Wakes == "") {
			t.Errorf("%s: mended by %s, remedy %q, woken by %q", doc.Reason, doc.Mends, doc.Remedy, doc.Wakes)
		}
		if doc.Rung < 0 || doc.Rung > len(mirror.Rungs()) || doc.Rung > 0 && doc.Rung < last {
			t.Errorf("%s is on rung %d, after one on %d", doc.Reason, doc.Rung, last)
		}
		last = max(last, doc.Rung)
	}
}

func TestVerdictNames(t *testing.T) {
	for verdict, want := range map[mirror.Verdict]string{mirror.Refuse: "refuse", mirror.Wait: "wait", mirror.Allow: "allow", 99: "refuse"} {
		if got := verdict.String(); got != want {
			t.Errorf("%d is %q, want %q", verdict, got, want)
		}
	}
}

// The public package names few reasons, and tells by them which mirrors are
// revoked: as the rule book does.
func TestPublicReasonsAreTheSame(t *testing.T) {
	var names mooringapi.Names
	for _, doc := range mirror.Reasons() {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Status.Phase = corev1.ClaimBound
		claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimConditionType(names.Condition()), Status: corev1.ConditionFalse, Reason: string(doc.Reason),
		}}
		if state := names.StateOf(claim).State; (state == mooringapi.StateRevoked) != mirror.EndsGrant(doc.Reason) {
			t.Errorf("a bound mirror that is told %s is %s; EndsGrant says %v", doc.Reason, state, mirror.EndsGrant(doc.Reason))
		}
	}
	for public, reason := range map[string]mirror.Reason{
		mooringapi.ReasonMirrored: mirror.Mirrored, mooringapi.ReasonNotShared: mirror.NotShared,
		mooringapi.ReasonGrantReadOnly: mirror.GrantReadOnly, mooringapi.ReasonOriginPending: mirror.OriginPending,
		mooringapi.ReasonOriginTerminating: mirror.OriginTerminating, mooringapi.ReasonOriginReplaced: mirror.OriginReplaced,
	} {
		if public != string(reason) {
			t.Errorf("the public reason %q is %q in the rule book", public, reason)
		}
	}
}
