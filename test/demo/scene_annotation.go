package main

import "context"

// annotationScene is the form that needs no feature gate.
func annotationScene(ctx context.Context, s *stage) error {
	s.tell.say("dataSourceRef with a namespace needs the alpha gate CrossNamespaceVolumeDataSource. An annotation " +
		"says the same on every cluster; namespace team-b has the label that the owner asks for.")
	if err := s.types(ctx, "apply", "-f", "examples/share/mirror-by-annotation.yaml"); err != nil {
		return err
	}
	return s.mirrors(ctx, "team-b", "data-of-team-a", "team-a/data")
}
