import { InputError } from '../../base/errors.ts'
import { printType, RRType } from '../../dns/iana/index.ts'
import { nameKey, printName } from '../../dns/name/name.ts'
import type { RecordView } from '../../xfr/journal/record-view.ts'
import type { VersionView } from '../../xfr/journal/version-view.ts'
import type { SetKey } from '../../xfr/zone-versions.ts'
import { RRSETS_MAX } from '../../zone/image/layout.ts'
import type { RRsetData, ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import { MADE_BY_SIGNERS, printSigned } from '../../zone/zonefile/unsigned-zone.ts'

/** Names between two pauses. */
const SLICE_NODES = 128
const ASTERISK = 0x2a
/** RRsets of a name, so that there is room for those of the signer. */
const SETS_MAX = RRSETS_MAX - MADE_BY_SIGNERS.size

interface SourceContent {
  /** A version of the zone without signatures. */
  readonly source: VersionView
  /** The RRsets that may differ from the version that was put before; undefined = any may differ. */
  readonly changed: readonly SetKey[] | undefined
  /** What the image has published of the zone; undefined = nothing yet. */
  readonly published: VersionView | undefined
  readonly image: ZoneImage
  readonly zone: ZoneId
  /** RRsets that may differ from the published version. */
  readonly unpublished: readonly SetKey[]
}

/**
 * Throws InputError if a version is signed already, or cannot be signed; pauses now and then. `changed`: the names to
 * check; undefined = all.
 */
export function* checkUnsigned(
  source: VersionView,
  changed: readonly SetKey[] | undefined,
): Generator<void, void> {
  let name: Uint8Array | undefined
  let sets = 0
  for (const [owner, set] of setsOf(source, changed)) {
    if (set === 0) {
      yield
      continue
    }
    if (MADE_BY_SIGNERS.has(source.type(set))) {
      const record = `${printName(owner)} ${printType(source.type(set))}`
      throw new InputError(undefined, printSigned(record))
    }
    if (source.type(set) === RRType.NS && owner[0] === 1 && owner[1] === ASTERISK) {
      const message = `${printName(owner)} NS: NS of a wildcard cannot be signed`
      throw new InputError(undefined, `${message}; use NS records of names without \`*\``)
    }
    sets = owner === name ? sets + 1 : 1
    name = owner
    if (sets > SETS_MAX) {
      const message = `${printName(owner)} has more than ${SETS_MAX} types`
      throw new InputError(undefined, `${message}, so it has no room for signatures; remove some`)
    }
  }
}

type Note = (owner: Uint8Array, type: number) => void

/**
 * Makes the content of an image that of a source, without publishing it, except the SOA and what signers make. Pauses
 * now and then. Calls `note` with each RRset that was put or removed. If `changed` is known, it visits no other names.
 * @throws InputError if the image is full.
 */
export function* putContent(content: SourceContent, note: Note): Generator<void, void> {
  const { published, unpublished, changed } = content
  yield* putSource(content, note)
  for (const key of unpublished) removeIfGone(content, key, note)
  if (changed !== undefined) return yield* removeGone(content, changed, note)
  if (published === undefined) return
  for (const [owner, set] of setsOf(published)) {
    if (set === 0) yield
    else removeIfGone(content, { owner, type: published.type(set) }, note)
  }
}

function* removeGone(
  content: SourceContent,
  keys: readonly SetKey[],
  note: Note,
): Generator<void, void> {
  let seen = 0
  for (const key of keys) {
    removeIfGone(content, key, note)
    if (++seen % SLICE_NODES === 0) yield
  }
}

function* putSource(
  { source, published, image, zone, unpublished, changed }: SourceContent,
  note: Note,
): Generator<void, void> {
  const torn = new Set(unpublished.map(keyOf))
  for (const [owner, set] of setsOf(source, changed)) {
    if (set === 0) {
      yield
      continue
    }
    const type = source.type(set)
    if (!isContent(type)) continue
    const old = published?.find(owner, type) ?? 0
    const isSame = old !== 0 && published!.equals(old, source, set)
    if (isSame && !torn.has(keyOf({ owner, type }))) continue
    if (image.putRRset(zone, owner, dataOf(source, owner, set))) note(owner, type)
  }
}

function removeIfGone(
  { source, image, zone }: SourceContent,
  { owner, type }: SetKey,
  note: Note,
): void {
  if (!isContent(type) || source.find(owner, type) !== 0) return
  if (image.removeRRset(zone, owner, type)) note(owner, type)
}

/**
 * Yields owner and RRset of all RRsets of a version, and between them now and then 0 for a pause. `changed`: only those
 * of the owners of these RRsets.
 */
function* setsOf(
  view: VersionView,
  changed?: readonly SetKey[],
): Generator<readonly [Uint8Array, number]> {
  let seen = 0
  if (changed !== undefined) {
    const known = new Set<string>()
    for (const { owner } of changed) {
      if (++seen % SLICE_NODES === 0) yield [owner, 0]
      const key = nameKey(owner)
      if (known.has(key)) continue
      known.add(key)
      for (const set of view.setsAt(owner)) yield [owner, set]
    }
    return
  }
  for (const node of view.nodes()) {
    const owner = view.owner(node)
    for (const set of view.sets(node)) yield [owner, set]
    if (++seen % SLICE_NODES === 0) yield [owner, 0]
  }
}

/** False for the SOA, which has another serial, and for records of the signer. */
function isContent(type: number): boolean {
  return type !== RRType.SOA && !MADE_BY_SIGNERS.has(type)
}

/** Returns the SOA of a source with another serial. */
export function soaWithSerial(source: VersionView, serial: number): RRsetData {
  const { ttlSeconds, ...soa } = source.soa()!
  const rdata = rdataOf(soa)
  new DataView(rdata.buffer).setUint32(rdata.length - 20, serial)
  return { type: RRType.SOA, ttlSeconds, rdata: [rdata] }
}

function dataOf(view: VersionView, owner: Uint8Array, set: number): RRsetData {
  const rdata: Uint8Array[] = []
  let ttlSeconds = 0
  for (const record of view.records(owner, set)) {
    rdata.push(rdataOf(record))
    ttlSeconds = record.ttlSeconds
  }
  return { type: view.type(set), ttlSeconds, rdata }
}

function rdataOf({
  rdata,
  rdataOffset,
  rdataOctets,
}: Pick<RecordView, 'rdata' | 'rdataOffset' | 'rdataOctets'>): Uint8Array {
  return rdata.slice(rdataOffset, rdataOffset + rdataOctets)
}

function keyOf({ owner, type }: SetKey): string {
  return `${type} ${nameKey(owner)}`
}
