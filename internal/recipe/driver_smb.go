package recipe

var smbRows = []Row{{
	Name: "smb.csi.k8s.io",
	Refusals: []Refusal{{Option: "sec=krb5", Why: "it is mounted with Kerberos, whose ticket cache on the node belongs to the volume that was staged last " +
		"and goes with it"}},
	Handle:  OpaqueHandle,
	Need:    []string{"source"},
	Stages:  true,
	Unshare: []string{"nosharesock"},
	Notes: []string{
		noReadOnlyCIFS,
		"The mirror uses the origin's stage secret, which kubelet reads: the mirror's namespace needs neither a copy nor permissions.",
		"nosharesock gives each mirror a TCP connection of its own to the server.",
	},
	Unverified: []string{notRunCIFS},
	Basis: "csi-driver-smb 95c6968 (2026-08): pkg/smb/nodeserver.go, NodeStageVolume (source, subDir), NodePublishVolume, ensureKerberosCache; " +
		"controllerserver.go, getSmbVolFromID (a handle without # deletes nothing); " + kernelCIFS,
}}
