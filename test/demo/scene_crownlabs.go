package main

import "context"

// myDriveScene is CrownLabs' first use: a drive that one namespace may reach.
func myDriveScene(ctx context.Context, s *stage) error {
	s.tell.say("The tenant's namespace asks for the tenant's drive, in the manifest that CrownLabs' operator writes.")
	if err := s.types(ctx, "apply", "-f", "examples/crownlabs/mydrive-mirror.yaml"); err != nil {
		return err
	}
	if err := s.mirrors(ctx, "tenant-s123456", "s123456-drive-mirror", "mydrive-pvcs/s123456-drive"); err != nil {
		return err
	}
	s.tell.say("It asked for one byte, and shows the size that the drive has:")
	return s.types(ctx, "get", "pvc", "-n", "tenant-s123456")
}

// sharedVolumeScene is the second: a volume that many namespaces may reach.
func sharedVolumeScene(ctx context.Context, s *stage) error {
	s.tell.say("An instance of the same tenant starts, and asks for the workspace's data sets.")
	if err := s.types(ctx, "apply", "-f", "examples/crownlabs/sharedvolume-mirror.yaml"); err != nil {
		return err
	}
	return s.mirrors(ctx, "tenant-s123456", "datasets-jupyter-4711-mirror", "workspace-ml/shvol-datasets")
}
