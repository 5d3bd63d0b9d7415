import { type Address, printAddress, scanIPv4, scanIPv6 } from '../text/address.ts'
import { scanBase64 } from './binary.ts'
import { scanInteger } from './numbers.ts'
import { OctetReader, OctetWriter } from './octets.ts'
import { printText } from './strings.ts'

/** The service parameters that occur in rules between parameters (RFC 9460 section 14.3.2). */
export const SvcKey = { MANDATORY: 0, ALPN: 1, NO_DEFAULT_ALPN: 2 } as const
/** Reserved as the invalid key. */
const KEY_INVALID = 65535

/** The wire and text forms of the value of one service parameter. */
interface SvcValue {
  readonly name: string
  readonly isValid: (value: Uint8Array) => boolean
  /** Returns the text after `=`; '' if the parameter has no value. */
  readonly print: (value: Uint8Array) => string
  /** Parses the octets of the text, with escapes resolved; returns undefined if they are invalid. */
  readonly scan: (text: Uint8Array) => Uint8Array | undefined
}

const COMMA = 0x2c
const BACKSLASH = 0x5c

function ascii(octets: Uint8Array): string {
  return Buffer.from(octets).toString('latin1')
}

const printQuotedValue = (value: Uint8Array) => (value.length === 0 ? '' : `"${printText(value)}"`)

/** A value that must be empty. */
function flag(name: string): SvcValue {
  return {
    name,
    isValid: (value) => value.length === 0,
    print: () => '',
    scan: (text) => (text.length === 0 ? text : undefined),
  }
}

function hints(
  name: string,
  octets: 4 | 16,
  scanOne: (text: string) => Address | undefined,
): SvcValue {
  return {
    name,
    isValid: (value) => value.length > 0 && value.length % octets === 0,
    print: (value) => {
      const texts: string[] = []
      for (let at = 0; at < value.length; at += octets) {
        texts.push(printAddress(value.subarray(at, at + octets), octets === 4 ? 1 : 2))
      }
      return texts.join(',')
    },
    scan: (text) => {
      const output = new OctetWriter()
      for (const item of ascii(text).split(',')) {
        const address = scanOne(item)
        if (address === undefined) return undefined
        output.put(address.bytes)
      }
      return output.octets()
    },
  }
}

const mandatory: SvcValue = {
  name: 'mandatory',
  isValid: (value) => {
    const keys = mandatoryKeys(value)
    const isAscending = keys.every((key, i) => key > (keys[i - 1] ?? SvcKey.MANDATORY))
    return value.length > 0 && value.length % 2 === 0 && isAscending
  },
  print: (value) => mandatoryKeys(value).map(printSvcKey).join(','),
  scan: (text) => {
    const output = new OctetWriter()
    const keys = ascii(text).split(',').map(scanSvcKey)
    // An unknown key is sorted last and then rejected.
    for (const key of keys.sort((a, b) => (a ?? KEY_INVALID) - (b ?? KEY_INVALID))) {
      if (key === undefined) return undefined
      output.u16(key)
    }
    return output.octets()
  },
}

export function mandatoryKeys(value: Uint8Array): number[] {
  const keys: number[] = []
  for (let at = 0; at + 1 < value.length; at += 2) keys.push((value[at]! << 8) | value[at + 1]!)
  return keys
}

/** Length-prefixed protocol identifiers; in text a comma-separated list with its own escapes. */
const alpn: SvcValue = {
  name: 'alpn',
  isValid: (value) => {
    const ids = protocolIds(value)
    return ids !== undefined && ids.length > 0
  },
  print: (value) => {
    const ids = protocolIds(value) ?? []
    // The list escapes commas and backslashes before the string escapes backslashes again.
    const list = ids.map((id) => ascii(id).replace(/[\\,]/g, '\\$&')).join(',')
    return `"${printText(Buffer.from(list, 'latin1'))}"`
  },
  scan: (text) => {
    const output = new OctetWriter()
    for (const id of splitList(text)) {
      if (id.length === 0 || id.length > 255) return undefined
      output.u8(id.length)
      output.put(id)
    }
    return output.octets()
  },
}

function protocolIds(value: Uint8Array): Uint8Array[] | undefined {
  const ids: Uint8Array[] = []
  const input = new OctetReader(value, 0, value.length)
  while (input.remaining > 0) {
    const length = input.uint(1)
    const id = length === 0 ? undefined : input.take(length)
    if (id === undefined) return undefined
    ids.push(id)
  }
  return ids
}

/** Splits a list at commas; a backslash removes the special meaning of the next octet (RFC 9460 appendix A.1). */
function splitList(text: Uint8Array): Uint8Array[] {
  const items: Uint8Array[] = []
  let item: number[] = []
  for (let i = 0; i < text.length; i++) {
    if (text[i] === COMMA) {
      items.push(new Uint8Array(item))
      item = []
      continue
    }
    if (text[i] === BACKSLASH && i + 1 < text.length) i += 1
    item.push(text[i]!)
  }
  items.push(new Uint8Array(item))
  return items
}

const port: SvcValue = {
  name: 'port',
  isValid: (value) => value.length === 2,
  print: (value) => String((value[0]! << 8) | value[1]!),
  scan: (text) => {
    const number = scanInteger(ascii(text), 65535)
    return number === undefined ? undefined : new Uint8Array([number >> 8, number])
  },
}

const ech: SvcValue = {
  name: 'ech',
  isValid: (value) => value.length > 0,
  print: (value) => Buffer.from(value).toString('base64'),
  scan: (text) => scanBase64(ascii(text)),
}

/** A relative URI template with the variable `dns` (RFC 9461 section 5). */
const dohpath: SvcValue = {
  name: 'dohpath',
  isValid: (value) => {
    const text = Buffer.from(value)
    const template = text.toString('utf8')
    const isUtf8 = Buffer.compare(Buffer.from(template, 'utf8'), text) === 0
    if (!isUtf8 || !template.startsWith('/')) return false
    // One expression of many could match only by backtracking, in quadratic time.
    for (const [expression] of template.matchAll(/\{[^{}]*\}/g)) {
      if (/\bdns\b/.test(expression)) return true
    }
    return false
  },
  print: printQuotedValue,
  scan: (text) => text,
}

const unknown: SvcValue = {
  name: '',
  isValid: () => true,
  print: printQuotedValue,
  scan: (text) => text,
}

/** The known parameters, by key. */
const knownValues: readonly SvcValue[] = [
  mandatory,
  alpn,
  flag('no-default-alpn'),
  port,
  hints('ipv4hint', 4, scanIPv4),
  ech,
  hints('ipv6hint', 16, scanIPv6),
  dohpath,
  flag('ohttp'),
]

const keyOfName = new Map(knownValues.map((value, key) => [value.name, key]))

/** Returns the key of a name or of `keyN`; undefined if it is neither. */
export function scanSvcKey(text: string): number | undefined {
  const known = keyOfName.get(text)
  if (known !== undefined) return known
  const number = /^key(0|[1-9]\d{0,4})$/.exec(text)
  const key = Number(number?.[1] ?? Number.NaN)
  return key < KEY_INVALID ? key : undefined
}

export function printSvcKey(key: number): string {
  return knownValues[key]?.name ?? `key${key}`
}

/** True if `value` is well formed for `key`; does not check the rules between parameters. */
export function isSvcValue(key: number, value: Uint8Array): boolean {
  return key < KEY_INVALID && (knownValues[key] ?? unknown).isValid(value)
}

/** Returns `name=value`, or only the name. */
export function printSvcParam(key: number, value: Uint8Array): string {
  const text = (knownValues[key] ?? unknown).print(value)
  return text === '' ? printSvcKey(key) : `${printSvcKey(key)}=${text}`
}

/**
 * Parses and checks `text` (with escapes resolved); returns undefined if it is invalid. With the
 * name `keyN`, even a known key has plain octets as its value.
 */
export function scanSvcValue(name: string, key: number, text: Uint8Array): Uint8Array | undefined {
  const form = name === printSvcKey(key) ? (knownValues[key] ?? unknown) : unknown
  const value = form.scan(text)
  return value !== undefined && isSvcValue(key, value) ? value : undefined
}
