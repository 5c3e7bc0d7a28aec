package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// completionPatience is how long a shell may wait for an answer.
const completionPatience = 3 * time.Second

// completing returns a completion that asks the cluster, and gives up where that
// takes too long or fails.
func completing(people *peopleFlags, e Env, find func(ctx context.Context, s *session, typed string) ([]string, cobra.ShellCompDirective)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		session, err := people.open(ctx, e)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return find(ctx, session, typed)
	}
}

// completeClaim completes NAMESPACE/CLAIM from what is in the cluster: the
// namespaces first, then the claims of one. What may not be listed completes to
// nothing.
func completeClaim(people *peopleFlags, e Env) cobra.CompletionFunc {
	claim := completing(people, e, claimsTyped)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return claim(cmd, args, typed)
	}
}

// claimsTyped is what completes NAMESPACE/CLAIM.
func claimsTyped(ctx context.Context, s *session, typed string) ([]string, cobra.ShellCompDirective) {
	namespace, _, named := strings.Cut(typed, "/")
	if !named {
		return s.namespaces(ctx, typed, "/"), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	claims, _, err := s.Claims(ctx, namespace, metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var found []string
	for i := range claims {
		found = append(found, namespace+"/"+claims[i].Name)
	}
	return startingWith(found, typed), cobra.ShellCompDirectiveNoFileComp
}

// completeTo completes a flag to one of these values.
func completeTo(cmd *cobra.Command, flag string, values ...string) {
	fixed := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, fixed); err != nil {
		panic(err) // the program is wrong: there is no such flag
	}
}

// complete completes the flags that lead to a cluster, as kubectl does.
func (f *peopleFlags) complete(cmd *cobra.Command, e Env) {
	for flag, values := range map[string]func(clientcmdapi.Config) []string{
		"context": func(c clientcmdapi.Config) []string { return slices.Collect(maps.Keys(c.Contexts)) },
		"cluster": func(c clientcmdapi.Config) []string { return slices.Collect(maps.Keys(c.Clusters)) },
		"user":    func(c clientcmdapi.Config) []string { return slices.Collect(maps.Keys(c.AuthInfos)) },
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) { // the flag exists
			config, err := f.config.ToRawKubeConfigLoader().RawConfig()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			found := startingWith(values(config), typed)
			slices.Sort(found)
			return found, cobra.ShellCompDirectiveNoFileComp
		})
	}
	_ = cmd.RegisterFlagCompletionFunc("namespace", completeNamespace(f, e)) // the flag exists
}

// completeClass completes the name of a class of Mooring's.
func completeClass(people *peopleFlags, e Env) cobra.CompletionFunc {
	return completing(people, e, func(ctx context.Context, s *session, typed string) ([]string, cobra.ShellCompDirective) {
		classes, _, err := s.Classes(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return startingWith(slices.Sorted(maps.Keys(classes)), typed), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeOrigin completes the flag --origin.
func completeOrigin(command *cobra.Command, people *peopleFlags, e Env) {
	_ = command.RegisterFlagCompletionFunc("origin", completing(people, e, claimsTyped)) // the flag exists
}

// completeNamespace completes the name of a namespace.
func completeNamespace(people *peopleFlags, e Env) cobra.CompletionFunc {
	return completing(people, e, func(ctx context.Context, s *session, typed string) ([]string, cobra.ShellCompDirective) {
		return s.namespaces(ctx, typed, ""), cobra.ShellCompDirectiveNoFileComp
	})
}

// namespaces returns those that begin with what was typed, with something after
// each.
func (s *session) namespaces(ctx context.Context, typed, after string) []string {
	all, _, err := s.Namespaces(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for i := range all {
		names = append(names, all[i].Name+after)
	}
	return startingWith(names, typed)
}

func startingWith(all []string, typed string) []string {
	var found []string
	for _, one := range all {
		if strings.HasPrefix(one, typed) {
			found = append(found, one)
		}
	}
	return found
}
