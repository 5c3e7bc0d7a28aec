package recipe

const (
	whyBlock = "they are block devices, and a file system on one that two nodes mount is destroyed"
	whyNode  = "they are block devices of one node"
)

// refusedRows are drivers that people run and whose volumes cannot be
// mirrored. Those that need no attaching stand here above all: nothing in the
// cluster says that their volumes belong to one node.
var refusedRows = []Row{
	{Name: "rbd.csi.ceph.com", VendorPrefix: true, Refused: whyBlock,
		Basis: "ceph-csi 52fcb7b (2024-10): internal/rbd/nodeserver.go, populateRbdVol; rbd_attach.go, attachRBDImage"},
	{Name: "ebs.csi.aws.com", Refused: whyBlock,
		Basis: "aws-ebs-csi-driver 0b48365: deploy/kubernetes/base/csidriver.yaml (attachRequired: true)"},
	{Name: "disk.csi.azure.com", Refused: whyBlock,
		Basis: "azuredisk-csi-driver 14c2158: deploy/csi-azuredisk-driver.yaml (attachRequired: true)"},
	{Name: "pd.csi.storage.gke.io", Refused: whyBlock,
		Basis: "gcp-compute-persistent-disk-csi-driver 0bb37c1: deploy/kubernetes/base/controller/csidriver_info.yaml (attachRequired: true)"},
	{Name: "cinder.csi.openstack.org", Refused: whyBlock,
		Basis: "cloud-provider-openstack 1630869: manifests/cinder-csi-plugin/csi-cinder-driver.yaml (attachRequired: true)"},
	{Name: "iscsi.csi.k8s.io", Refused: whyBlock,
		Basis: "csi-driver-iscsi 4914be4: deploy/csi-iscsi-driverinfo.yaml (attachRequired: false although they are block devices)"},
	{Name: "topolvm.io", Refused: whyNode,
		Basis: "topolvm ac5654f: charts/topolvm/templates/controller/csidriver.yaml (attachRequired: false although they are logical volumes of a node)"},
	{Name: "topolvm.cybozu.com", Refused: whyNode,
		Basis: "topolvm's former name, same place"},
	{Name: "local.csi.openebs.io", Refused: whyNode,
		Basis: "lvm-localpv v1.6.1: deploy/yamls/lvm-driver.yaml (attachRequired: false although they are logical volumes of a node)"},
	{Name: "driver.longhorn.io", Refused: "they are attached to nodes, also those with ReadWriteMany, whose NFS server Longhorn starts for the volume that is attached under its own name",
		Basis: "longhorn-manager 5ddaa36 (2026-08): csi/deployment.go, CSIDriverSpec (attachRequired is not set, so true); csi/node_server.go, NodeStageVolume (the volume by its handle)"},
	{Name: "csi.trident.netapp.io", Refused: "they are attached to nodes, also those on NFS, whose server and path the driver gives to a node only when the volume is attached under its own name",
		Basis: "trident 71dd716 (2026-07): cli/k8s_client/yaml_factory.go (attachRequired: true); frontend/csi/node_server.go (nfsServerIp, nfsPath from the publish context)"},
}
