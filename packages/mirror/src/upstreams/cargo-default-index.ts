import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const manifest = '[package]\nname = "probe"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\nlibc = "*"\n'

/**
 * The index Cargo has built in. No command prints it, so Cargo is started on an empty project with a proxy of ours that
 * refuses every connection: the first one it asks for is the index. `undefined` where there is no Cargo.
 */
export async function cargoDefaultIndex(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const directory = await mkdtemp(join(tmpdir(), 'corral-cargo-'))
  let asked: string | undefined
  const proxy = createServer().on('connect', (request, socket) => {
    asked ??= request.url
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
  })
  try {
    await mkdir(join(directory, 'src'))
    await writeFile(join(directory, 'Cargo.toml'), manifest)
    await writeFile(join(directory, 'src', 'lib.rs'), '')
    await new Promise<void>((resolve, reject) => proxy.listen(0, '127.0.0.1', resolve).on('error', reject))
    const { port } = proxy.address() as AddressInfo
    await new Promise<void>((resolve) => {
      const variables = { CARGO_HOME: directory, CARGO_HTTP_PROXY: `http://127.0.0.1:${port}`, CARGO_NET_RETRY: '0' }
      execFile('cargo', ['fetch'], { cwd: directory, env: { ...env, ...variables }, timeout: 30_000 }, () => resolve())
    })
    return asked && `https://${asked.replace(/:443$/, '')}/`
  } finally {
    proxy.closeAllConnections()
    proxy.close()
    await rm(directory, { recursive: true, force: true })
  }
}
