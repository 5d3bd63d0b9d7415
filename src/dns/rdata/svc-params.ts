import type { OctetReader, OctetWriter } from './octets.ts'
import { expected, type FieldReader, type RdataPart } from './part.ts'
import { scanText } from './strings.ts'
import {
  isSvcValue,
  mandatoryKeys,
  printSvcKey,
  printSvcParam,
  SvcKey,
  scanSvcKey,
  scanSvcValue,
} from './svc-values.ts'

type SvcParams = ReadonlyMap<number, Uint8Array>

/**
 * The parameters of SVCB and HTTPS, up to the end of the rdata (RFC 9460 section 2.2), keys
 * strictly ascending:
 *
 *     key u16 | length u16 | value | next key …
 */
export const svcParams: RdataPart = {
  parse: (input, output) => {
    const params = new Map<number, Uint8Array>()
    let previous = -1
    while (input.remaining > 0) {
      const key = input.uint(2)
      const length = input.uint(2)
      const value = length < 0 ? undefined : input.take(length)
      if (value === undefined || key <= previous || !isSvcValue(key, value)) return false
      params.set(key, value)
      previous = key
    }
    if (complainAbout(params) !== undefined) return false
    putParams(params, output)
    return true
  },
  print: (input) => {
    const texts: string[] = []
    while (input.remaining > 0) texts.push(printNextParam(input))
    return texts.join(' ')
  },
  scan: (input, output) => {
    const params = new Map<number, Uint8Array>()
    while (input.remaining > 0) {
      const complaint = scanParam(input, params)
      if (complaint !== undefined) return complaint
    }
    putParams(params, output)
    return complainAbout(params)
  },
}

/** Checks the rules between parameters (RFC 9460 sections 7.1.1 and 8). */
function complainAbout(params: SvcParams): string | undefined {
  const listed = mandatoryKeys(params.get(SvcKey.MANDATORY) ?? new Uint8Array(0))
  const missing = listed.find((key) => !params.has(key))
  if (missing !== undefined) return `mandatory lists ${printSvcKey(missing)}, which is missing`
  const lacksAlpn = params.has(SvcKey.NO_DEFAULT_ALPN) && !params.has(SvcKey.ALPN)
  return lacksAlpn ? 'no-default-alpn needs alpn' : undefined
}

function putParams(params: SvcParams, output: OctetWriter): void {
  for (const key of [...params.keys()].sort((a, b) => a - b)) {
    const value = params.get(key)!
    output.u16(key)
    output.u16(value.length)
    output.put(value)
  }
}

function printNextParam(input: OctetReader): string {
  const key = input.uint(2)
  return printSvcParam(key, input.take(input.uint(2)) ?? input.rest())
}

/** Parses `key`, `key=value` or `key="value"`; the last form may be one field or two. */
function scanParam(input: FieldReader, params: Map<number, Uint8Array>): string | undefined {
  const field = input.next()!
  const match = field.quoted ? null : /^([a-z0-9-]{1,63})(?:=(.*))?$/s.exec(field.text)
  const name = match?.[1] ?? ''
  const key = scanSvcKey(name)
  if (key === undefined) return expected('a service parameter, as in alpn=h2', field)
  if (params.has(key)) return `${printSvcKey(key)} appears twice`
  let text = match?.[2] ?? ''
  if (text === '' && field.text.endsWith('=') && input.peek()?.quoted) text = input.next()!.text
  else if (text.length >= 2 && text.startsWith('"') && text.endsWith('"')) text = text.slice(1, -1)
  const octets = scanText(text)
  const value = octets === undefined ? undefined : scanSvcValue(name, key, octets)
  if (value === undefined) return `${expected(`a value of ${name}`, { text, quoted: true })}`
  if (value.length > 65535) return `the value of ${name} is longer than 65535 octets`
  params.set(key, value)
  return undefined
}

/** Rejects parameters with priority 0, which makes an alias: they have no meaning (RFC 9460 section 2.4.2). */
export function checkAlias(rdata: Uint8Array): string | undefined {
  if (rdata[0] !== 0 || rdata[1] !== 0) return undefined
  let at = 2
  while ((rdata[at] ?? 0) > 0) at += rdata[at]! + 1
  return at + 1 < rdata.length ? 'an alias (priority 0) takes no parameters' : undefined
}
