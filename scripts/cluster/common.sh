# shellcheck shell=bash
# What every local cluster has in common, once a kubeconfig exists. Sourced, not run.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
images="$root/build/images"
namespace="${NAMESPACE:-corral}"

need() {
  for tool in "$@"; do
    command -v "$tool" >/dev/null || { echo "$0: $tool is not installed" >&2; exit 3; }
  done
}

need_images() {
  for name in corral corral-daemon; do
    [ -f "$images/$name.tar" ] || { echo "$0: $images/$name.tar is missing: run 'npm run images' first" >&2; exit 3; }
  done
}

# Installs the chart with Helm where it is, else with the program itself, into the current context.
install_corral() {
  local runtime="${RUNTIME_CLASS:-}"
  [ "${GVISOR:-0}" != 1 ] || runtime=gvisor
  if command -v helm >/dev/null; then
    kubectl apply --server-side --force-conflicts -f "$root/deploy/helm/corral/crds"
    helm upgrade --install corral "$root/deploy/helm/corral" --namespace "$namespace" --create-namespace --wait --timeout 5m --set "sandbox.runtimeClassName=$runtime"
    helm test corral --namespace "$namespace"
  else
    "$root/corral" install --namespace "$namespace" --yes ${runtime:+--runtime-class "$runtime"}
  fi
}

# create_cluster, load_images and delete_cluster are the tool's own.
main() {
  case "${1:-up}" in
    up) need_images; create_cluster; load_images; install_corral ;;
    install) need_images; load_images; install_corral ;;
    down) delete_cluster ;;
    *) echo "Usage: $0 [up|install|down]" >&2; exit 2 ;;
  esac
}
