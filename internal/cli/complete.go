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

// completeClaim completes NAMESPACE/CLAIM from what is in the cluster: the
// namespaces first, then the claims of one. What may not be listed completes to
// nothing.
func completeClaim(people *peopleFlags, e Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		session, err := people.open(ctx, e)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		namespace, _, named := strings.Cut(typed, "/")
		if !named {
			return session.namespaces(ctx, typed, "/"), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		}
		claims, _, err := session.Claims(ctx, namespace, metav1.ListOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var found []string
		for i := range claims {
			found = append(found, namespace+"/"+claims[i].Name)
		}
		return startingWith(found, typed), cobra.ShellCompDirectiveNoFileComp
	}
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
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		session, err := people.open(ctx, e)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		classes, _, err := session.Classes(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var found []string
		for name := range classes {
			found = append(found, name)
		}
		slices.Sort(found)
		return startingWith(found, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeOrigin completes the flag --origin.
func completeOrigin(command *cobra.Command, people *peopleFlags, e Env) {
	claim := completeClaim(people, e)
	_ = command.RegisterFlagCompletionFunc("origin", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) { // the flag exists
		return claim(cmd, nil, typed)
	})
}

// completeNamespace completes the name of a namespace.
func completeNamespace(people *peopleFlags, e Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		session, err := people.open(ctx, e)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return session.namespaces(ctx, typed, ""), cobra.ShellCompDirectiveNoFileComp
	}
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
