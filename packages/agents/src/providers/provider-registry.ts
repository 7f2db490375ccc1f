import { anthropic } from './anthropic/anthropic.js'
import { google } from './google/google.js'
import { openai } from './openai/openai.js'
import type { Provider } from './provider.js'

/** Every provider, by name. */
export const providers: ReadonlyMap<string, Provider> = new Map(
  [anthropic, openai, google].map((provider) => [provider.name, provider]),
)

/** The provider of this name, or undefined. */
export function findProvider(name: string): Provider | undefined {
  return providers.get(name)
}
