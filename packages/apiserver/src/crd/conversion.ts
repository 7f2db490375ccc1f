import { type CustomResourceDefinition, convertTo, isConvertible, type KubeObject } from '@corral/resources'
import { apiError } from '../errors/api-error.js'
import { localWebhook } from './conversion-webhook.js'
import { WebhookConverter } from './webhook-converter.js'

/** How objects of one definition move between its versions. */
export interface Converter {
  convert(object: KubeObject, apiVersion: string): KubeObject
  /** Fetches from the webhook what `convert` will need; absent without a webhook. */
  load?(objects: readonly KubeObject[], apiVersion: string): Promise<void>
}

/**
 * A built-in converter where there is one, whatever strategy the definition names; with strategy `None` only `apiVersion`
 * changes. A webhook is called on this machine; any other is out of reach: 500.
 */
export function converterFor(crd: CustomResourceDefinition): Converter {
  const { group = '', names, versions = [], conversion } = crd.spec ?? {}
  const served = versions.filter((version) => version.served).map(({ name }) => `${group}/${name}`)
  const isBuiltIn = served.some((apiVersion) => isConvertible({ apiVersion, kind: names?.kind ?? '' }))
  if (isBuiltIn) return { convert: convertTo }
  if (conversion?.strategy !== 'Webhook') return { convert: (object, apiVersion) => ({ ...object, apiVersion }) }
  const webhook = localWebhook(crd)
  return webhook ? new WebhookConverter(webhook) : { convert: unreachable }
}

function unreachable(object: KubeObject): never {
  throw apiError(500, 'InternalError', `conversion webhook for ${object.apiVersion}, Kind=${object.kind} failed`)
}
