import { printType, RRType, scanType } from '../../src/dns/iana/types.ts'
import type { Response } from '../../src/dns/message/response.ts'
import { Section } from '../../src/dns/message/section.ts'
import { ZoneImage } from '../../src/zone/image/writer.ts'
import { text, wire } from './zone-names.ts'

const NAME_AT = new Map<number, number>([
  [RRType.NS, 0],
  [RRType.CNAME, 0],
  [RRType.DNAME, 0],
  [RRType.PTR, 0],
  [RRType.MX, 2],
  [RRType.SRV, 6],
  [RRType.SVCB, 2],
  [RRType.HTTPS, 2],
])

/**
 * An image of zones given as lines `owner TTL TYPE data…`; an SOA begins a zone. Data: an address, or
 * leading 16-bit numbers and a name; of an SOA its MINIMUM; anything else is taken as octets. After a
 * `|` come steering words.
 */
export function imageOf(lines: readonly string[]): ZoneImage {
  const image = new ZoneImage()
  const sets = new Map<string, { ttlSeconds: number; rdata: Uint8Array[]; steering: number[] }>()
  for (const line of lines) {
    const [record, steering] = line.split('|')
    const [owner, ttl, type, ...data] = record!.trim().split(/\s+/)
    if (type === 'SOA') image.addZone(wire(owner!))
    const key = `${owner} ${type}`
    const set = sets.get(key) ?? { ttlSeconds: Number(ttl), rdata: [], steering: [] }
    set.rdata.push(rdataOf(scanType(type!)!, data))
    if (steering !== undefined) set.steering = steering.trim().split(/\s+/).map(Number)
    sets.set(key, set)
  }
  for (const [key, { ttlSeconds, rdata, steering }] of sets) {
    const [owner, type] = key.split(' ')
    const words = steering.length > 0 ? new Uint32Array(steering) : undefined
    const data = { type: scanType(type!)!, ttlSeconds, rdata, steering: words }
    image.putRRset(zoneOf(image, owner!, type!), wire(owner!), data)
  }
  image.publish()
  return image
}

/** One section of a response as lines in the form of `imageOf`. */
export function linesOf(response: Response, section: Section): string[] {
  const lines: string[] = []
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== section) continue
    const at = response.rdataOffset[i]!
    const rdata = response.rdataBytes[i]!.subarray(at, at + response.rdataOctets[i]!)
    const owner = text(response.ownerBytes[i]!, response.ownerOffset[i])
    const type = response.type[i]!
    lines.push(`${owner} ${response.ttlSeconds[i]} ${printType(type)} ${dataOf(type, rdata)}`)
  }
  return lines
}

export const sections = [Section.Answer, Section.Authority, Section.Additional] as const

/** The zone that holds an owner; NS and DS of a child apex given before its SOA go to the parent. */
function zoneOf(image: ZoneImage, owner: string, type: string): number {
  const labels = owner.split('.').filter((label) => label !== '')
  for (let i = type === 'DS' ? 1 : 0; i <= labels.length; i++) {
    const zone = image.findZone(wire(`${labels.slice(i).join('.')}.`))
    if (zone !== undefined) return zone
  }
  throw new Error(`no zone for ${owner}`)
}

function rdataOf(type: number, data: readonly string[]): Uint8Array {
  if (type === RRType.SOA) {
    const rdata = new Uint8Array(22)
    new DataView(rdata.buffer).setUint32(18, Number(data[0]))
    return rdata
  }
  const nameAt = NAME_AT.get(type)
  if (nameAt !== undefined) {
    const numbers = data.slice(0, -1).flatMap((n) => [Number(n) >> 8, Number(n) & 255])
    return new Uint8Array([...numbers, ...wire(data.at(-1)!)])
  }
  if (type === RRType.A) return new Uint8Array(data[0]!.split('.').map(Number))
  return new Uint8Array(data.map(Number))
}

function dataOf(type: number, rdata: Uint8Array): string {
  const view = new DataView(rdata.buffer, rdata.byteOffset, rdata.length)
  if (type === RRType.SOA) return String(view.getUint32(rdata.length - 4))
  const nameAt = NAME_AT.get(type)
  if (nameAt !== undefined) {
    const numbers: number[] = []
    for (let i = 0; i < nameAt; i += 2) numbers.push(view.getUint16(i))
    return [...numbers, text(rdata, nameAt)].join(' ')
  }
  return [...rdata].join(type === RRType.A ? '.' : ' ')
}
