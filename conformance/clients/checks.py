"""What the official Python client is asked to do by the suite: one function per check, arguments from the command line."""
import sys

from kubernetes import client, config, watch
from kubernetes.stream import portforward, stream

GROUP = {"group": "agents.x-k8s.io", "version": "v1beta1", "plural": "sandboxes"}


def patches(namespace, name):
    body = {"metadata": {"labels": {"python": "yes"}}}
    client.CoreV1Api().patch_namespaced_pod(name, namespace, body)
    client.CustomObjectsApi().patch_namespaced_custom_object(**GROUP, namespace=namespace, name=name, body=body)


def execute(namespace, name):
    api = client.CoreV1Api()
    command = ["sh", "-c", "echo out; echo err >&2; exit 3"]
    flags = {"stderr": True, "stdin": False, "stdout": True, "tty": False}
    session = stream(api.connect_get_namespaced_pod_exec, name, namespace, command=command, _preload_content=False, **flags)
    session.run_forever(timeout=20)
    print("|".join([session.read_stdout().strip(), session.read_stderr().strip(), str(session.returncode)]))


def forward(namespace, name):
    session = portforward(client.CoreV1Api().connect_get_namespaced_pod_portforward, name, namespace, ports="8080")
    socket = session.socket(8080)
    socket.settimeout(20)
    socket.sendall(b"GET / HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n")
    answer = b""
    while chunk := socket.recv(65536):
        answer += chunk
    print(answer.decode())


def watching(namespace):
    """Lists, watches with a timeout, and resumes from the last version it saw."""
    api = client.CoreV1Api()
    api.create_namespaced_secret(namespace, {"metadata": {"name": "one"}})
    first = watch.Watch()
    seen = [event["object"].metadata.name for event in first.stream(api.list_namespaced_secret, namespace, timeout_seconds=1)]
    api.create_namespaced_secret(namespace, {"metadata": {"name": "two"}})
    resumed = watch.Watch()
    options = {"resource_version": first.resource_version, "timeout_seconds": 5}
    for event in resumed.stream(api.list_namespaced_secret, namespace, **options):
        seen.append(event["object"].metadata.name)
        if event["object"].metadata.name == "two":
            break
    print(",".join(seen))


def sdk(namespace):
    """Opens a sandbox with upstream's SDK, works in it and deletes it."""
    from k8s_agent_sandbox import SandboxClient
    from k8s_agent_sandbox.models import SandboxLocalTunnelConnectionConfig

    boxes = SandboxClient(connection_config=SandboxLocalTunnelConnectionConfig(router_namespace=namespace))
    box = boxes.create_sandbox("pool", namespace=namespace, sandbox_ready_timeout=60)
    result = box.commands.run("echo \"$POD_NAME\"; echo err >&2; exit 3")
    box.files.write("note.txt", b"written through the tunnel")
    note = box.files.read("note.txt").decode()
    is_own_pod = result.stdout.strip() == box.get_pod_name()
    again = boxes.get_sandbox(box.claim_name, namespace=namespace)
    print("claim", again.claim_name, "pod", box.get_pod_name())
    print("|".join([f"own pod {str(is_own_pod).lower()}", result.stderr.strip(), str(result.exit_code), note]))
    boxes.delete_sandbox(box.claim_name, namespace=namespace)


if __name__ == "__main__":
    config.load_kube_config()
    globals()[sys.argv[1]](*sys.argv[2:])
