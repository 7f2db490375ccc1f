import type { IncomingHttpHeaders, ServerResponse } from 'node:http'

/** What the model says in one turn. */
export type ModelBlock =
  | { type: 'text'; text: string }
  | {
      type: 'tool_use'
      name: string
      input: Readonly<Record<string, unknown>>
      /** Where the tool is one of a group of tools, as the Responses API has them. */
      namespace?: string
    }

export interface ModelRequest {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: unknown
}

export type ModelUsage = { input: number; output: number }

/** How one wire API is spoken. */
export interface WireApi {
  matches(path: string): boolean
  /** Requests without tools are the client's side questions and do not advance the script. */
  isSideQuestion(body: never): boolean
  /** How many turns of the script the history already holds: each ended with the results of its tools. */
  turnOf(body: never): number
  speak(
    response: ServerResponse,
    answer: { body: never; blocks: readonly ModelBlock[]; turn: number; usage: ModelUsage },
  ): void
  /** The beginning of an answer, for one that breaks off. */
  beginning(usage: ModelUsage): string
  errorBody(status: number): object
}

export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** Starts server-sent events; answers how to send one, with its name where the API has names. */
export function openEvents(response: ServerResponse): (data: object, name?: string) => void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  return (data, name) => void response.write(eventText(data, name))
}

export const eventText = (data: object, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`
