import { readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { StreamFrame, StreamRequest } from '@corral/protocol'
import { corralProgram, hangMs } from '@corral/testing'
import type { Browser, BrowserContext, Page, Route, WebSocketRoute } from 'playwright-core'

/** Where the pages seem to come from: nothing answers there but what a test scripts. */
export const scriptedOrigin = 'http://corral.test'

const files = join(corralProgram, '..', 'web')
const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.woff2': 'font/woff2',
}

/** What a scripted platform answers: a value as JSON, text as it is, a function to do something else. */
export type Answer = object | string | ((route: Route) => Promise<void>)

export interface ScriptedPlatform {
  /** By path, or method and path. A path that is not here is 404. */
  readonly answers: Readonly<Record<string, Answer>>
  /** What every new stream gets at once. */
  readonly first?: readonly StreamFrame[]
  /** What a subscription is answered with. */
  onSubscribe?(request: Extract<StreamRequest, { type: 'subscribe' }>): readonly StreamFrame[]
}

export interface ScriptedTab {
  readonly page: Page
  readonly context: BrowserContext
  /** Requests that changed something: `POST /tasks/x/approve {…}`. */
  readonly sent: string[]
  /** Sends to every open stream. */
  send(...frames: StreamFrame[]): void
  /** Closes every stream, and refuses new ones while `isDown`. */
  setDown(isDown: boolean): void
}

/**
 * The real pages, as built, in a browser, on a platform that a test makes up: for what no real one shows at will (a picture
 * that stays the same, five thousand tasks, an answer that never comes).
 */
export async function openScripted(
  browser: Browser,
  platform: ScriptedPlatform,
  options: { width?: number; height?: number; colorScheme?: 'light' | 'dark'; now?: Date } = {},
): Promise<ScriptedTab> {
  const { width = 1280, colorScheme = 'dark', height = width < 500 ? 780 : 760 } = options
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, reducedMotion: 'reduce' })
  context.setDefaultTimeout(hangMs)
  const page = await context.newPage()
  if (options.now) await page.clock.setFixedTime(options.now)
  const sent: string[] = []
  const sockets = new Set<WebSocketRoute>()
  let isDown = false
  await page.routeWebSocket(/\/stream/, (socket) => {
    if (isDown) return void socket.close()
    sockets.add(socket)
    socket.onClose(() => sockets.delete(socket))
    socket.onMessage((text) => {
      const request = JSON.parse(String(text)) as StreamRequest
      if (request.type !== 'subscribe') return
      for (const frame of platform.onSubscribe?.(request) ?? []) socket.send(JSON.stringify(frame))
    })
    for (const frame of platform.first ?? []) socket.send(JSON.stringify(frame))
  })
  await context.route(`${scriptedOrigin}/**`, (route) => (isDown ? route.abort() : answer(route, platform, sent)))
  return {
    page,
    context,
    sent,
    send(...frames) {
      for (const socket of sockets) for (const frame of frames) socket.send(JSON.stringify(frame))
    },
    setDown(next) {
      isDown = next
      if (!isDown) return
      for (const socket of sockets) void socket.close()
      sockets.clear()
    },
  }
}

async function answer(route: Route, { answers }: ScriptedPlatform, sent: string[]): Promise<void> {
  const request = route.request()
  const { pathname, search } = new URL(request.url())
  const method = request.method()
  if (pathname.startsWith('/assets/'))
    return route.fulfill({ body: readFileSync(join(files, pathname)), contentType: types[extname(pathname)] ?? '' })
  if (request.headers().accept?.startsWith('text/html'))
    return route.fulfill({ body: readFileSync(join(files, 'index.html')), contentType: 'text/html; charset=utf-8' })
  if (method !== 'GET') sent.push(`${method} ${pathname} ${request.postData() ?? ''}`.trim())
  const found = answers[`${method} ${pathname}${search}`] ?? answers[`${method} ${pathname}`] ?? answers[pathname]
  if (typeof found === 'function') return found(route)
  if (typeof found === 'string') return route.fulfill({ body: found, contentType: 'text/plain; charset=utf-8' })
  if (found) return route.fulfill({ json: found })
  const error = { code: 'NotFound', message: `nothing is scripted for ${method} ${pathname}` }
  return route.fulfill({ status: 404, json: { error } })
}
