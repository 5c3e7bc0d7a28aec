package cli

import "github.com/mooring-k8s/mooring/internal/gate"

// gateEndings are the ends of a run that the gate does not let go on: one for each
// of its reasons.
func gateEndings() []ending {
	return []ending{
		{string(gate.NotDispatched), 90, "The run is not the first attempt of a manual dispatch on a branch.", "An owner dispatches a new run on the branch."},
		{string(gate.NotOwner), 91, "Whoever dispatched the run is not known to be an owner.", "An owner dispatches the run, or the list on the default branch is changed in review."},
		{string(gate.NotProtected), 92, "The repository is a fork, or the branch or the default branch is not protected.", "Protect the branch, or dispatch the run where it is protected."},
		{string(gate.NotHead), 93, "The branch moved on after the dispatch.", "Dispatch the run again."},
		{string(gate.ForgeUnknown), 94, "The forge does not tell what must be known; that is never taken for yes.", "Read what it answered; give the job's token contents: read, or wait until the forge answers."},
		{string(gate.CheckoutDiffers), 95, "The checkout is not exactly the run's commit.", "Check out the commit anew, and put nothing beside its files."},
		{string(gate.ManifestRefused), 96, "A manifest is no acceptable retained volume that git tracks at the commit.", "Correct what is named; mooring retain check works offline."},
		{string(gate.ScanFound), 97, "The repository holds something that it must not.", "Take it out; revoke what is a secret, since it was in the history."},
		{string(gate.ScanUnfinished), 98, "The scan of the repository did not finish.", "Make the repository smaller, or give --gate-timeout more time."},
	}
}
