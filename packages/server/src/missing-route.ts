import type { Context, NotFoundHandler } from 'hono'
import { describe } from './http-error.js'

/** A route as the framework lists it. */
interface ListedRoute {
  method: string
  path: string
}

/** Answers what no route took: 405 with the methods the path has, or 404. `OPTIONS` answers the methods alone. */
export function missingRoute(routes: () => readonly ListedRoute[]): NotFoundHandler {
  return (context: Context) => {
    const { method, path } = context.req
    const allowed = allowedMethods(routes(), path)
    if (allowed.length === 0) {
      const hint = path.slice(1).includes('//')
        ? 'A part of the path is empty: a variable of the shell may not be set.'
        : 'See /openapi.json for the routes.'
      return context.json(describe('NotFound', `there is no ${path.slice(0, 200)}`, 404, hint).body, 404)
    }
    const allow = allowed.join(', ')
    if (method === 'OPTIONS') return context.body(null, 204, { allow })
    const { body } = describe('MethodNotAllowed', `${path} does not take ${method}`, 405, `Use one of: ${allow}.`)
    return context.json(body, 405, { allow })
  }
}

function allowedMethods(routes: readonly ListedRoute[], path: string): string[] {
  const methods = new Set<string>()
  for (const route of routes) {
    if (route.method === 'ALL' || !matches(route.path, path)) continue
    methods.add(route.method)
    if (route.method === 'GET') methods.add('HEAD')
  }
  return [...methods].sort()
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/')
  const given = path.split('/')
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => (part.startsWith(':') ? given[index] !== '' : part === given[index]))
  )
}
