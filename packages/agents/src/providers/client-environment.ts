import type { BrokerAccess } from '../agent-adapter.js'
import { findProvider } from './provider-registry.js'

/** The environment by which any program that uses a provider's API finds the broker. */
export function clientEnvironment({ kind, baseUrl, token }: BrokerAccess): Readonly<Record<string, string>> {
  return findProvider(kind)?.clientEnvironment(baseUrl, token) ?? {}
}
