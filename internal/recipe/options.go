package recipe

import (
	"slices"
	"strings"
)

// readOnlyOptions returns the origin's mount options with those of the rule in
// place of their contraries. An element may hold several options, divided by
// commas, as mount(8) takes them.
func readOnlyOptions(origin []string, rule ReadOnlyRule) []string {
	var options []string
	for _, element := range origin {
		for option := range strings.SplitSeq(element, ",") {
			option = strings.TrimSpace(option)
			if option == "" || slices.Contains(rule.Contrary, option) || slices.Contains(options, option) {
				continue
			}
			options = append(options, option)
		}
	}
	for _, option := range rule.Options {
		if !slices.Contains(options, option) {
			options = append(options, option)
		}
	}
	return options
}
