"""What the official Python client is asked to do by the suite: one function per check, arguments from the command line."""
import sys

from kubernetes import client, config, watch

GROUP = {"group": "agents.x-k8s.io", "version": "v1beta1", "plural": "sandboxes"}


def patches(namespace, name):
    body = {"metadata": {"labels": {"python": "yes"}}}
    client.CoreV1Api().patch_namespaced_pod(name, namespace, body)
    client.CustomObjectsApi().patch_namespaced_custom_object(**GROUP, namespace=namespace, name=name, body=body)


if __name__ == "__main__":
    config.load_kube_config()
    globals()[sys.argv[1]](*sys.argv[2:])
