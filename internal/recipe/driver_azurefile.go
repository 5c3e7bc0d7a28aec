package recipe

import "strings"

const azureFile = "file.csi.azure.com"

const azureBasis = "azurefile-csi-driver 7b5ae18 (2026-08): pkg/azurefile/azurefile.go, GetFileShareInfo, GetAccountInfo (attributes over the handle, " +
	"whose errors are ignored); nodeserver.go, NodeStageVolume, NodePublishVolume; utils.go, isReadOnlyFromCapability; "

var azureRefusals = []Refusal{
	{Attribute: "diskName", Why: whyVHD},
	{Attribute: "fsType", Values: []string{"ext2", "ext3", "ext4", "xfs", "btrfs"}, Why: whyVHD},
	{Attribute: "mountWithManagedIdentity", Values: trueValues, Why: whyTicket},
	{Attribute: "mountWithOAuthToken", Values: trueValues, Why: whyTicket},
}

const (
	whyVHD    = "it is a disk image on a file share, whose file system two nodes would destroy"
	whyTicket = "it is mounted with a ticket that the node keeps for the storage account; how two volumes share one was not examined"
)

// azureDrop: the origin's folder exists; a mirror has nothing to create.
var azureDrop = []string{"createFolderIfNotExist"}

var azureNotes = []string{
	"The attributes resourceGroup, storageAccount, shareName, secretNamespace and subscriptionID are filled in from the origin's handle where they are missing.",
	"A volume that is mounted by workload identity is mounted as the consumer's service account, which needs access to the share.",
}

var azureFileRows = []Row{{
	Name:             azureFile,
	When:             map[string]string{"protocol": "nfs"},
	Refusals:         azureRefusals,
	Handle:           OpaqueHandle,
	Derive:           azureFromHandle,
	Need:             []string{"shareName"},
	Drop:             azureDrop,
	Set:              map[string]string{"mountPermissions": "0", "fsGroupChangePolicy": "None"},
	Stages:           true,
	Unshare:          []string{"nosharecache"},
	Contrary:         []string{"sharecache"},
	ReadOnly:         readOnlyNFSUnshared,
	OptionAttributes: []string{"mountOptions"},
	Notes: append([]string{"Without mountPermissions: \"0\" and fsGroupChangePolicy: None, the node would change the mode and the owner of the share's root."},
		azureNotes...),
	Unverified: []string{notRunNFS, "Encryption in transit (aznfs) was not examined beyond the options that it is given."},
	Basis:      azureBasis + kernelNFS,
}, {
	Name:       azureFile,
	Refusals:   azureRefusals,
	Handle:     OpaqueHandle,
	Derive:     azureFromHandle,
	Need:       []string{"shareName"},
	Drop:       azureDrop,
	Stages:     true,
	Unshare:    []string{"nosharesock"},
	Notes:      append([]string{noReadOnlyCIFS}, azureNotes...),
	Unverified: []string{notRunCIFS},
	Basis:      azureBasis + "azurefile.go, appendDefaultCifsMountOptions (nosharesock by default); " + kernelCIFS,
}}

// azureFromHandle reads the origin's handle:
// resourceGroup#account#share#disk#uuid#secretNamespace#subscription, of which
// the first three are there at least. Volumes migrated from the in-tree driver
// have no resource group, and the namespace comes fifth.
func azureFromHandle(handle string) (map[string]string, string) {
	segments := strings.Split(handle, "#")
	if len(segments) < 3 {
		return nil, "" // the attributes say it all
	}
	segments = append(segments, "", "", "", "")
	found := map[string]string{"resourceGroup": segments[0], "storageAccount": segments[1], "shareName": segments[2]}
	if segments[3] != "" {
		return nil, "this volume of " + azureFile + " cannot be mirrored: " + whyVHD
	}
	if segments[0] == "" {
		found["secretNamespace"] = segments[4]
	} else {
		found["secretNamespace"], found["subscriptionID"] = segments[5], segments[6]
	}
	for key, value := range found {
		if value == "" {
			delete(found, key)
		}
	}
	return found, ""
}
