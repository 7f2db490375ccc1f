#!/usr/bin/env bash
# Does the network of a cluster enforce NetworkPolicies? check-policies.sh [NAMESPACE]
# Two pods ask the server of an installation: one that the policies allow, to see that there is an answer at all, and one
# that they forbid. Ends with 0 where they are enforced, 1 where they are not, 2 where it cannot be told.
set -euo pipefail
namespace="${1:-corral}"
image="${IMAGE:-corral/daemon:0.1.0}"

# ask NAME LABEL: prints "reached" or "refused".
ask() {
  local container phase=''
  container='"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}'
  kubectl -n "$namespace" delete pod "$1" --ignore-not-found >/dev/null
  # Names need DNS, which a forbidden pod has not: the address is given.
  kubectl -n "$namespace" run "$1" --restart=Never --image="$image" --labels="app=$2" --env="TARGET=$target" \
    --override-type=strategic --overrides="{\"spec\":{\"automountServiceAccountToken\":false,
      \"securityContext\":{\"runAsNonRoot\":true,\"runAsUser\":1000,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}},
      \"containers\":[{\"name\":\"$1\",$container}]}}" \
    --command -- node -e 'fetch(process.env.TARGET, { signal: AbortSignal.timeout(10_000) }).then(
      () => console.log("reached"), () => console.log("refused"))' >/dev/null
  for _ in $(seq 120); do
    phase="$(kubectl -n "$namespace" get pod "$1" -o 'jsonpath={.status.phase}')"
    case "$phase" in Succeeded | Failed) break ;; esac
    sleep 1
  done
  kubectl -n "$namespace" logs "$1" 2>/dev/null || true
  kubectl -n "$namespace" delete pod "$1" --wait=false >/dev/null
}

address="$(kubectl -n "$namespace" get service corral -o 'jsonpath={.spec.clusterIP}')"
target="http://$address/healthz"
allowed="$(ask corral-policy-allowed corral-test)"
if [ "$allowed" != reached ]; then
  echo "cannot tell: a pod that may ask the server got no answer (${allowed:-it did not run})" >&2
  exit 2
fi
forbidden="$(ask corral-policy-forbidden corral-stranger)"
case "$forbidden" in
  refused) echo "enforced: a pod that may not ask the server is held back" ;;
  reached)
    echo "NOT ENFORCED: a pod that may not ask the server got an answer" >&2
    exit 1
    ;;
  *)
    echo "cannot tell: the second pod did not run" >&2
    exit 2
    ;;
esac
