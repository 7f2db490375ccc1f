import { parentPort } from 'node:worker_threads'
import { type MeasureRequest, measurePod } from './pod-usage.js'

// The program of the thread that counts what pods take: one request after the other, each answered when it is done.
const port = parentPort
if (!port) throw new Error('this file runs as a thread of the node agent')
port.on('message', (request: MeasureRequest) => port.postMessage(measurePod(request)))
