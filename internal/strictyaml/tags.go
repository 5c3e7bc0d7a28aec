package strictyaml

import "unicode/utf8"

// position is where a node begins, as the parser counts: lines and characters
// from 1.
type position struct{ line, column int }

// exclamations returns where the document has the character !. No node begins
// with it but one that has a tag: the parser forgets the tag "!" alone, by which
// a reader takes 0 for a text.
func exclamations(data []byte) map[position]bool {
	marks := map[position]bool{}
	at := position{1, 1}
	for i := 0; i < len(data); {
		char, size := utf8.DecodeRune(data[i:])
		switch char {
		case '\r', '\n', '\u0085', '\u2028', '\u2029': // YAML's line breaks; \r\n is one
			if char == '\r' && i+1 < len(data) && data[i+1] == '\n' {
				size++
			}
			at = position{at.line + 1, 1}
		case '\ufeff': // at the start the parser does not count it; elsewhere it refuses it
		default:
			if char == '!' {
				marks[at] = true
			}
			at.column++
		}
		i += size
	}
	return marks
}
