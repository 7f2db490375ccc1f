import { describe, expect, it } from 'vitest'
import { addressErrors, addressWarnings, cidrWarnings, isInside, parseAddress, parseCidr } from './addresses.js'

const future = 'will be considered invalid in a future Kubernetes release: use'

describe('addresses', () => {
  it.each<{ text: string; warns: string[] }>([
    { text: '10.1.2.3', warns: [] },
    { text: 'fd00::1', warns: [] },
    { text: '010.1.2.3', warns: [`f: non-standard IP address "010.1.2.3" ${future} "10.1.2.3"`] },
    { text: '::ffff:1.2.3.4', warns: [`f: non-standard IP address "::ffff:1.2.3.4" ${future} "1.2.3.4"`] },
    { text: 'FD00:0::1', warns: ['f: IPv6 address "FD00:0::1" should be in RFC 5952 canonical format ("fd00::1")'] },
    { text: 'nope', warns: [] },
  ])('$text is met with $warns', ({ text, warns }) => {
    expect(addressWarnings('f', text)).toEqual(warns)
  })

  it.each<{ text: string; warns: string[] }>([
    { text: '10.0.0.0/8', warns: [] },
    { text: '0.0.0.0/0', warns: [] },
    {
      text: '10.1.2.3/8',
      warns: ['f: CIDR value "10.1.2.3/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.1.2.3/32"?)'],
    },
    { text: '10.0.0.0/08', warns: [`f: non-standard CIDR value "10.0.0.0/08" ${future} "10.0.0.0/8"`] },
    { text: '::ffff:1.2.3.0/120', warns: [`f: non-standard CIDR value "::ffff:1.2.3.0/120" ${future} "1.2.3.0/24"`] },
    { text: 'FD00::/8', warns: ['f: IPv6 CIDR value "FD00::/8" should be in RFC 5952 canonical format ("fd00::/8")'] },
  ])('$text is met with $warns', ({ text, warns }) => {
    expect(cidrWarnings('f', text)).toEqual(warns)
  })

  it.each(['', '1.2.3', '1.2.3.256', '::1%eth0', '1.2.3.4/8', 5, undefined])('%j is none', (text) => {
    expect(parseAddress(text)).toBeUndefined()
  })

  it.each(['10.0.0.0', '10.0.0.0/33', 'fd00::/129', '10.0.0.0/x', '10.0.0.0/8/8'])('%j is no network', (text) => {
    expect(parseCidr(text)).toBeUndefined()
  })

  it.each<{ text: string; family?: 'IPv4' | 'IPv6'; says: string | undefined }>([
    { text: '10.1.2.3', says: undefined },
    { text: '127.0.0.1', says: 'loopback' },
    { text: '::1', says: 'loopback' },
    { text: '0.0.0.0', says: 'unspecified' },
    { text: '169.254.1.1', says: 'link-local range' },
    { text: 'fe80::1', says: 'link-local range' },
    { text: '224.0.0.9', says: 'multicast' },
    { text: 'ff02::9', says: 'multicast' },
    { text: 'fd00::1', family: 'IPv4', says: 'must be an IPv4 address' },
    { text: '10.1.2.3', family: 'IPv6', says: 'must be an IPv6 address' },
    { text: 'FD00::1', family: 'IPv6', says: 'canonical form ("fd00::1")' },
    { text: 'nope', says: 'must be a valid IP address' },
  ])('$text for others to reach: $says', ({ text, family, says }) => {
    const [error] = addressErrors('f', text, family)
    if (says === undefined) expect(error).toBeUndefined()
    else expect(error?.message).toContain(says)
  })

  it('a network is inside another that is larger and of its family', () => {
    const inside = (inner: string, whole: string) => isInside(parseCidr(inner)!, parseCidr(whole)!)
    expect(inside('10.1.0.0/16', '10.0.0.0/8')).toBe(true)
    expect(inside('11.1.0.0/16', '10.0.0.0/8')).toBe(false)
    expect(inside('10.0.0.0/8', '10.0.0.0/8')).toBe(false)
    expect(inside('fd00::/16', '10.0.0.0/8')).toBe(false)
    expect(inside('fd00:1::/32', 'fd00::/9')).toBe(true)
  })
})
