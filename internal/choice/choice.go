// Package choice turns the bytes of a fuzz target into choices, so that what the
// fuzzer mutates are structured facts and not the text of some encoding of them.
// Only tests import it.
//
// The first of several choices is the usual one, and bytes that are not there
// choose it: no bytes at all are the base case, and each byte moves one thing away
// from it. The same bytes always give the same choices.
package choice

// Source hands out choices. The zero value only gives the first one.
type Source struct{ rest []byte }

// From returns the choices that these bytes stand for.
func From(data []byte) *Source { return &Source{rest: data} }

// Int returns a number from 0 up to, and without, n.
func (s *Source) Int(n int) int {
	if len(s.rest) == 0 || n < 2 {
		return 0
	}
	chosen := int(s.rest[0]) % n
	s.rest = s.rest[1:]
	return chosen
}

// Yes returns false unless the next byte says otherwise: of 256 bytes 64 do.
func (s *Source) Yes() bool { return s.Int(256) >= 192 }

// longestText is as long as a text of raw bytes may be.
const longestText = 400

// Text returns one of the usual texts, or, less often, raw bytes: as many as the
// next byte says, or a repetition of them that is longer than any limit.
func (s *Source) Text(usual ...string) string {
	chosen := s.Int(len(usual) + 2)
	if chosen < len(usual) {
		return usual[chosen]
	}
	length := min(s.Int(longestText), len(s.rest))
	text := string(s.rest[:length])
	s.rest = s.rest[length:]
	if chosen > len(usual) {
		for len(text) > 0 && len(text) < longestText {
			text += text
		}
	}
	return text
}

// Map returns up to most entries of these keys and values.
func (s *Source) Map(most int, keys, values []string) map[string]string {
	entries := map[string]string{}
	for range s.Int(most + 1) {
		entries[s.Text(keys...)] = s.Text(values...)
	}
	return entries
}

// Of returns one of the choices.
func Of[T any](s *Source, choices ...T) T { return choices[s.Int(len(choices))] }

// Perhaps changes something, in about a quarter of the cases.
func (s *Source) Perhaps(change func()) {
	if s.Yes() {
		change()
	}
}
