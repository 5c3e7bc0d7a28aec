package gate

import (
	"fmt"
	"strings"
)

// conditions returns what must be so, in the order in which it is told.
func conditions() []func(Facts) Condition {
	return []func(Facts) Condition{
		dispatched, firstAttempt, onBranch, notFork, protected, isHead,
		ownersTrusted, byOwner, exactCommit, cleanCheckout, manifests, scanned,
	}
}

func met(name, format string, args ...any) Condition {
	return Condition{Name: name, Met: true, Says: fmt.Sprintf(format, args...)}
}

func refuse(name string, reason Reason, format string, args ...any) Condition {
	return Condition{Name: name, Reason: reason, Says: fmt.Sprintf(format, args...)}
}

func dispatched(f Facts) Condition {
	const name = "dispatch"
	switch f.Event.Name {
	case "workflow_dispatch":
		return met(name, "somebody dispatched the run by hand")
	case "workflow_call":
		return refuse(name, NotDispatched, "the runner says that the event is workflow_call, which hides what started the run; put the workflow file into the calling repository and dispatch it there")
	}
	return refuse(name, NotDispatched, "the event is %q; expected workflow_dispatch: somebody starts the run by hand", f.Event.Name)
}

func firstAttempt(f Facts) Condition {
	const name = "first attempt"
	if f.Event.Attempt == "1" {
		return met(name, "this is the first attempt")
	}
	return refuse(name, NotDispatched, "this is attempt %q of the run; expected 1: a run that is repeated acts for who dispatched it first, so dispatch a new one", f.Event.Attempt)
}

// branchOf returns the branch of a full ref, or "".
func branchOf(ref string) string {
	branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
	if !isBranch {
		return ""
	}
	return branch
}

func onBranch(f Facts) Condition {
	const name = "branch"
	if branch := branchOf(f.Event.Ref); branch != "" {
		return met(name, "the run is on the branch %q", branch)
	}
	return refuse(name, NotDispatched, "the run is on %q; expected a branch (refs/heads/…): dispatch it on one", f.Event.Ref)
}

func notFork(f Facts) Condition {
	const name = "no fork"
	switch f.Forge.Fork {
	case No:
		return met(name, "%s is no fork", f.Event.Repository)
	case Yes:
		return refuse(name, NotProtected, "%s is a fork; expected the repository that its owners review: dispatch the run there", f.Event.Repository)
	default:
		return refuse(name, ForgeUnknown, "the forge does not tell whether the repository is a fork: %s", orUnasked(f.Forge.Problem))
	}
}

func orUnasked(problem string) string {
	if problem == "" {
		return "it was not asked"
	}
	return problem
}

func protected(f Facts) Condition {
	const name = "protected branch"
	b := f.Forge.Dispatched
	switch b.Protected {
	case Yes:
		return met(name, "the forge says that %q is protected", b.Name)
	case No:
		return refuse(name, NotProtected, "the forge says that the branch %q is not protected; expected one that takes reviewed changes only: protect it, or dispatch the run on one that is", b.Name)
	default:
		return refuse(name, ForgeUnknown, "the forge does not tell whether the branch is protected: %s", orUnasked(b.Problem))
	}
}

func isHead(f Facts) Condition {
	const name = "head of the branch"
	b := f.Forge.Dispatched
	switch {
	case b.Head == "":
		return refuse(name, ForgeUnknown, "the forge does not tell which commit is the head of the branch: %s", orUnasked(b.Problem))
	case f.Event.Commit != b.Head:
		return refuse(name, NotHead, "the run is about the commit %q, and the head of %q is %s: the branch moved on after the dispatch; dispatch the run again", f.Event.Commit, b.Name, b.Head)
	}
	return met(name, "%s is the head of %q", b.Head, b.Name)
}

// ownersTrusted: who can change the list of owners decides who may dispatch, so it
// counts only where the forge protects it.
func ownersTrusted(f Facts) Condition {
	const name = "list of owners"
	b := f.Forge.Default
	switch {
	case b.Protected == No:
		return refuse(name, NotProtected, "the default branch %q, which lists the owners, is not protected: anybody who can push could become one; protect it", b.Name)
	case b.Protected != Yes:
		return refuse(name, ForgeUnknown, "the forge does not tell whether the default branch, which lists the owners, is protected: %s", orUnasked(b.Problem))
	case f.Forge.OwnersProblem != "":
		return refuse(name, NotOwner, "the owners cannot be read: %s", f.Forge.OwnersProblem)
	case len(f.Forge.Owners) == 0:
		return refuse(name, NotOwner, "no owners are known; expected a file on the branch %q that names one account a line", b.Name)
	}
	return met(name, "%d owner(s) in %s on the protected branch %q, at %s", len(f.Forge.Owners), f.Forge.OwnersFile, b.Name, b.Head)
}

func byOwner(f Facts) Condition {
	const name = "owner"
	actor, again := f.Event.Actor, f.Event.TriggeringActor
	switch {
	case actor == "":
		return refuse(name, NotOwner, "the runner does not say who dispatched the run; expected GITHUB_ACTOR")
	case again != "" && !sameAccount(actor, again):
		return refuse(name, NotOwner, "the run is %q's and was started by %q; expected one and the same: dispatch a new run", actor, again)
	case len(f.Forge.Owners) == 0 && f.Forge.Default.Protected == Unknown:
		return refuse(name, ForgeUnknown, "it is not known whether %q is an owner: the forge does not tell the list of owners", actor)
	case len(f.Forge.Owners) == 0:
		return refuse(name, NotOwner, "it is not known whether %q is an owner: the list of owners is not", actor)
	}
	for _, owner := range f.Forge.Owners {
		if sameAccount(owner, actor) {
			return met(name, "%q is an owner", actor)
		}
	}
	return refuse(name, NotOwner, "%q is not among the owners that %s names on the default branch; an owner dispatches the run", actor, f.Forge.OwnersFile)
}

func exactCommit(f Facts) Condition {
	const name = "commit"
	switch {
	case f.Event.Commit == "":
		return refuse(name, CheckoutDiffers, "the runner does not say which commit the run is about; expected GITHUB_SHA")
	case f.Checkout.Problem != "":
		return refuse(name, CheckoutDiffers, "the checkout cannot be read: %s", f.Checkout.Problem)
	case f.Checkout.Head != f.Event.Commit:
		return refuse(name, CheckoutDiffers, "the checkout is at %q; expected the run's commit %s: check out that one", f.Checkout.Head, f.Event.Commit)
	}
	return met(name, "the checkout is at %s", f.Checkout.Head)
}

func cleanCheckout(f Facts) Condition {
	const name = "clean checkout"
	switch {
	case f.Checkout.Problem != "" || !f.Checkout.Read:
		return refuse(name, CheckoutDiffers, "not every file of the checkout was compared with the commit: %s", orUnasked(f.Checkout.Problem))
	case f.Checkout.Changed > 0:
		return refuse(name, CheckoutDiffers, "%d file(s) are not as the commit has them: %s; check out the commit anew, and put nothing beside its files before the gate", f.Checkout.Changed, strings.Join(f.Checkout.Changes, ", "))
	}
	return met(name, "every file is as the commit has it, and there are no others")
}

func manifests(f Facts) Condition {
	const name = "manifests"
	var problems []string
	for _, m := range f.Checkout.Manifests {
		switch {
		case m.Problem != "":
			problems = append(problems, fmt.Sprintf("%s: %s", shown(m.Path), m.Problem))
		case m.Digest == "":
			problems = append(problems, shown(m.Path)+": was not read")
		}
	}
	switch {
	case len(f.Checkout.Manifests) == 0:
		return refuse(name, ManifestRefused, "no manifest is named; expected one path a line")
	case len(problems) > 0:
		return refuse(name, ManifestRefused, "%s", strings.Join(problems, "\n"))
	}
	return met(name, "%d acceptable retained volume(s), tracked at the commit", len(f.Checkout.Manifests))
}

func scanned(f Facts) Condition {
	const name = "scan"
	s := f.Scan
	switch {
	case s.Found > 0 || len(s.Findings) > 0:
		return refuse(name, ScanFound, "%d finding(s) in the repository; take them out, and what is a secret out of use", max(s.Found, len(s.Findings)))
	case !s.Finished:
		return refuse(name, ScanUnfinished, "the scan of the repository did not finish: %s", orUnasked(s.Problem))
	}
	text := fmt.Sprintf("nothing found in %d file(s), %d bytes", s.Files, s.Bytes)
	if s.Allowed > 0 {
		text += fmt.Sprintf("; %d line(s) are accepted by their own gitleaks:allow", s.Allowed)
	}
	return met(name, "%s", text)
}
