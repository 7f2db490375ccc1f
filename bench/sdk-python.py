"""Upstream's Python client: a sandbox from a warm pool to the first output, so many times. Prints milliseconds, one a line."""
import logging
import sys
import time

from k8s_agent_sandbox import SandboxClient
from k8s_agent_sandbox.models import SandboxdPodTunnelConnectionConfig

logging.disable(logging.CRITICAL)
rounds = int(sys.argv[1])
client = SandboxClient(connection_config=SandboxdPodTunnelConnectionConfig())
for round_ in range(-1, rounds):
    time.sleep(1.5)  # the pool fills up again
    began = time.monotonic()
    box = client.create_sandbox("bench-sandboxd", namespace="corral", sandbox_ready_timeout=120)
    result = box.commands.run("echo ready")
    taken = time.monotonic() - began
    if result.stdout != "ready\n":
        raise SystemExit(f"unexpected output {result.stdout!r}")
    client.delete_sandbox(box.claim_name, namespace="corral")
    if round_ >= 0:
        print(taken * 1000, file=sys.__stdout__, flush=True)
