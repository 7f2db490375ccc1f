import type { Registry } from '../ecosystem.js'

export const basicAuthorization = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** A registry from an address of a settings file. A password in the address becomes a header. `undefined`: no address. */
export function registryFrom(address: string | undefined, authorization?: string): Registry | undefined {
  if (!address || !URL.canParse(address)) return undefined
  const url = new URL(address)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined
  const inAddress =
    url.username || url.password
      ? basicAuthorization(decodeURIComponent(url.username), decodeURIComponent(url.password))
      : undefined
  url.username = ''
  url.password = ''
  url.hash = ''
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  const header = inAddress ?? authorization
  return { url, ...(header && { authorization: header }) }
}
