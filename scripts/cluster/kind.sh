#!/usr/bin/env bash
# A local cluster in Docker by kind: kind.sh up | install | down
# shellcheck source=scripts/cluster/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cluster="${CLUSTER:-corral}"
need kind kubectl

create_cluster() { kind get clusters | grep -qx "$cluster" || kind create cluster --name "$cluster" --wait 3m; }
delete_cluster() { kind delete cluster --name "$cluster"; }
load_images() {
  for name in corral corral-daemon; do kind load image-archive --name "$cluster" "$images/$name.tar"; done
}

main "$@"
