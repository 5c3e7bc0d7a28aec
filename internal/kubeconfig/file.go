package kubeconfig

import "encoding/json"

// file has every field that client-go's tools/clientcmd/api/v1 Config knows, so
// that a forbidden field is refused for what it is and an unknown one as
// unknown. Pointers tell an absent field from an empty one.
type file struct {
	APIVersion     string          `json:"apiVersion"`
	Kind           string          `json:"kind"`
	CurrentContext string          `json:"current-context"`
	Clusters       []namedCluster  `json:"clusters"`
	Users          []namedUser     `json:"users"`
	Contexts       []namedContext  `json:"contexts"`
	Preferences    *preferences    `json:"preferences"`
	Extensions     json.RawMessage `json:"extensions"`
}

type preferences struct {
	Colors     *bool           `json:"colors"`
	Extensions json.RawMessage `json:"extensions"`
}

type namedCluster struct {
	Name    string  `json:"name"`
	Cluster cluster `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User user   `json:"user"`
}

type namedContext struct {
	Name    string  `json:"name"`
	Context context `json:"context"`
}

type context struct {
	Cluster    string          `json:"cluster"`
	User       string          `json:"user"`
	Namespace  string          `json:"namespace"` // read by other clients, not used here
	Extensions json.RawMessage `json:"extensions"`
}

type cluster struct {
	Server                string          `json:"server"`
	TLSServerName         string          `json:"tls-server-name"`
	InsecureSkipTLSVerify bool            `json:"insecure-skip-tls-verify"`
	CAFile                json.RawMessage `json:"certificate-authority"`
	CAData                *string         `json:"certificate-authority-data"`
	ProxyURL              json.RawMessage `json:"proxy-url"`
	DisableCompression    *bool           `json:"disable-compression"` // harmless either way
	Extensions            json.RawMessage `json:"extensions"`
}

type user struct {
	Token          *string         `json:"token"`
	TokenFile      json.RawMessage `json:"tokenFile"`
	ClientCertData *string         `json:"client-certificate-data"`
	ClientKeyData  *string         `json:"client-key-data"`
	ClientCertFile json.RawMessage `json:"client-certificate"`
	ClientKeyFile  json.RawMessage `json:"client-key"`
	Username       json.RawMessage `json:"username"`
	Password       json.RawMessage `json:"password"`
	As             json.RawMessage `json:"as"`
	AsUID          json.RawMessage `json:"as-uid"`
	AsGroups       json.RawMessage `json:"as-groups"`
	AsUserExtra    json.RawMessage `json:"as-user-extra"`
	Exec           json.RawMessage `json:"exec"`
	AuthProvider   json.RawMessage `json:"auth-provider"`
	Extensions     json.RawMessage `json:"extensions"`
}

// forbidden is one field that the contract refuses wherever it is present, even
// empty, with the reason that a person is told.
type forbidden struct {
	field   string
	present json.RawMessage
	why     string
}

func (c cluster) forbidden() []forbidden {
	return []forbidden{
		{"certificate-authority", c.CAFile, "a file reference; embed the certificates as certificate-authority-data"},
		{"proxy-url", c.ProxyURL, "a proxy is not accepted; connect directly"},
		{"extensions", c.Extensions, "not accepted; leave it out: no client reads it"},
	}
}

func (u user) forbidden() []forbidden {
	const (
		file        = "a file reference; embed the data"
		password    = "passwords are not accepted; use a token or a client certificate"
		impersonate = "impersonation is not accepted: the identity must be the one that the permission proof is about"
		program     = "starts a program or another login; put a token or a client certificate into the file"
	)
	return []forbidden{
		{"tokenFile", u.TokenFile, file + " as token"},
		{"client-certificate", u.ClientCertFile, file + " as client-certificate-data"},
		{"client-key", u.ClientKeyFile, file + " as client-key-data"},
		{"username", u.Username, password},
		{"password", u.Password, password},
		{"as", u.As, impersonate},
		{"as-uid", u.AsUID, impersonate},
		{"as-groups", u.AsGroups, impersonate},
		{"as-user-extra", u.AsUserExtra, impersonate},
		{"exec", u.Exec, program},
		{"auth-provider", u.AuthProvider, program},
		{"extensions", u.Extensions, "not accepted; leave it out: no client reads it"},
	}
}
