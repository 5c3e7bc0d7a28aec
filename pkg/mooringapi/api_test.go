package mooringapi_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt again: a change of what other programs rely on")

// What the package exports is a promise. A change shows here, and is made on
// purpose: go test ./pkg/mooringapi -run TestExportedAPI -update
func TestExportedAPI(t *testing.T) {
	const golden = "testdata/api.txt"
	got := exported(t)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the exported API is not that of %s: is the change meant, and compatible? Then run\n"+
			"go test ./pkg/mooringapi -run TestExportedAPI -update\ngot:\n%s", golden, got)
	}
}

// The packages that it may drag into other people's programs.
func TestImports(t *testing.T) {
	for name, file := range sources(t) {
		for _, spec := range file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if strings.Contains(path, ".") && !strings.HasPrefix(path, "k8s.io/api/") && !strings.HasPrefix(path, "k8s.io/apimachinery/") {
				t.Errorf("%s imports %s; expected the standard library, k8s.io/api, k8s.io/apimachinery only", name, path)
			}
		}
	}
}

// exported prints every exported declaration, without comments and bodies, in
// the order of the text.
func exported(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, file := range sources(t) {
		ast.FileExports(file)
		ast.Inspect(file, func(node ast.Node) bool {
			if fields, ok := node.(*ast.StructType); ok {
				fields.Incomplete = false // else the printer says so, in a comment
			}
			return true
		})
		for _, decl := range file.Decls {
			for _, one := range apart(decl) {
				var text bytes.Buffer
				if err := (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&text, token.NewFileSet(), one); err != nil {
					t.Fatal(err)
				}
				lines = append(lines, text.String())
			}
		}
	}
	if len(lines) == 0 {
		t.Fatal("found nothing exported")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// apart returns a declaration's members as declarations of their own; imports
// are none.
func apart(decl ast.Decl) []ast.Decl {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		decl.Body, decl.Doc = nil, nil
		return []ast.Decl{decl}
	case *ast.GenDecl:
		if decl.Tok == token.IMPORT {
			return nil
		}
		var all []ast.Decl
		for _, spec := range decl.Specs {
			all = append(all, &ast.GenDecl{Tok: decl.Tok, Specs: []ast.Spec{spec}})
		}
		return all
	}
	return nil
}

func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	return files
}
