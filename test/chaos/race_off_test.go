//go:build !race

package chaos_test

// raceFlags builds the controller as the tests are built: without the race
// detector, which needs a C compiler.
var raceFlags []string
