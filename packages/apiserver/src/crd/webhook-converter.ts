import type { KubeObject } from '@corral/resources'
import { ApiError, apiError } from '../errors/api-error.js'
import { type ConversionWebhook, callConversionWebhook } from './conversion-webhook.js'

/** Results that are kept until a view or a write has used them. */
const MAX_KNOWN = 4_096

/** Thrown where a conversion is needed at once and not known yet: after `load` the same can be tried again. */
export class ConversionPending extends ApiError {
  constructor(
    object: KubeObject,
    readonly load: () => Promise<void>,
  ) {
    super(failure(object, 'its answer is not there yet').status)
  }
}

const failure = (object: KubeObject, why: string): ApiError =>
  apiError(500, 'InternalError', `conversion webhook for ${object.apiVersion}, Kind=${object.kind} failed: ${why}`)

/**
 * Converts by asking a webhook. Everything a request decides happens in one turn, so answers are fetched beforehand:
 * `convert` gives what is known and throws a `ConversionPending` otherwise. What is known goes by the content of an
 * object, whatever its version and times are.
 */
export class WebhookConverter {
  private readonly known = new Map<string, KubeObject>()

  constructor(private readonly webhook: ConversionWebhook) {}

  convert(object: KubeObject, apiVersion: string): KubeObject {
    if (object.apiVersion === apiVersion) return object
    const converted = this.known.get(keyOf(object, apiVersion))
    if (!converted) throw new ConversionPending(object, () => this.loadBoth(object, apiVersion))
    const { labels, annotations } = converted.metadata ?? {}
    const { labels: _labels, annotations: _annotations, ...metadata } = object.metadata ?? {}
    return {
      ...converted,
      metadata: { ...metadata, ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) },
    }
  }

  /** Asks for all of these in one version, as far as that is not known. */
  async load(objects: readonly KubeObject[], apiVersion: string): Promise<void> {
    const asked = objects.filter(
      (object) => object.apiVersion !== apiVersion && !this.known.has(keyOf(object, apiVersion)),
    )
    const [first] = asked
    if (!first) return
    let converted: readonly KubeObject[]
    try {
      converted = await callConversionWebhook(this.webhook, asked, apiVersion)
    } catch (error) {
      throw failure(first, error instanceof Error ? error.message : String(error))
    }
    for (const [index, object] of asked.entries()) this.keep(keyOf(object, apiVersion), converted[index]!)
  }

  /** The object in another version and back: what is sent is stored in the one and shown in the other. */
  private async loadBoth(object: KubeObject, apiVersion: string): Promise<void> {
    await this.load([object], apiVersion)
    await this.load([this.convert(object, apiVersion)], object.apiVersion ?? '')
  }

  private keep(key: string, converted: KubeObject): void {
    this.known.set(key, converted)
    if (this.known.size <= MAX_KNOWN) return
    const [oldest] = this.known.keys()
    if (oldest !== undefined) this.known.delete(oldest)
  }
}

function keyOf(object: KubeObject, apiVersion: string): string {
  const { metadata, ...content } = object
  return JSON.stringify([apiVersion, content, metadata?.labels, metadata?.annotations])
}
