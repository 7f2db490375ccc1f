import { createReadStream, createWriteStream } from 'node:fs'
import { chmod, mkdir, stat } from 'node:fs/promises'
import { basename, dirname, join, posix } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { AgentSandboxClient, SandboxHandle } from '@corral/agent-sandbox-sdk'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import type { KubeOptions } from '../client/kube-access.js'
import { findSandbox } from '../client/sandbox-names.js'
import { parseCount } from '../output/parse-duration.js'
import { untilStopSignal } from '../platform/until-stop-signal.js'
import { examples, print } from './common.js'

type Options = KubeOptions & { json?: boolean }
type Open = (options: KubeOptions) => Promise<AgentSandboxClient>

/** `corral sandbox cp|forward|logs|suspend|resume`: what a sandbox is good for besides commands. */
export function addSandboxUse(sandbox: Command, withCluster: (command: Command) => Command, open: Open): void {
  withCluster(sandbox.command('cp').argument('<from>').argument('<to>'))
    .summary('copy a file or directory into or out of a sandbox')
    .description(
      'One side is NAME:/absolute/path, the other a local path, or - for a file from standard input or to standard output. Directories are copied with all in them.',
    )
    .addHelpText(
      'after',
      examples(
        'corral sandbox cp ./src box:/workspace/src',
        'corral sandbox cp box:/tmp/log.txt .',
        'corral sandbox cp box:/tmp/log.txt - | tail',
      ),
    )
    .action(async (from: string, to: string, options: Options) => {
      const [source, target] = [remotePath(from), remotePath(to)]
      if ((source === undefined) === (target === undefined)) {
        throw new CliError('one of the two paths must be NAME:/path', { exitCode: 2 })
      }
      await using client = await open(options)
      const handle = await client.sandboxes.get(await findSandbox(client, (source ?? target)!.name))
      if (source) await download(handle, source.path, to)
      else await upload(handle, from, target!.path)
      handle.detach()
      // Standard output is the file's.
      if (to !== standardStream) print({ from, to }, options, () => `copied ${from} to ${to}`)
    })

  withCluster(sandbox.command('forward').argument('<name>').argument('<ports...>'))
    .summary('reach ports of a sandbox on this machine')
    .description('Each port is PORT, or LOCAL:PORT. Runs until it is interrupted or the sandbox ends.')
    .option('--address <address>', 'local address to listen on', '127.0.0.1')
    .action(async (name: string, ports: string[], options: Options & { address: string }) => {
      const wanted = ports.map(portPair)
      await using client = await open(options)
      const handle = await client.sandboxes.get(await findSandbox(client, name))
      const listeners = []
      const bound: { address: string; local: number; remote: number }[] = []
      try {
        for (const { local, remote } of wanted) {
          const listener = await handle.ports.forward(remote, { localPort: local, host: options.address })
          listeners.push(listener)
          bound.push({ address: listener.host, local: listener.port, remote })
        }
        // One document, once every port is reached.
        print({ name, ports: bound }, options, () =>
          bound.map(({ address, local, remote }) => `${address}:${local} -> ${name}:${remote}`).join('\n'),
        )
        const ended = Promise.race(listeners.map((listener) => listener.ended))
        const reason = await Promise.race([ended, untilStopSignal()])
        if (reason instanceof Error) throw reason
      } finally {
        await Promise.all(listeners.map((listener) => listener.close()))
        handle.detach()
      }
    })

  withCluster(sandbox.command('logs').argument('<name>'))
    .summary('what the container of a sandbox has written')
    .option('-f, --follow', 'go on as it writes')
    .option('--tail <lines>', 'only the last lines', parseCount)
    .action(async (name: string, options: Options & { follow?: boolean; tail?: number }) => {
      await using client = await open(options)
      const handle = await client.sandboxes.get(await findSandbox(client, name))
      const selection = {
        ...(options.follow ? { follow: true } : {}),
        ...(options.tail === undefined ? {} : { tailLines: options.tail }),
      }
      await pipeline(Readable.from(handle.logs(selection)), process.stdout, { end: false })
      handle.detach()
    })

  for (const [verb, summary, done] of [
    ['suspend', 'stop the pod of a sandbox and keep its volumes', 'suspended'],
    ['resume', 'start a suspended sandbox again', 'resumed'],
  ] as const) {
    withCluster(sandbox.command(verb).argument('<name>'))
      .summary(summary)
      .action(async (name: string, options: Options) => {
        await using client = await open(options)
        const handle = await client.sandboxes.get(await findSandbox(client, name))
        await handle[verb]()
        handle.detach()
        print({ name, state: done }, options, () => `${done} ${name}`)
      })
  }
}

const standardStream = '-'

async function upload(handle: SandboxHandle, local: string, remote: string): Promise<void> {
  if (local === standardStream) {
    // Nothing names the file in a directory.
    if (remote.endsWith('/')) throw new CliError(`name the file that - is copied to, not ${remote}`, { exitCode: 2 })
    return handle.files.write(remote, process.stdin as AsyncIterable<Uint8Array>)
  }
  const info = await stat(local).catch(() => undefined)
  if (!info) throw new CliError(`there is no ${local}`, { exitCode: 2 })
  if (info.isDirectory()) return handle.files.uploadDirectory(local, remote)
  // With a slash at its end it names a directory, whether it is there yet or not.
  const isDirectory = remote.endsWith('/') || (await handle.files.stat(remote))?.type === 'directory'
  const target = isDirectory ? posix.join(remote, basename(local)) : remote
  const mode = (info.mode & 0o777).toString(8).padStart(4, '0')
  await handle.files.write(target, createReadStream(local) as AsyncIterable<Uint8Array>, { mode })
}

async function download(handle: SandboxHandle, remote: string, local: string): Promise<void> {
  const there = await handle.files.stat(remote)
  if (!there) throw new CliError(`there is no ${remote} in the sandbox`, { exitCode: 1 })
  if (local === standardStream) {
    if (there.type === 'directory')
      throw new CliError(`${remote} is a directory: only a file goes to -`, { exitCode: 2 })
    return pipeline(Readable.from(handle.files.readStream(remote)), process.stdout, { end: false })
  }
  if (there.type === 'directory') return handle.files.downloadDirectory(remote, local)
  const isDirectory = local.endsWith('/') || (await stat(local).catch(() => undefined))?.isDirectory()
  const target = isDirectory ? join(local, basename(remote)) : local
  await mkdir(dirname(target), { recursive: true })
  await pipeline(Readable.from(handle.files.readStream(remote)), createWriteStream(target))
  // A script that can be run there can be run here. A runtime that does not know says 0000.
  if (/^[0-7]*[1-7][0-7]*$/.test(there.mode))
    await chmod(target, Number.parseInt(there.mode, 8) & 0o777 & ~process.umask())
}

function remotePath(text: string): { name: string; path: string } | undefined {
  const match = /^([A-Za-z0-9][A-Za-z0-9._-]*):(\/.*)$/.exec(text)
  return match ? { name: match[1]!, path: match[2]! } : undefined
}

function portPair(text: string): { local: number; remote: number } {
  const match = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(text)
  const remote = Number(match?.[2])
  const local = Number(match?.[1] ?? remote)
  if (!match || remote < 1 || remote > 65_535 || local > 65_535) {
    throw new CliError(`"${text}" is not PORT or LOCAL:PORT`, { exitCode: 2 })
  }
  return { local, remote }
}
