import { Rcode } from '../../../src/dns/iana/rcodes.ts'
import { RRType } from '../../../src/dns/iana/types.ts'

/*
 * A second answerer, slow and obvious, written from the words of RFC 1034 section 4.3.2, RFC 4592,
 * RFC 6672 and RFC 2308: names are arrays of labels, zones are Maps, and every question about the tree
 * is answered by looking at all names. Records are single lines of text.
 */

/** One record of a reference zone: `data` is an address, a target name, or for the SOA its minimum. */
export interface ReferenceRecord {
  readonly owner: string
  readonly type: number
  readonly data: string
}

export interface ReferenceZone {
  readonly apex: string
  readonly records: readonly ReferenceRecord[]
}

/** What a query comes to; records as `owner TYPE data`, sorted in the additional section only. */
export interface ReferenceAnswer {
  status: 'answered' | 'outside' | 'not-in-zone' | 'too-long'
  rcode: number
  authoritative: boolean
  answer: string[]
  authority: string[]
  additional: string[]
  target: string
}

const CHAIN_MAX = 16

export function lookUpSlowly(
  zones: readonly ReferenceZone[],
  qname: string,
  qtype: number,
): ReferenceAnswer {
  const out: ReferenceAnswer = {
    status: 'answered',
    rcode: 0,
    authoritative: true,
    answer: [],
    authority: [],
    additional: [],
    target: '',
  }
  const visited = [qname]
  for (let name = qname; ; ) {
    const zone = zoneFor(zones, name, qtype)
    if (zone === undefined) {
      const first = visited.length === 1
      if (first) return { ...out, status: 'not-in-zone', authoritative: false }
      return { ...out, status: 'outside', target: name }
    }
    const next = answerOne(zones, zone, name, qtype, out, visited.length === 1)
    if (next === undefined) return out
    if (visited.length > CHAIN_MAX) return { ...out, status: 'too-long' }
    if (next === name) return { ...out, status: 'too-long', rcode: Rcode.SERVFAIL }
    if (visited.includes(next)) return { ...out, status: 'too-long' }
    visited.push(next)
    name = next
  }
}

/** Adds what `zone` knows of `name` to `out`; returns the target where a CNAME leads on. */
function answerOne(
  zones: readonly ReferenceZone[],
  zone: ReferenceZone,
  name: string,
  qtype: number,
  out: ReferenceAnswer,
  first: boolean,
): string | undefined {
  const block = blocker(zone, name, qtype)
  if (block?.type === RRType.NS) {
    if (first) out.authoritative = false
    const set = recordsAt(zone, block.owner, RRType.NS)
    out.authority.push(...set.map((r) => print(r, block.owner)))
    addAddresses(zones, set, out)
    return undefined
  }
  if (block?.type === RRType.DNAME) return redirect(block, name, qtype, out)
  const source = exists(zone, name) ? name : wildcardFor(zone, name)
  if (source === undefined) {
    out.rcode = 3
    addSoa(zone, out)
    return undefined
  }
  const wanted = qtype === RRType.ANY ? lowestType(zone, source) : recordsAt(zone, source, qtype)
  const cname = recordsAt(zone, source, RRType.CNAME)
  if (cname.length > 0 && (wanted.length === 0 || qtype === RRType.ANY)) {
    out.answer.push(print(cname[0]!, name))
    return qtype === RRType.ANY ? undefined : cname[0]!.data
  }
  if (wanted.length === 0) addSoa(zone, out)
  out.answer.push(...wanted.map((r) => print(r, name)))
  addAddresses(zones, wanted, out)
  return undefined
}

function redirect(
  dname: ReferenceRecord,
  name: string,
  qtype: number,
  out: ReferenceAnswer,
): string | undefined {
  out.answer.push(print(dname, dname.owner))
  const target = name.slice(0, name.length - dname.owner.length) + dname.data
  if (target.length + 1 > 255) {
    out.rcode = 6
    return undefined
  }
  out.answer.push(`${name} ${RRType.CNAME} ${target}`)
  return qtype === RRType.CNAME || qtype === RRType.ANY ? undefined : target
}

/** The zone with the longest apex; for DS at an apex the next longer, if that one delegates it. */
function zoneFor(
  zones: readonly ReferenceZone[],
  name: string,
  qtype: number,
): ReferenceZone | undefined {
  const holding = zones
    .filter((zone) => isWithin(name, zone.apex))
    .sort((a, b) => labelsOf(b.apex).length - labelsOf(a.apex).length)
  const [zone, parent] = holding
  if (zone === undefined || zone.apex !== name || qtype !== RRType.DS || parent === undefined) {
    return zone
  }
  return blocker(parent, name, qtype) === undefined && exists(parent, name) ? parent : zone
}

/** The highest NS or DNAME between the apex and `name` that keeps the zone from answering. */
function blocker(zone: ReferenceZone, name: string, qtype: number): ReferenceRecord | undefined {
  const labels = labelsOf(name)
  for (let i = labels.length - labelsOf(zone.apex).length; i >= 0; i--) {
    const ancestor = nameOf(labels.slice(i))
    const [ns] = recordsAt(zone, ancestor, RRType.NS)
    const [dname] = recordsAt(zone, ancestor, RRType.DNAME)
    const isCut = ns !== undefined && ancestor !== zone.apex
    if (isCut && !(ancestor === name && qtype === RRType.DS)) return ns
    if (dname !== undefined && ancestor !== name) return dname
  }
  return undefined
}

/** `*.<closest encloser>` if there is such a name. */
function wildcardFor(zone: ReferenceZone, name: string): string | undefined {
  const labels = labelsOf(name)
  for (let i = 1; i < labels.length; i++) {
    const ancestor = nameOf(labels.slice(i))
    if (!exists(zone, ancestor)) continue
    const wildcard = `*.${ancestor === '.' ? '' : ancestor}`
    return exists(zone, wildcard) ? wildcard : undefined
  }
  return undefined
}

function exists(zone: ReferenceZone, name: string): boolean {
  return name === zone.apex || zone.records.some((record) => isWithin(record.owner, name))
}

function recordsAt(zone: ReferenceZone, owner: string, type: number): ReferenceRecord[] {
  return zone.records.filter((record) => record.owner === owner && record.type === type)
}

function lowestType(zone: ReferenceZone, owner: string): ReferenceRecord[] {
  const types = zone.records.filter((record) => record.owner === owner).map((record) => record.type)
  return recordsAt(zone, owner, Math.min(...types))
}

function addSoa(zone: ReferenceZone, out: ReferenceAnswer): void {
  out.authority.push(...recordsAt(zone, zone.apex, RRType.SOA).map((r) => print(r, zone.apex)))
}

function addAddresses(
  zones: readonly ReferenceZone[],
  set: readonly ReferenceRecord[],
  out: ReferenceAnswer,
): void {
  for (const { type, data } of set) {
    if (type !== RRType.NS && type !== RRType.MX) continue
    const zone = zoneFor(zones, data, RRType.A)
    if (zone === undefined || isBelowDname(zone, data)) continue
    for (const address of [RRType.A, RRType.AAAA]) {
      out.additional.push(...recordsAt(zone, data, address).map((r) => print(r, data)))
    }
  }
  out.additional = [...new Set(out.additional)].sort()
}

function isBelowDname(zone: ReferenceZone, name: string): boolean {
  return zone.records.some(
    ({ owner, type }) => type === RRType.DNAME && owner !== name && isWithin(name, owner),
  )
}

function print(record: ReferenceRecord, owner: string): string {
  return `${owner} ${record.type} ${record.data}`
}

function labelsOf(name: string): string[] {
  return name.split('.').filter((label) => label !== '')
}

function nameOf(labels: readonly string[]): string {
  return labels.length === 0 ? '.' : `${labels.join('.')}.`
}

function isWithin(name: string, ancestor: string): boolean {
  return ancestor === '.' || name === ancestor || name.endsWith(`.${ancestor}`)
}
