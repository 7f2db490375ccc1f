export interface DnsQuestion {
  /** In lower case, without a dot at its end; undefined when it has a label no host name has. */
  name: string | undefined
  type: number
  /** Offset behind the question, where an answer section would begin. */
  end: number
}

export const dnsTypeA = 1
const classIn = 1
const headerBytes = 12
const ttlSeconds = 30

const plainName = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/
const longestName = 253

/**
 * Whether a name is made of the characters host names are made of and nothing else. A label may carry any byte on the
 * wire: a dot or a NUL in one would mean one name to the rule it is compared with and another to the resolver.
 */
export function isPlainName(name: string): boolean {
  return name.length <= longestName && plainName.test(name)
}

/** The single question of a query, or undefined for anything else (an answer, several questions, a broken name). */
export function readDnsQuestion(message: Buffer): DnsQuestion | undefined {
  if (message.length < headerBytes + 5 || message.readUInt16BE(4) !== 1) return undefined
  if ((message.readUInt16BE(2) & 0x8000) !== 0) return undefined
  const labels: string[] = []
  let at = headerBytes
  for (let length = message[at]; length !== 0; length = message[at]) {
    if (length === undefined || length > 63 || at + 1 + length >= message.length) return undefined
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  if (at + 5 > message.length || message.readUInt16BE(at + 3) !== classIn) return undefined
  const name = labels.join('.').toLowerCase()
  const isPlain = labels.every((label) => !label.includes('.')) && isPlainName(name)
  return { name: isPlain ? name : undefined, type: message.readUInt16BE(at + 1), end: at + 5 }
}

/**
 * The answer to a query: the address for an A question, no data for other types of a known name, NXDOMAIN for a name
 * that is not allowed.
 */
export function writeDnsAnswer(query: Buffer, question: DnsQuestion, address: string | undefined): Buffer {
  const header = Buffer.from(query.subarray(0, headerBytes))
  const hasAnswer = address !== undefined && question.type === dnsTypeA
  const recursionDesired = query.readUInt16BE(2) & 0x0100
  header.writeUInt16BE(0x8080 | recursionDesired | (address === undefined ? 3 : 0), 2)
  header.writeUInt16BE(hasAnswer ? 1 : 0, 6)
  header.writeUInt32BE(0, 8)
  const parts = [header, query.subarray(headerBytes, question.end)]
  if (hasAnswer) {
    const record = Buffer.from([0xc0, headerBytes, 0, dnsTypeA, 0, classIn, 0, 0, 0, ttlSeconds, 0, 4])
    parts.push(record, Buffer.from(address.split('.').map(Number)))
  }
  return Buffer.concat(parts)
}
