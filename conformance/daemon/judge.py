"""Upstream's Python clients at work in a sandbox of ours. Prints one line per thing that was done, `ok NAME` or `failed NAME: why`."""
import asyncio
import subprocess
import sys
import time

from k8s_agent_sandbox import AsyncSandboxClient, SandboxClient
from k8s_agent_sandbox.models import SandboxDirectConnectionConfig, SandboxdPodTunnelConnectionConfig

namespace = "corral"
failures = 0


def report(name, check):
    global failures
    try:
        check()
        print("ok", name, flush=True)
    except Exception as error:  # every failure is a line; the program ends with their number
        failures += 1
        print(f"failed {name}: {type(error).__name__}: {error}", flush=True)


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r} instead of {wanted!r}")


def work(label, box, is_sandboxd):
    """Commands and files of the synchronous client."""

    def commands():
        result = box.commands.run("sh -c 'echo out; echo err >&2; exit 3'")
        equal((result.stdout, result.stderr, result.exit_code), ("out\n", "err\n", 3))

    def missing():
        result = box.commands.run("no-such-program-here")
        if result.exit_code == 0:
            raise AssertionError("a program that does not exist ended with 0")

    def large():
        result = box.commands.run("sh -c 'head -c 1000000 /dev/zero | tr \"\\0\" x'")
        equal(len(result.stdout), 1_000_000)

    def files():
        data = bytes(range(256)) * 1000
        box.files.write("judge/data.bin", data) if is_sandboxd else box.files.write("data.bin", data)
        path = "judge/data.bin" if is_sandboxd else "data.bin"
        equal(box.files.read(path), data)
        equal(box.files.exists(path), True)
        equal(box.files.exists("nowhere"), False)
        names = {entry.name: entry for entry in box.files.list("judge" if is_sandboxd else ".")}
        equal((names["data.bin"].size, names["data.bin"].type), (len(data), "file"))

    def delete():
        box.files.delete("judge/data.bin")
        equal(box.files.exists("judge/data.bin"), False)

    report(f"{label}: a command, its output and exit code", commands)
    report(f"{label}: a program that does not exist", missing)
    report(f"{label}: a megabyte of output", large)
    report(f"{label}: files", files)
    if is_sandboxd:
        report(f"{label}: a file is deleted", delete)


async def work_async(label, box, is_sandboxd):
    result = await box.commands.run("sh -c 'echo out; exit 4'")
    equal((result.stdout, result.exit_code), ("out\n", 4))
    path = "judge/later.txt" if is_sandboxd else "later.txt"
    await box.files.write(path, b"later")
    equal(await box.files.read(path), b"later")
    many = await asyncio.gather(*(box.commands.run(f"echo {number}") for number in range(20)))
    equal([each.stdout for each in many], [f"{number}\n" for number in range(20)])


def forward(pod):
    """A tunnel of kubectl to the pod's port 8888; answers its local address and how to end it."""
    tunnel = subprocess.Popen(
        ["kubectl", "-n", namespace, "port-forward", f"pod/{pod}", ":8888"], stdout=subprocess.PIPE, text=True
    )
    line = tunnel.stdout.readline()
    return f"http://127.0.0.1:{line.split(':')[1].split(' ')[0]}", tunnel


def legacy():
    # The address is known once there is a pod: claimed first, then reached through a tunnel of our own.
    claims = SandboxClient(connection_config=SandboxDirectConnectionConfig(api_url="http://127.0.0.1:1"))
    claim = claims.create_sandbox("judge-legacy", namespace=namespace, sandbox_ready_timeout=120)
    url, tunnel = forward(claim.get_pod_name())
    try:
        config = SandboxDirectConnectionConfig(api_url=url)
        client = SandboxClient(connection_config=config)
        work("legacy", client.get_sandbox(claim.claim_name, namespace=namespace), False)

        async def later():
            async with AsyncSandboxClient(connection_config=config, cleanup=False) as other:
                await work_async("legacy", await other.get_sandbox(claim.claim_name, namespace=namespace), False)

        report("legacy: the asynchronous client, twenty commands at once", lambda: asyncio.run(later()))
    finally:
        tunnel.terminate()
        tunnel.wait()
        claims.delete_sandbox(claim.claim_name, namespace=namespace)


def sandboxd():
    config = SandboxdPodTunnelConnectionConfig()
    client = SandboxClient(connection_config=config)
    box = client.create_sandbox("judge-sandboxd", namespace=namespace, sandbox_ready_timeout=120)
    work("sandboxd", box, True)

    def stopped():
        began = time.monotonic()
        try:
            box.commands.run("sleep 60", timeout=1)
        except Exception:
            pass
        if time.monotonic() - began > 30:
            raise AssertionError("a command over its time was waited for")

    report("sandboxd: a command over its time ends", stopped)
    client.delete_sandbox(box.claim_name, namespace=namespace)

    async def later():
        async with AsyncSandboxClient(connection_config=config) as other:
            await work_async(
                "sandboxd", await other.create_sandbox("judge-sandboxd", namespace=namespace, sandbox_ready_timeout=120), True
            )

    report("sandboxd: the asynchronous client, twenty commands at once", lambda: asyncio.run(later()))


for part in (legacy, sandboxd):
    report(f"{part.__name__}: opened and given up", part)
sys.exit(1 if failures else 0)
