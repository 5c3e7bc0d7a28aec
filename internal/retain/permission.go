package retain

import (
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

const volumes = "persistentvolumes"

// proofScope is what the permission proof does not say. It is part of every
// receipt.
const proofScope = "Proves that the identity cannot update, patch or delete persistentvolumes or their status. " +
	"Says nothing about other objects, about rights that the identity could give itself, or about rights given later."

// changing are the verbs that change or destroy a volume.
var changing = []string{"update", "patch", "delete", "deletecollection", "*"}

// proof is the permission proof while it is collected.
type proof struct {
	denied, excess []string
}

func (p *proof) add(right Right, has bool) {
	list := &p.denied
	if has {
		list = &p.excess
	}
	if text := right.String(); !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// provePermissions asks what the identity must not be able to do: for every
// volume that it plans by name, since rights can be given for one name, and for
// all. The rights that it needs are proven by using them.
func provePermissions(ctx context.Context, c Reviewer, names []string) (*proof, error) {
	var p proof
	// 1. All rules at once, also those for the names of other volumes.
	rights, whole, err := c.Rules(ctx)
	if err != nil {
		return nil, readError(err, Right{Verb: "create", Resource: "selfsubjectrulesreviews"})
	}
	for _, right := range rights {
		p.add(right, true)
	}
	if whole && len(rights) == 0 {
		p.denied = append(p.denied, "anything that changes "+volumes+", by the list of all rules of the identity")
	}
	// 2. Verbs without a name; all of them only where the rules are not whole.
	general := []Right{{Verb: "delete", Resource: volumes}, {Verb: "deletecollection", Resource: volumes}}
	if !whole {
		general = append(general,
			Right{Verb: "update", Resource: volumes}, Right{Verb: "patch", Resource: volumes},
			Right{Verb: "update", Resource: volumes, Subresource: "status"}, Right{Verb: "patch", Resource: volumes, Subresource: "status"})
	}
	if err := p.ask(ctx, c, general); err != nil {
		return nil, err
	}
	// 3. The volumes by name.
	for _, name := range names {
		if err := p.ask(ctx, c, []Right{
			{Verb: "update", Resource: volumes, Name: name},
			{Verb: "patch", Resource: volumes, Name: name},
			{Verb: "delete", Resource: volumes, Name: name},
			{Verb: "update", Resource: volumes, Subresource: "status", Name: name},
			{Verb: "patch", Resource: volumes, Subresource: "status", Name: name},
		}); err != nil {
			return nil, err
		}
	}
	return &p, nil
}

func (p *proof) ask(ctx context.Context, c Reviewer, rights []Right) error {
	for _, right := range rights {
		has, err := c.May(ctx, right)
		if err != nil {
			return readError(err, Right{Verb: "create", Resource: "selfsubjectaccessreviews"})
		}
		p.add(right, has)
	}
	return nil
}

// record returns the proof as the receipt has it.
func (p *proof) record(allowed bool) *receipt.Permissions {
	slices.Sort(p.denied)
	slices.Sort(p.excess)
	return &receipt.Permissions{Denied: p.denied, Excess: p.excess, ExcessAllowed: allowed && len(p.excess) > 0, Scope: proofScope}
}

// check refuses an identity that could change volumes.
func (p *proof) check(allowed bool) *Error {
	if len(p.excess) == 0 || allowed {
		return nil
	}
	return refusef(PermissionExcess, "the identity can do more than create volumes once: %s", strings.Join(p.excess, "; "))
}

// rightsOf returns the rights in a rule with which volumes, or their status,
// could be changed (RBAC's matching: plugin/pkg/auth/authorizer/rbac,
// RuleAllows).
func rightsOf(rule authorizationv1.ResourceRule) []Right {
	if !slices.Contains(rule.APIGroups, "") && !slices.Contains(rule.APIGroups, "*") {
		return nil
	}
	var rights []Right
	for _, resource := range rule.Resources {
		base, sub, _ := strings.Cut(resource, "/")
		if base != volumes && base != "*" || sub != "" && sub != "status" && sub != "*" {
			continue
		}
		for _, verb := range rule.Verbs {
			if slices.Contains(changing, verb) {
				rights = append(rights, named(Right{Verb: verb, Resource: base, Subresource: sub}, rule.ResourceNames)...)
			}
		}
	}
	return rights
}

// named returns the right for each of the names, or for all if there are none.
func named(right Right, names []string) []Right {
	if len(names) == 0 {
		return []Right{right}
	}
	rights := make([]Right, len(names))
	for i, name := range names {
		rights[i] = right
		rights[i].Name = name
	}
	return rights
}
