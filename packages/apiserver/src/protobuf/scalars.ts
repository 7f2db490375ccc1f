import type { ScalarType } from '@corral/resources'
import { malformed, readFields } from './wire.js'

type WireValue = number | bigint | Uint8Array

const decoder = new TextDecoder('utf-8', { fatal: true })

/** A scalar as JSON has it. Undefined is a value that says nothing (a time that was never set). */
export function decodeScalar(scalar: ScalarType, value: WireValue): unknown {
  switch (scalar) {
    case 'string':
      return text(bytesOf(value))
    case 'int32':
    case 'int64':
      return Number(numberOf(value))
    case 'boolean':
      return numberOf(value) !== 0
    case 'double':
      return Number(numberOf(value))
    case 'bytes':
      return Buffer.from(bytesOf(value)).toString('base64')
    case 'quantity':
      return firstText(bytesOf(value)) ?? '0'
    case 'intOrString':
      return intOrString(bytesOf(value))
    case 'time':
      return timestamp(bytesOf(value), 'seconds')
    case 'microTime':
      return timestamp(bytesOf(value), 'micros')
    case 'duration':
      return goDuration(firstNumber(bytesOf(value)))
    case 'fieldsV1':
    case 'rawExtension':
    case 'json':
      return embeddedJson(bytesOf(value))
  }
}

/** Whether Go would leave this value out of JSON. */
export function isZero(value: unknown): boolean {
  return value === undefined || value === '' || value === 0 || value === false
}

/** UTF-8 text; malformed bytes are refused. */
export function text(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw malformed(`text is not UTF-8 (${cause instanceof Error ? cause.message : 'unreadable'})`)
  }
}

export function bytesOf(value: WireValue): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw malformed('a number stands where bytes belong')
}

function numberOf(value: WireValue): number | bigint {
  if (value instanceof Uint8Array) throw malformed('bytes stand where a number belongs')
  return value
}

function firstText(bytes: Uint8Array): string | undefined {
  for (const { number, value } of readFields(bytes)) if (number === 1) return text(bytesOf(value))
  return undefined
}

function firstNumber(bytes: Uint8Array): bigint {
  for (const { number, value } of readFields(bytes)) if (number === 1) return BigInt(numberOf(value))
  return 0n
}

function intOrString(bytes: Uint8Array): number | string {
  let isText = false
  let int = 0
  let string = ''
  for (const { number, value } of readFields(bytes)) {
    if (number === 1) isText = numberOf(value) !== 0
    else if (number === 2) int = Number(numberOf(value))
    else if (number === 3) string = text(bytesOf(value))
  }
  return isText ? string : int
}

function timestamp(bytes: Uint8Array, precision: 'seconds' | 'micros'): string | undefined {
  if (bytes.length === 0) return undefined
  let seconds = 0
  let nanos = 0
  for (const { number, value } of readFields(bytes)) {
    if (number === 1) seconds = Number(numberOf(value))
    else if (number === 2) nanos = Number(numberOf(value))
  }
  const date = new Date(seconds * 1000)
  if (Number.isNaN(date.getTime())) throw malformed('a time is out of range')
  const day = date.toISOString().slice(0, -5)
  return precision === 'seconds' ? `${day}Z` : `${day}.${String(Math.trunc(nanos / 1000)).padStart(6, '0')}Z`
}

/** Nanoseconds as Go writes a duration: `1h0m0s`, `1.5s`, `20ms`. */
function goDuration(nanos: bigint): string {
  const sign = nanos < 0n ? '-' : ''
  const total = nanos < 0n ? -nanos : nanos
  if (total === 0n) return '0s'
  const units: [string, bigint][] = [
    ['ns', 1n],
    ['µs', 1_000n],
    ['ms', 1_000_000n],
  ]
  for (const [unit, size] of units) if (total < size * 1_000n) return sign + decimal(total, size) + unit
  const seconds = decimal(total % 60_000_000_000n, 1_000_000_000n)
  const minutes = total / 60_000_000_000n
  if (minutes === 0n) return `${sign}${seconds}s`
  return minutes < 60n ? `${sign}${minutes}m${seconds}s` : `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}s`
}

function decimal(value: bigint, unit: bigint): string {
  const rest = value % unit
  if (rest === 0n) return String(value / unit)
  const digits = String(rest).padStart(String(unit).length - 1, '0')
  return `${value / unit}.${digits.replace(/0+$/, '')}`
}

function embeddedJson(bytes: Uint8Array): unknown {
  for (const { number, value } of readFields(bytes)) {
    if (number !== 1) continue
    const raw = bytesOf(value)
    if (raw.length === 0) return undefined
    try {
      return JSON.parse(text(raw)) as unknown
    } catch (cause) {
      throw malformed(`embedded JSON does not parse (${cause instanceof Error ? cause.message : 'unreadable'})`)
    }
  }
  return undefined
}
