// Package rules holds the tests of the chart's alerts: what makes each fire is in
// alerts_test.yaml, which promtool runs.
package rules
