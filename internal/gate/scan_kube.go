package gate

import (
	"bytes"
	"encoding/base64"
	"regexp"
)

var (
	keyHeader = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`)
	// keyBody is a line of a key: what a text about keys has not.
	keyBody = regexp.MustCompile(`[A-Za-z0-9+/]{40}`)
	// keyBase64 is "-----BEGIN" in base64, as in a kubeconfig's client-key-data.
	keyBase64 = regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/]{50,}`)
	// saysVolume is what makes a document a volume or a list of them, with the tags,
	// anchors and line breaks that YAML has room for.
	saysVolume = regexp.MustCompile(`(?m)["']?\bkind["']?\s*:\s*(?:[!&|>]\S*\s+)*["']?PersistentVolume(?:List)?["']?[ \t]*(?:[,}#\r]|$)`)
)

// privateKeys returns where private keys begin.
func privateKeys(data []byte) []int {
	var at []int
	if !bytes.Contains(data, []byte("PRIVATE KEY")) && !bytes.Contains(data, []byte("LS0tLS1CRUdJTi")) {
		return nil // the usual case, many times faster than the expressions
	}
	for _, match := range keyHeader.FindAllIndex(data, -1) {
		after := data[match[1]:min(len(data), match[1]+1024)]
		if keyBody.Match(after) {
			at = append(at, match[0])
		}
	}
	for _, match := range keyBase64.FindAllIndex(data, -1) {
		const groups = 64 // whole groups of four
		text := data[match[0]:min(match[1], match[0]+groups)]
		decoded := make([]byte, groups)
		n, _ := base64.RawStdEncoding.Decode(decoded, text[:len(text)/4*4])
		if bytes.Contains(decoded[:n], []byte("PRIVATE KEY")) {
			at = append(at, match[0])
		}
	}
	return at
}

// kubeconfigSigns are what was seen of a kubeconfig, in any window.
type kubeconfigSigns struct{ clusters, users, server, itself bool }

var (
	signClusters = key("clusters", `[ \t]*:`)
	signUsers    = key("users", `[ \t]*:`)
	signServer   = key("server", `[ \t]*:[ \t]*["']?https?://`)
	signConfig   = key("kind", `[ \t]*:[ \t]*["']?Config\b`)
	signContext  = key("current-context", `[ \t]*:`)
)

// key matches a name as YAML or JSON has it as a key.
func key(name, follows string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:^|[\s{,"'])` + name + `["']?` + follows)
}

func (k *kubeconfigSigns) look(data []byte) {
	look := func(seen *bool, word string, sign *regexp.Regexp) {
		*seen = *seen || bytes.Contains(data, []byte(word)) && sign.Match(data)
	}
	look(&k.clusters, "clusters", signClusters)
	look(&k.users, "users", signUsers)
	look(&k.server, "server", signServer)
	look(&k.itself, "Config", signConfig)
	look(&k.itself, "current-context", signContext)
}

func (k *kubeconfigSigns) all() bool { return k.clusters && k.users && k.server && k.itself }
