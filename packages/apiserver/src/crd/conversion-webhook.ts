import { randomUUID } from 'node:crypto'
import { request } from 'node:https'
import type { CustomResourceDefinition, KubeObject } from '@corral/resources'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'

export interface ConversionWebhook {
  readonly url: URL
  /** Who signed its certificate, PEM; the authorities of the system without it. */
  readonly ca?: string
}

const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/** The webhook of a definition, when it is on this machine; there is no network of services behind any other. */
export function localWebhook(crd: CustomResourceDefinition): ConversionWebhook | undefined {
  const { strategy, webhook } = crd.spec?.conversion ?? {}
  const { url: text, caBundle } = webhook?.clientConfig ?? {}
  if (strategy !== 'Webhook' || !text || !URL.canParse(text)) return undefined
  const url = new URL(text)
  if (!/^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)) return undefined
  return { url, ...(caBundle ? { ca: Buffer.from(caBundle, 'base64').toString('utf8') } : {}) }
}

/** Asks for the objects in another version; rejects with the reason when the answer is not about exactly these. */
export async function callConversionWebhook(
  webhook: ConversionWebhook,
  objects: readonly KubeObject[],
  apiVersion: string,
): Promise<KubeObject[]> {
  const uid = randomUUID()
  const review = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    request: { uid, desiredAPIVersion: apiVersion, objects },
  }
  const answer: unknown = JSON.parse(await post(webhook, JSON.stringify(review)))
  const response = isJsonObject(answer) && isJsonObject(answer.response) ? answer.response : {}
  const result: JsonObject = isJsonObject(response.result) ? response.result : {}
  if (result.status !== 'Success') throw new Error(String(result.message ?? 'the answer is no success'))
  if (response.uid !== uid) throw new Error('the answer is to another request')
  const converted = Array.isArray(response.convertedObjects) ? response.convertedObjects.filter(isJsonObject) : []
  if (converted.length !== objects.length)
    throw new Error(`${converted.length} objects came back of ${objects.length} that were sent`)
  const isWrong = converted.some((each, index) => each.apiVersion !== apiVersion || each.kind !== objects[index]?.kind)
  if (isWrong) throw new Error('an object came back as another kind or in another version')
  return converted as KubeObject[]
}

function post({ url, ca }: ConversionWebhook, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const outgoing = request(
      url,
      { method: 'POST', headers, agent: false, signal: AbortSignal.timeout(TIMEOUT_MS), ...(ca ? { ca } : {}) },
      (response) => {
        const chunks: Buffer[] = []
        let size = 0
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          size += chunk.length
          if (size > MAX_ANSWER_BYTES) outgoing.destroy(new Error('the answer is too large'))
        })
        response.on('error', reject)
        response.on('end', () => {
          if (response.statusCode === 200) resolve(Buffer.concat(chunks).toString('utf8'))
          else reject(new Error(`it answers ${response.statusCode}`))
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
