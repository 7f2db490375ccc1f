import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { createMirror, DiskCache, ecosystems, hostUpstreams, localHostSettings, type Mirror } from '@corral/mirror'
import { type HostService, mayReach, socketPath } from '@corral/node'
import type { Logger } from '@corral/ports'
import { packagesGrant } from '@corral/resources'
import type { PackageClients } from '@corral/tasks'
import { type DataDirectory, ensureSecret } from './data-directory.js'

/** Where every sandbox that is granted `packages` finds the mirror: pip, uv and others speak plain HTTP on loopback only. */
const mirrorPort = 8788
const mirrorUrl = `http://127.0.0.1:${mirrorPort}`

export interface PackageMirrorOptions {
  directory: DataDirectory
  /** What packages may take on disk; the least recently used go first. */
  budgetBytes: number
  env: NodeJS.ProcessEnv
  log: Logger
}

export interface PackageMirror {
  /** For the node: how a granted sandbox reaches it. */
  readonly service: HostService
  close(): Promise<void>
}

/** What the clients of all registries are given, inside sandboxes. */
export function packageClients(env: NodeJS.ProcessEnv): PackageClients {
  const upstream = hostUpstreams({ host: localHostSettings(env) })
  const settings = ecosystems.map((ecosystem) => ecosystem.clientSettings(mirrorUrl))
  return {
    env: Object.assign({}, ...settings.map(({ env }) => env)),
    files: Object.assign({}, ...settings.map(({ files }) => files)),
    async npmScopes() {
      const { registries = [] } = (await upstream('npm')) ?? {}
      return registries.flatMap(({ scope, url }) => (scope ? [{ scope, registry: url.href }] : []))
    },
  }
}

/**
 * The package mirror of this machine, on a socket that only the platform's user can open: it may hold packages of private
 * registries. Its cache is read when the first sandbox asks, so that it costs a start of the platform nothing.
 */
export async function startPackageMirror(options: PackageMirrorOptions): Promise<PackageMirror> {
  const { directory, env, log } = options
  const home = directory.packages
  mkdirSync(home, { recursive: true, mode: 0o700 })
  chmodSync(home, 0o700)
  const linkSecret = Buffer.from(ensureSecret(directory, 'secrets/package-links'))
  let opening: Promise<Mirror> | undefined
  const open = async (): Promise<Mirror> =>
    createMirror({
      cache: await DiskCache.open({ directory: join(home, 'cache'), budgetBytes: options.budgetBytes }),
      baseUrl: mirrorUrl,
      linkSecret,
      upstream: hostUpstreams({ host: localHostSettings(env) }),
      mayReach,
      log,
    })
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      opening ??= open()
      await (await opening).handle(request, response)
    } catch (error) {
      // A cache that cannot be opened, such as on a full disk, is tried again with the next request.
      opening = undefined
      log.error('the package mirror cannot serve', { error })
      response.writeHead(503, { 'content-type': 'text/plain' }).end('the package mirror cannot open its cache\n')
    }
  }
  const server = createServer((request, response) => void answer(request, response))
  // A socket file of an earlier process is in the way; the directory's lock says that no other process listens on it.
  rmSync(join(home, 'mirror.sock'), { force: true })
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(socketPath(home, 'mirror.sock'), resolve),
  )
  return {
    service: {
      names: [],
      port: mirrorPort,
      onLoopback: true,
      grant: packagesGrant,
      target: { socketPath: join(home, 'mirror.sock') },
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await opening?.then((mirror) => mirror.close()).catch(() => undefined)
    },
  }
}
