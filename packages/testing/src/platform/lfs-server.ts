import { createReadStream, createWriteStream, existsSync, mkdirSync, renameSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/**
 * Answers requests of git-lfs for a repository below `root`: the batch call and the basic transfer, contents kept where
 * git-lfs itself would keep them. False for a request that is not one.
 */
export function serveLfs(root: string, url: string, request: IncomingMessage, response: ServerResponse): boolean {
  const match = /^\/([\w.-]+\.git)\/info\/lfs\/(objects\/batch|contents\/([0-9a-f]{64}))$/.exec(request.url ?? '')
  if (!match) return false
  const [, name = '', , oid] = match
  const pathOf = (id: string): string => join(root, name, 'lfs', 'objects', id.slice(0, 2), id.slice(2, 4), id)
  const answered = oid
    ? transfer(pathOf(oid), request, response)
    : batch(request, response, (id) => existsSync(pathOf(id)), `${url}/${name}/info/lfs/contents`)
  answered.catch((error: unknown) => response.destroy(error as Error))
  return true
}

async function batch(
  request: IncomingMessage,
  response: ServerResponse,
  has: (oid: string) => boolean,
  contents: string,
): Promise<void> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  const { operation, objects } = JSON.parse(text) as {
    operation: 'upload' | 'download'
    objects: { oid: string; size: number }[]
  }
  const answers = objects.map(({ oid, size }) => {
    if (operation === 'download' && !has(oid)) return { oid, size, error: { code: 404, message: 'no such content' } }
    if (operation === 'upload' && has(oid)) return { oid, size }
    return {
      oid,
      size,
      authenticated: true,
      actions: { [operation]: { href: `${contents}/${oid}`, header: headerOf(request) } },
    }
  })
  response
    .writeHead(200, { 'content-type': 'application/vnd.git-lfs+json' })
    .end(JSON.stringify({ transfer: 'basic', objects: answers }))
}

const headerOf = (request: IncomingMessage): Record<string, string> => ({
  Authorization: request.headers.authorization ?? '',
})

async function transfer(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'PUT') {
    mkdirSync(dirname(path), { recursive: true })
    await pipeline(request, createWriteStream(`${path}.new`))
    renameSync(`${path}.new`, path)
    response.writeHead(200).end()
    return
  }
  response.writeHead(200, { 'content-type': 'application/octet-stream' })
  await pipeline(createReadStream(path), response)
}
