package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/inventory"
)

const none = "-"

func printAccess(out io.Writer, a Access) error {
	t := terminalOf(out)
	p := &prose{width: t.width}
	p.add("", "Who can reach the data of "+a.Origin+optional(" (volume ", a.Volume, ")")+":")
	if !a.Exists {
		p.add("", "The claim does not exist any more; these mirrors of it are left.")
	}
	if a.Tried {
		p.add("", "As if the grants were those below; nothing was written.")
	}
	for _, g := range a.Grants {
		p.hang("  "+grantWord(g.Access)+"  ", "              ", g.Selector)
	}
	if len(a.Grants) == 0 {
		p.add("  ", "no grant: nobody else may mirror it")
	}
	if a.Until != nil {
		p.add("  ", "until       "+moment(a.Until))
	}
	for _, problem := range a.Problems {
		p.add("  ", "warning: "+problem)
	}
	if a.Mirrored && len(a.Namespaces) == 0 {
		p.add("", "It has mirrors, which are not visible to you.")
	}
	p.add("", "")
	if _, err := io.WriteString(out, p.text.String()); err != nil {
		return err
	}
	if err := accessTable(t, a).write(out, accessRows(a)); err != nil {
		return err
	}
	sum := &prose{width: t.width}
	sum.add("", "")
	sum.add("", summary(a))
	_, err := io.WriteString(out, sum.text.String())
	return err
}

// grantWord is an access in the width of the longest one.
func grantWord(access string) string { return fmt.Sprintf("%-10s", access) }

func accessTable(t terminal, a Access) *table {
	columns := []column{
		{title: "NAMESPACE", shrinks: 9}, {title: "GRANTED", shrinks: 7}, {title: "NOW", shrinks: 7},
		{title: "MIRROR", shrinks: 6}, {title: "ACCESS", optional: 3, shrinks: 8}, {title: "STATE", optional: 1}, {title: "PODS", shrinks: 6, optional: 2},
	}
	if !a.Tried {
		columns = slices.Delete(columns, 2, 3)
	}
	return &table{columns: columns, terminal: t}
}

func accessRows(a Access) [][]cell {
	namespace, _, _ := strings.Cut(a.Origin, "/")
	row := func(cells ...cell) []cell {
		if !a.Tried {
			cells = slices.Delete(cells, 2, 3)
		}
		return cells
	}
	rows := [][]cell{}
	if a.Exists {
		rows = append(rows, row(cell{text: namespace}, cell{text: "its own"}, cell{text: "its own"}, cell{text: none}, cell{text: none}, cell{text: none}, podsCell(a.Pods)))
	}
	for _, space := range a.Namespaces {
		granted, now := cell{text: orElse(space.Granted, "?")}, cell{text: orElse(space.GrantedNow, "?")}
		if len(space.Mirrors) == 0 {
			rows = append(rows, row(cell{text: space.Namespace}, granted, now, cell{text: none}, cell{text: none}, cell{text: none}, cell{text: none}))
		}
		for _, m := range space.Mirrors {
			rows = append(rows, row(cell{text: space.Namespace}, granted, now, cell{text: m.Name}, cell{text: m.Access},
				cell{string(m.State), stateColour(m.State)}, podsCell(m.Pods)))
		}
	}
	return rows
}

func podsCell(pods []string) cell { return cell{text: orElse(strings.Join(pods, ","), none)} }

// summary counts, since a table may be long.
func summary(a Access) string {
	writers, readers, mirrors, revoked, pods := 0, 0, 0, 0, len(a.Pods)
	for _, space := range a.Namespaces {
		switch space.Granted {
		case grant.ReadWrite.String():
			writers++
		case grant.ReadOnly.String():
			readers++
		}
		mirrors += len(space.Mirrors)
		for _, m := range space.Mirrors {
			pods += len(m.Pods)
			if m.State == inventory.Revoked {
				revoked++
			}
		}
	}
	granted := fmt.Sprintf("Granted to namespaces: %d read-write, %d read-only.", writers, readers)
	if slices.Contains(a.NotVisible, "namespaces") {
		granted = "Which namespaces that is, is not visible to you."
	}
	mirrored := fmt.Sprintf(" Mirrors: %d, of which revoked: %d.", mirrors, revoked)
	if slices.Contains(a.NotVisible, "persistentvolumes") {
		mirrored = ""
	}
	line := granted + mirrored + fmt.Sprintf(" Pods: %d.", pods)
	if a.Tried {
		return line + " (with the grants that are tried)"
	}
	return line
}
