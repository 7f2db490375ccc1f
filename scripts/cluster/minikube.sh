#!/usr/bin/env bash
# A local cluster by minikube, with gVisor where GVISOR=1 asks for it: minikube.sh up | install | down
# shellcheck source=scripts/cluster/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cluster="${CLUSTER:-corral}"
need minikube kubectl

create_cluster() {
  # gVisor's addon asks for containerd; calico is a plugin that enforces network policies.
  minikube start --profile "$cluster" --container-runtime=containerd --cni=calico --cpus "${CPUS:-4}" --memory "${MEMORY:-8g}"
  [ "${GVISOR:-0}" != 1 ] || minikube addons enable gvisor --profile "$cluster"
}
delete_cluster() { minikube delete --profile "$cluster"; }
load_images() {
  for name in corral corral-daemon; do minikube image load --profile "$cluster" "$images/$name.tar"; done
}

main "$@"
