import type { Logger } from '@corral/ports'
import { errorResponse } from '@corral/protocol'
import { failureResponse } from './failure-response.js'
import { deleteFile, getFile, headFile, putFile } from './file-routes.js'
import { pathAfter } from './request-input.js'
import { getTar, putTar } from './tar-routes.js'
import { getTree, watchPath } from './tree-routes.js'

const prefixes = { file: '/v1/files', tar: '/v1/tar', tree: '/v1/tree', watch: '/v1/watch' } as const

/** Serves the routes whose tail is a path of the sandbox, byte for byte; undefined where the request is not one. */
export async function servePath(request: Request, log: Logger): Promise<Response | undefined> {
  const url = new URL(request.url)
  try {
    if (url.pathname.startsWith(`${prefixes.file}/`)) return await serveFile(request, url)
    if (url.pathname.startsWith(`${prefixes.tar}/`)) return await serveTar(request, url)
    if (request.method === 'GET' && url.pathname.startsWith(`${prefixes.tree}/`)) {
      return await getTree(pathAfter(url, prefixes.tree), url)
    }
    if (request.method === 'GET' && url.pathname.startsWith(`${prefixes.watch}/`)) {
      return await watchPath(pathAfter(url, prefixes.watch), request.signal)
    }
    return undefined
  } catch (error) {
    return failureResponse(error, log)
  }
}

async function serveFile(request: Request, url: URL): Promise<Response> {
  const path = pathAfter(url, prefixes.file)
  switch (request.method) {
    case 'GET':
      return getFile(path)
    case 'HEAD':
      return headFile(path)
    case 'PUT':
      return putFile(path, url, request)
    case 'DELETE':
      return deleteFile(path, url)
    default:
      return errorResponse('MethodNotAllowed', `files have no ${request.method}`)
  }
}

async function serveTar(request: Request, url: URL): Promise<Response> {
  const path = pathAfter(url, prefixes.tar)
  switch (request.method) {
    case 'GET':
      return getTar(path)
    case 'PUT':
      return putTar(path, request)
    default:
      return errorResponse('MethodNotAllowed', `archives have no ${request.method}`)
  }
}
