//go:build race

package chaos_test

// raceFlags builds the controller as the tests are built: with the race detector.
var raceFlags = []string{"-race"}
