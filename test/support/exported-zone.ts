import { Rcode, RRClass, RRType } from '../../src/dns/iana/index.ts'
import type { Message, ResourceRecord } from '../../src/dns/message/message.ts'
import { equalNames, scanName } from '../../src/dns/name/name.ts'
import { scanRdata, splitFields } from '../../src/dns/rdata/index.ts'
import type { PeerEndpoint } from '../../src/peering/peer-endpoint.ts'
import { composePeerEndpoint } from '../../src/peering/v2-codec.ts'
import type { Script } from './scripted-server.ts'

const KDRNT = scanName('kdrnt.')!

export function record(owner: string, type: keyof typeof RRType, text: string): ResourceRecord {
  const name = scanName(owner)!
  const rdata = scanRdata(RRType[type], splitFields(text)!, KDRNT)
  if (!(rdata instanceof Uint8Array)) throw new Error(`bad rdata: ${text}`)
  return { owner: name, type: RRType[type], rrclass: RRClass.IN, ttlSeconds: 60, rdata }
}

/** The TXT record that exports an endpoint (v2). */
export function peerRecord(endpoint: PeerEndpoint): ResourceRecord {
  const owner = scanName(`v2.${endpoint.rootHost.replace(/^\*\./, '')}.kdrnt.`)!
  const rdata = composePeerEndpoint(endpoint)!
  return { owner, type: RRType.TXT, rrclass: RRClass.IN, ttlSeconds: 0, rdata }
}

/** The zone kdrnt of a peer with all its versions: answers queries, AXFR and IXFR. */
export class ExportedZone {
  readonly #versions: { readonly serial: number; readonly records: readonly ResourceRecord[] }[] =
    []
  /** Rcode of transfers; 0 if they succeed. */
  transferRcode = 0
  /** False: it answers IXFR with NOTIMP. */
  knowsIxfr = true

  constructor(serial: number, records: readonly ResourceRecord[]) {
    this.put(serial, records)
  }

  put(serial: number, records: readonly ResourceRecord[]): void {
    this.#versions.push({ serial, records })
  }

  readonly script: Script = (query, isTcp) => {
    const { type, name } = query.question!
    const { serial, records } = this.#versions.at(-1)!
    const isTransfer = type === RRType.AXFR || type === RRType.IXFR
    if (type === RRType.IXFR && !this.knowsIxfr) return Rcode.NOTIMP
    if (isTransfer && (this.transferRcode !== 0 || !isTcp)) return this.transferRcode || 5
    if (type === RRType.AXFR) return [soa(serial), ...records, soa(serial)]
    if (type === RRType.IXFR) return this.#differences(query)
    if (type === RRType.SOA && equalNames(name, KDRNT)) return [soa(serial)]
    const found = chase(records, name, type)
    const exists = records.some(({ owner }) => equalNames(owner, name))
    return found.length > 0 || exists ? found : 3
  }

  /** The differences between the client's version and the last one, as one sequence. */
  #differences(query: Message): readonly ResourceRecord[] {
    const { serial, records } = this.#versions.at(-1)!
    const had = query.authority[0]!.rdata
    const from = new DataView(had.buffer, had.byteOffset).getUint32(had.length - 20)
    const old = this.#versions.find((version) => version.serial === from)
    if (old === undefined) return [soa(serial), ...records, soa(serial)]
    const removed = old.records.filter((one) => !records.some((other) => isSame(one, other)))
    const added = records.filter((one) => !old.records.some((other) => isSame(one, other)))
    return [soa(serial), soa(from), ...removed, soa(serial), ...added, soa(serial)]
  }
}

function soa(serial: number): ResourceRecord {
  return record('kdrnt.', 'SOA', `ns1.kdrnt. hostmaster.kdrnt. ${serial} 7200 1800 86400 60`)
}

function isSame(a: ResourceRecord, b: ResourceRecord): boolean {
  return equalNames(a.owner, b.owner) && a.type === b.type && !Buffer.compare(a.rdata, b.rdata)
}

/** As Kuadrant in 2025: each answer has one of several CNAMEs, here in turn. */
let turn = 0
function chase(
  records: readonly ResourceRecord[],
  name: Uint8Array,
  type: number,
): readonly ResourceRecord[] {
  const own = records.filter(({ owner }) => equalNames(owner, name))
  const found = own.filter((one) => one.type === type)
  const names = own.filter((one) => one.type === RRType.CNAME)
  if (found.length > 0 || names.length === 0) return found
  const drawn = names[turn++ % names.length]!
  return [drawn, ...chase(records, drawn.rdata, type)]
}
