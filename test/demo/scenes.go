package main

import (
	"context"
	"fmt"
)

// scene is one thing that is shown. Its play tells what happens, types the
// commands and checks what comes of them; the first thing that is not as told
// is its error.
type scene struct {
	title string
	play  func(context.Context, *stage) error
}

// logLines is how much of the controller's log is shown when a scene fails.
const logLines = 15

// scenes are played in this order on one stage; each finds what those before it
// have left. A new one is one file and one line here.
var scenes = []scene{
	{"Three claims, and whom their owners let in", originsScene},
	{"CrownLabs' MyDrive: one drive, one tenant", myDriveScene},
	{"CrownLabs' SharedVolume: one volume, every tenant", sharedVolumeScene},
	{"The same on a cluster without alpha gates: the annotation", annotationScene},
	{"Not shared with you, until it is", deniedScene},
	{"To read, not to write", readOnlyScene},
	{"A disk that no grant can share", refusedDriverScene},
	{"A mirror goes, the data stays", removedScene},
	{"A grant ends, and both sides know", revokedScene},
	{"An origin is not deleted under its users", originDeletedScene},
	{"To keep a volume: reviewed before it is made", reviewScene},
	{"Made once, and never touched again", createScene},
	{"Kept, and shared", keptAndSharedScene},
	{"Who reaches what", summaryScene},
}

func (s *stage) play(ctx context.Context, scenes []scene) error {
	for i, scene := range scenes {
		s.tell.heading("%d  %s", i+1, scene.title)
		if err := scene.play(ctx, s); err != nil {
			return fmt.Errorf("scene %d, %q: %w\nthe controller's log ends with:\n%s", i+1, scene.title, err, s.controller.LogTail(logLines))
		}
	}
	return nil
}
