// Command load reads an archived chart as Helm does, renders it with the values
// that a site must give, and says if it is not of the version named:
// load ARCHIVE VERSION.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/mooring-k8s/mooring/test/chart"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	const archive, version = 0, 1
	if len(args) != 2 {
		return errors.New("expected the archive and its version")
	}
	loaded, err := loader.LoadFile(args[archive])
	if err != nil {
		return err
	}
	if err := loaded.Validate(); err != nil {
		return err
	}
	if got := loaded.Metadata; got.Version != args[version] || got.AppVersion != args[version] {
		return fmt.Errorf("%s: version %s, appVersion %s: expected %s for both", args[archive], got.Version, got.AppVersion, args[version])
	}
	for _, file := range loaded.Files {
		if strings.HasPrefix(file.Name, "tests/") {
			return fmt.Errorf("%s holds %s, which no installation needs", args[archive], file.Name)
		}
	}
	dir, err := os.MkdirTemp("", "mooring-chart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := chartutil.ExpandFile(dir, args[archive]); err != nil {
		return err
	}
	objects, err := chart.Render(chart.Options{
		Dir: dir + "/" + loaded.Name(), Values: map[string]any{"image": map[string]any{"repository": "registry.example.com/mooring", "tag": args[version]}},
	})
	if err != nil {
		return err
	}
	fmt.Printf("chart: %s %s, %d objects\n", loaded.Name(), args[version], len(objects))
	return nil
}
