import { type CustomResourceDefinition, convertTo, isConvertible, type KubeObject } from '@corral/resources'
import { apiError } from '../errors/api-error.js'

/**
 * How objects of a definition move between its versions: by a built-in converter where there is one, whatever strategy
 * the definition names; with strategy `None` only `apiVersion` changes. A webhook is never called: 500.
 */
export function converterFor(crd: CustomResourceDefinition): (object: KubeObject, apiVersion: string) => KubeObject {
  const isWebhook = crd.spec?.conversion?.strategy === 'Webhook'
  return (object, apiVersion) => {
    if (isConvertible(object)) return convertTo(object, apiVersion)
    if (!isWebhook) return { ...object, apiVersion }
    throw apiError(500, 'InternalError', `conversion webhook for ${object.apiVersion}, Kind=${object.kind} failed`)
  }
}
