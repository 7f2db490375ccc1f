#!/usr/bin/env bash
# A local cluster of k3s in Docker by k3d: k3d.sh up | install | down
# shellcheck source=scripts/cluster/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cluster="${CLUSTER:-corral}"
need k3d kubectl

create_cluster() { k3d cluster list "$cluster" >/dev/null 2>&1 || k3d cluster create "$cluster" --wait --timeout 3m; }
delete_cluster() { k3d cluster delete "$cluster"; }
load_images() {
  for name in corral corral-daemon; do k3d image import --cluster "$cluster" "$images/$name.tar"; done
}

main "$@"
