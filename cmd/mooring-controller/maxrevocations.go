package main

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseMaxRevocations reads how many mirrors may be revoked before deletions
// stop: a whole number, a percentage of all mirrors, or both, of which the
// larger counts. What is not given is 0.
func ParseMaxRevocations(text string) (count, percent int, err error) {
	var hasCount, hasPercent bool
	for part := range strings.SplitSeq(text, ",") {
		digits, isPercent := strings.CutSuffix(part, "%")
		number, err := strconv.ParseUint(digits, 10, 31) // no sign, no space, no fraction
		switch {
		case err != nil, isPercent && number > 100, isPercent && hasPercent, !isPercent && hasCount:
			return 0, 0, fmt.Errorf("%q: expected a whole number, a percentage up to 100%%, or one of each, such as 20,5%%", text)
		case isPercent:
			percent, hasPercent = int(number), true
		default:
			count, hasCount = int(number), true
		}
	}
	return count, percent, nil
}
