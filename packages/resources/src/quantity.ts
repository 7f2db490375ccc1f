/**
 * Kubernetes quantities: a number with a decimal (`500m`, `2k`), binary (`1Gi`) or exponent (`1e3`) suffix, kept exactly
 * down to a nano. Finer amounts round away from zero; binary ones larger than an int64 are capped.
 */
export interface Quantity {
  readonly nanos: bigint
  readonly format: 'DecimalSI' | 'BinarySI' | 'DecimalExponent'
  /** The text as read, where Kubernetes takes it for canonical and keeps it. */
  readonly text?: string
}

const NANO = 1_000_000_000n
const MAX_NANOS = (2n ** 63n - 1n) * NANO
/** Larger exponents are refused: no resource is that large, and their digits would not fit into memory. */
const MAX_POWER = 400
const DECIMAL_SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const SYNTAX = /^([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?\d+))$/

/** The quantity, or undefined when the text is none. A number stands for its decimal text. */
export function parseQuantity(input: string | number): Quantity | undefined {
  const text = String(input)
  const match = SYNTAX.exec(text)
  if (!match) return undefined
  const [, sign, whole = '', fraction = '', binary, decimal, exponent] = match
  if (whole === '' && fraction === '') return undefined

  const digits = BigInt(whole + fraction)
  const format = binary ? 'BinarySI' : exponent === undefined ? 'DecimalSI' : 'DecimalExponent'
  const power10 = exponent === undefined ? 3 * (DECIMAL_SUFFIXES.indexOf(decimal ?? '') - 3) : Number(exponent)
  const scale2 = binary ? 1024n ** BigInt(BINARY_SUFFIXES.indexOf(binary)) : 1n
  if (Math.abs(power10) > MAX_POWER) return undefined
  const magnitude = scaled(digits * scale2, 9 + power10 - fraction.length)
  const capped = binary && magnitude > MAX_NANOS ? MAX_NANOS : magnitude
  const nanos = sign === '-' ? -capped : capped
  const small = binary !== undefined && capped > 0n && capped < NANO
  const kept = binary
    ? keepsBinaryText(stripped(whole), fraction, BINARY_SUFFIXES.indexOf(binary))
    : keepsDecimalText(stripped(whole), fraction, power10)
  return { nanos, format: small ? 'DecimalSI' : format, ...(kept ? { text } : {}) }
}

/**
 * Kubernetes' canonical text: no fraction, the largest suffix that leaves a whole number, the format kept. A text that
 * Kubernetes takes for canonical at a glance (`1.500`, `+5m`) comes back as it was.
 */
export function formatQuantity({ nanos, format, text }: Quantity): string {
  if (text !== undefined) return text
  if (nanos === 0n) return '0'
  if (format === 'BinarySI') {
    const isWhole = nanos % NANO === 0n
    const isLarge = nanos >= 1024n * NANO || nanos <= -1024n * NANO
    if (isWhole && isLarge) return withSuffix(nanos / NANO, 1024n, BINARY_SUFFIXES)
  }
  if (format !== 'DecimalExponent') return withSuffix(nanos, 1000n, DECIMAL_SUFFIXES)
  const { mantissa, step } = reduce(nanos, 1000n, Number.POSITIVE_INFINITY)
  const exponent = 3 * step - 9
  return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`
}

/** The canonical text of a quantity's text, or undefined when it is none. */
export function canonicalQuantity(input: string | number): string | undefined {
  const quantity = parseQuantity(input)
  return quantity && formatQuantity(quantity)
}

/** Negative, zero or positive as a is less than, equal to or greater than b; the format does not count. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0
}

/** The sum, in the format of the first summand. */
export function addQuantities(a: Quantity, b: Quantity): Quantity {
  return { nanos: a.nanos + b.nanos, format: a.format }
}

/** The value in units (bytes, cores) as a JavaScript number, or undefined when the input is no quantity. */
export function quantityToNumber(input: string | number): number | undefined {
  const quantity = parseQuantity(input)
  if (!quantity) return undefined
  return Number(quantity.nanos / NANO) + Number(quantity.nanos % NANO) / 1e9
}

/** Kubernetes' quick test on decimal texts: at most 18 digits, a scale in steps of three, no zeros to move around. */
function keepsDecimalText(whole: string, fraction: string, power10: number): boolean {
  const digits = whole + fraction
  const scale = power10 - fraction.length
  return digits.length <= 18 && scale >= -9 && scale % 3 === 0 && !digits.endsWith('000') && !digits.startsWith('0')
}

/** Its test on binary texts: whole, safely inside an int64, and not divisible by eight. */
function keepsBinaryText(whole: string, fraction: string, step: number): boolean {
  return fraction === '' && whole.length + 3 * step + 1 <= 15 && (BigInt(whole) & 7n) !== 0n
}

function stripped(whole: string): string {
  return whole.replace(/^0+/, '') || '0'
}

function scaled(digits: bigint, power10: number): bigint {
  if (power10 >= 0) return digits * 10n ** BigInt(power10)
  const divisor = 10n ** BigInt(-power10)
  return (digits + divisor - 1n) / divisor
}

function withSuffix(value: bigint, base: bigint, suffixes: readonly string[]): string {
  const { mantissa, step } = reduce(value, base, suffixes.length - 1)
  return `${mantissa}${suffixes[step]}`
}

function reduce(value: bigint, base: bigint, maxSteps: number): { mantissa: bigint; step: number } {
  let mantissa = value
  let step = 0
  while (step < maxSteps && mantissa % base === 0n) {
    mantissa /= base
    step += 1
  }
  return { mantissa, step }
}
