package recipe

import (
	"slices"
	"strings"
)

// mountOptions returns the mirror's mount options: the origin's, less those
// that contradict the row's, and the row's.
func (r Row) mountOptions(origin []string, readOnly bool) []string {
	options := without(origin, r.contrary(readOnly))
	if r.UnshareIn == "" {
		options = with(options, r.Unshare)
	}
	if readOnly {
		options = with(options, r.ReadOnly.Options)
	}
	if r.OneElement && len(options) > 1 {
		return []string{strings.Join(options, ",")}
	}
	return options
}

func (r Row) contrary(readOnly bool) []string {
	if !readOnly || r.ReadOnly == nil {
		return r.Contrary
	}
	return append(slices.Clone(r.Contrary), r.ReadOnly.Contrary...)
}

// without returns the elements less some options. An element may hold several
// options, divided by commas, as mount(8) takes them; one that holds none of
// those stays as it is.
func without(elements, remove []string) []string {
	var kept []string
	for _, element := range elements {
		options := splitOptions(element)
		rest := slices.DeleteFunc(slices.Clone(options), func(option string) bool { return slices.Contains(remove, option) })
		switch {
		case len(rest) == len(options):
			kept = append(kept, element)
		case len(rest) > 0:
			kept = append(kept, strings.Join(rest, ","))
		}
	}
	return kept
}

// with returns the elements and those of the options that none of them holds.
func with(elements, add []string) []string {
	var held []string
	for _, element := range elements {
		held = append(held, splitOptions(element)...)
	}
	for _, option := range add {
		if !slices.Contains(held, option) {
			elements = append(elements, option)
		}
	}
	return elements
}

// splitOptions divides an element at its commas, but not at those within
// double quotes, as in context="system_u:object_r:container_file_t:s0:c1,c2".
func splitOptions(element string) []string {
	quoted := false
	options := strings.FieldsFunc(element, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ',' && !quoted
	})
	for i := range options {
		options[i] = strings.TrimSpace(options[i])
	}
	return options
}
