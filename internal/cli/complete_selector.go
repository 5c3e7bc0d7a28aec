package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// completeSelectors completes flags that are label selectors of namespaces, from
// the labels that namespaces have: of the requirement that is being typed first
// the key, then key=value.
func completeSelectors(command *cobra.Command, people *peopleFlags, e Env, flags ...string) {
	complete := completing(people, e, func(ctx context.Context, s *session, typed string) ([]string, cobra.ShellCompDirective) {
		at := strings.LastIndexByte(typed, ',') + 1
		valued := strings.Contains(typed[at:], "=")
		found := startingWith(s.labels(ctx, valued), typed[at:])
		for i := range found {
			found[i] = typed[:at] + found[i]
		}
		if valued {
			return found, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	for _, flag := range flags {
		_ = command.RegisterFlagCompletionFunc(flag, complete) // the flag exists
	}
}

// labels returns the keys of the labels that namespaces have, or key=value, each
// once.
func (s *session) labels(ctx context.Context, valued bool) []string {
	all, _, err := s.Namespaces(ctx)
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for i := range all {
		for key, value := range all[i].Labels {
			if valued {
				key += "=" + value
			}
			found[key] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
