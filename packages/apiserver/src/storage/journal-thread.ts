import { parentPort, workerData } from 'node:worker_threads'
import { SqliteJournal } from './sqlite-journal.js'
import { StorageError } from './storage.js'
import type { ThreadOptions, ThreadReply, ThreadRequest } from './thread-journal.js'

// The program of the journal's thread: one request after the other, each answered when it is done.
const port = parentPort
if (!port) throw new Error('this file runs as a thread of the API server')
const { directory, durability } = workerData as ThreadOptions
const journal = new SqliteJournal(directory, durability)
const reply = (message: ThreadReply): void => port.postMessage(message)

port.on('message', (request: ThreadRequest) => {
  perform(request).then(reply, (error: unknown) => reply(failure(error)))
})

async function perform(request: ThreadRequest): Promise<ThreadReply> {
  switch (request.type) {
    case 'open':
      return { type: 'done', state: await journal.open((entries) => reply({ type: 'entries', entries })) }
    case 'commit':
      journal.commitSync(request.entries)
      return { type: 'done' }
    case 'close':
      await journal.close()
      return { type: 'done' }
  }
}

function failure(error: unknown): ThreadReply {
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : ''
  const message = `${error instanceof Error ? error.message : String(error)}${cause}`
  return { type: 'failed', message, ...(error instanceof StorageError ? { code: error.code } : {}) }
}
