import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { ensureCertificates } from '@corral/apiserver'
import { serveLfs } from './lfs-server.js'

export interface GitServer extends AsyncDisposable {
  /** `https://localhost:PORT`, without credentials. */
  readonly url: string
  /** Lets the git of a platform trust the server and know the password: pass it on as the platform's environment. */
  readonly environment: Record<string, string>
  /** `METHOD path` of each request that carried the right password. */
  readonly requests: string[]
  /** Requests that were refused for their credentials. */
  refused(): number
  /** Is asked before a served request's answer leaves; what it promises is waited for. */
  hold(gate: ((request: string) => Promise<void>) | undefined): void
  /** While it is away every connection is cut. */
  setAway(isAway: boolean): void
}

const user = 'alice'
const password = 'correct horse'

/**
 * Serves every repository below `root` over https on loopback with git's own `http-backend`, for one user with a
 * password, and contents of Git LFS. The certificate is signed by an authority of its own; `directory` takes it and a credential store.
 */
export async function startGitServer(root: string, directory: string): Promise<GitServer> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const tls = await ensureCertificates(join(directory, 'tls'))
  const requests: string[] = []
  let refusals = 0
  let isAway = false
  let gate: ((request: string) => Promise<void>) | undefined
  const expected = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

  const server = createServer({ cert: tls.server.cert, key: tls.server.key }, (request, response) => {
    if (isAway) {
      request.socket.destroy()
      return
    }
    if (request.headers.authorization !== expected) {
      refusals += 1
      response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end()
      return
    }
    const name = `${request.method} ${new URL(request.url ?? '/', 'https://x').pathname}`
    requests.push(name)
    if (serveLfs(root, url, request, response)) return
    serve(root, request, response, async () => gate?.(name))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `https://localhost:${port}`

  const ca = join(directory, 'ca.crt')
  const store = join(directory, 'credentials')
  const config = join(directory, 'gitconfig')
  writeFileSync(ca, tls.ca.cert)
  writeFileSync(store, `https://${user}:${encodeURIComponent(password)}@localhost%3a${port}\n`, { mode: 0o600 })
  writeFileSync(config, `[credential]\n\thelper = store --file=${store}\n[http]\n\tsslCAInfo = ${ca}\n`)

  return {
    url,
    environment: { GIT_CONFIG_GLOBAL: config },
    requests,
    refused: () => refusals,
    hold(next) {
      gate = next
    },
    setAway(next) {
      isAway = next
      if (isAway) server.closeAllConnections()
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}

/** One request through `git http-backend`, the way a web server runs a CGI program. */
function serve(root: string, request: IncomingMessage, response: ServerResponse, mayAnswer: () => Promise<void>): void {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'https://x')
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH ?? '',
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      // The repositories of a test may belong to another user than the one who serves them.
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      GIT_COMMITTER_NAME: user,
      GIT_COMMITTER_EMAIL: `${user}@localhost`,
      REMOTE_USER: user,
      REQUEST_METHOD: request.method ?? 'GET',
      PATH_INFO: pathname,
      QUERY_STRING: searchParams.toString(),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      ...(request.headers['content-length'] ? { CONTENT_LENGTH: request.headers['content-length'] } : {}),
      ...(request.headers['content-encoding'] ? { HTTP_CONTENT_ENCODING: request.headers['content-encoding'] } : {}),
      ...(request.headers['git-protocol'] ? { GIT_PROTOCOL: String(request.headers['git-protocol']) } : {}),
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  request.pipe(child.stdin)
  child.stdin.on('error', () => undefined) // it may answer before it has read everything
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.once('close', () => {
    void mayAnswer().then(() => answer(response, Buffer.concat(chunks)))
  })
}

function answer(response: ServerResponse, output: Buffer): void {
  const end = output.indexOf('\r\n\r\n')
  let status = 200
  for (const line of output.subarray(0, end).toString('latin1').split('\r\n')) {
    const [, name = '', value = ''] = /^([^:]+):\s*(.*)$/.exec(line) ?? []
    if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10)
    else if (name) response.setHeader(name, value)
  }
  response.statusCode = status
  response.end(output.subarray(end + 4))
}
