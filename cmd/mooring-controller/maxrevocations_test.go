package main

import (
	"strings"
	"testing"
)

func TestParseMaxRevocations(t *testing.T) {
	for _, tc := range []struct {
		text           string
		count, percent int
	}{
		{"20", 20, 0},
		{"5%", 0, 5},
		{"20,5%", 20, 5},
		{"5%,20", 20, 5},
		{"0", 0, 0},
		{"0%", 0, 0},
		{"100%", 0, 100},
		{"2147483647", 2147483647, 0},
	} {
		if count, percent, err := ParseMaxRevocations(tc.text); err != nil || count != tc.count || percent != tc.percent {
			t.Errorf("%q: got %d, %d %%, %v; want %d, %d %%", tc.text, count, percent, err, tc.count, tc.percent)
		}
	}
	for _, text := range []string{
		"", ",", "20,", ",5%", "%", "-1", "+1", "-5%", "1.5", "2.5%", "101%", "20,30", "5%,6%", "20,5%,1", "20, 5%", " 20", "5 %", "5%%",
		"many", "0x10", "2147483648",
	} {
		if count, percent, err := ParseMaxRevocations(text); err == nil || count != 0 || percent != 0 {
			t.Errorf("%q: got %d, %d %%, %v; want an error and nothing else", text, count, percent, err)
		}
	}
}

// FuzzParseMaxRevocations holds that what is accepted is digits, and what is
// refused stops nothing and lets nothing go on: it is no value at all.
func FuzzParseMaxRevocations(f *testing.F) {
	for _, seed := range []string{"20", "5%", "20,5%", "", ",", "-1", "101%", "٣", "5%,6%", "1e3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		count, percent, err := ParseMaxRevocations(text)
		if err != nil && (count != 0 || percent != 0) || count < 0 || percent < 0 || percent > 100 {
			t.Fatalf("%q: %d, %d %%, %v", text, count, percent, err)
		}
		if err == nil && (text == "" || strings.Trim(text, "0123456789,%") != "") {
			t.Fatalf("%q was accepted", text)
		}
	})
}
