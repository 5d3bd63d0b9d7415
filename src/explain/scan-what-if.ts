import type { Clock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { Slices } from '../base/slices.ts'
import { lowerName, printName, ROOT_NAME, scanName } from '../dns/name/name.ts'
import { type EndpointDrain, isSameDrains } from '../health/drain/drain.ts'
import { scanWords } from '../health/drain/quoted-words.ts'
import { type DrainSelector, scanDrainSelector } from '../health/drain/selector.ts'
import { shiftRefusal } from '../health/shift/shift-refusal.ts'
import type { WhatIfOrder, WhatIfShift } from '../plugin/admin-what-if.ts'
import type { PreviewScope } from '../publish/preview/preview-index.ts'
import type { PreviewChange } from '../publish/preview/zone-preview.ts'
import { unpackNames, unpackPlace } from '../records/pack.ts'
import type { StoredRecord } from '../records/record-source.ts'
import { lowerNameKey } from '../records/validate/names.ts'

/** A change to preview. */
export interface ScannedChange extends PreviewChange {
  /** What the preview leaves out, and why the change would be refused. Complete once its records are found. */
  readonly notes: readonly string[]
}

const PERCENT_MAX = 100
/** For messages. */
const FILE = 'manifests'
/** A document is parsed at once; a DNSRecord with as many endpoints as it may have is shorter. */
const DOCUMENT_OCTETS_MAX = 320 * 1024
/** Faults that a message lists. */
const FAULTS_MAX = 5
const NOTES_MAX = 20
const DRAIN_ID = /^[0-9a-f]{8}$/
const NO_CHANGE: Pick<ScannedChange, 'records' | 'notes'> = { records: [], notes: [] }

/** Reads an order. Rejects with InputError that says what is wrong. */
export async function scanWhatIfOrder(
  order: WhatIfOrder,
  scopes: readonly PreviewScope[],
  clock: Clock,
): Promise<ScannedChange> {
  const { drain, undrain, shift, manifests } = order
  const given = [drain, undrain, shift, manifests].filter((one) => one !== undefined)
  if (given.length !== 1) fail('give one of drain, undrain, shift and manifests')
  if (drain !== undefined) return drainChange([drainOf(scanSelector(drain))], () => false)
  if (undrain !== undefined) return drainChange([], endedBy(undrain))
  if (shift !== undefined) return shiftChange(shift)
  return scanManifests(manifests!, scopes, clock)
}

function drainChange(
  begun: readonly EndpointDrain[],
  isEnded: (drain: EndpointDrain) => boolean,
): ScannedChange {
  return {
    ...NO_CHANGE,
    rowOf: (record, { health, drainsWith }) => {
      const isBegun = begun.some(({ selector }) => selector.mayMatch(record))
      if (begun.length > 0 && !isBegun) return undefined
      const row = health.rowOf(record)
      if (begun.length === 0 && row.drains.endpoints.length === 0) return undefined
      const drains = drainsWith(record, begun, isEnded)
      return isSameDrains(row.drains, drains) ? undefined : { ...row, drains }
    },
  }
}

function endedBy(text: string): (drain: EndpointDrain) => boolean {
  if (DRAIN_ID.test(text)) return ({ selector }) => selector.id === text
  const { id } = scanSelector(text)
  return ({ selector }) => selector.id === id
}

function shiftChange({ name: text, to, percent }: WhatIfShift): ScannedChange {
  const name = scanName(text.replace(/^\*\./, ''), ROOT_NAME)
  if (name === undefined) return fail(`shift: invalid name: ${JSON.stringify(text)}`)
  if (percent !== undefined && !(percent >= 0 && percent <= PERCENT_MAX)) {
    return fail(`shift: percent must be from 0 to ${PERCENT_MAX}`)
  }
  const hostKey = lowerNameKey(lowerName(name))
  const shift = percent === undefined ? undefined : { to, percent, text: `preview (${percent} %)` }
  const found: StoredRecord[] = []
  return {
    ...NO_CHANGE,
    get notes() {
      const reason = percent === undefined ? '' : shiftRefusal(text, to, found)
      return reason === '' ? [] : [reason]
    },
    rowOf: (record, { health }) => {
      if (unpackPlace(record.packed).rootHostKey !== hostKey) return undefined
      found.push(record)
      const row = health.rowOf(record)
      const isSame = row.shift?.to === shift?.to && row.shift?.percent === shift?.percent
      return isSame ? undefined : { ...row, shift }
    },
  }
}

async function scanManifests(
  text: string,
  scopes: readonly PreviewScope[],
  clock: Clock,
): Promise<ScannedChange> {
  const { readDump } = await import('../sources/manifests/read-once.ts')
  const slices = new Slices(clock)
  const pause = (): Promise<void> | undefined => (slices.isOver ? slices.pause() : undefined)
  const { store } = await readDump(FILE, Buffer.from(text), undefined, {
    pause,
    documentOctetsMax: DOCUMENT_OCTETS_MAX,
  })
  const faults = [...store.faults.all()]
  if (faults.length > 0) {
    const more = faults.length > FAULTS_MAX ? `; and ${faults.length - FAULTS_MAX} more faults` : ''
    fail(
      `${faults
        .slice(0, FAULTS_MAX)
        .map((fault) => fault.print())
        .join('; ')}${more}`,
    )
  }
  const all = [...store.records()]
  if (all.length === 0) fail('the manifests have no DNSRecord')
  const notes: string[] = []
  const records = all.filter((record) => {
    const reason = reasonAgainst(record, scopes)
    if (reason !== '') notes.push(`${record.key} is not compared: ${reason}`)
    else notes.push(...notesOf(record, scopes))
    return reason === ''
  })
  return { records, rowOf: () => undefined, notes: notes.slice(0, NOTES_MAX) }
}

/** Returns why a record cannot be compared; '' = it can. */
function reasonAgainst({ key }: StoredRecord, scopes: readonly PreviewScope[]): string {
  const isMerged = scopes.some(({ own, records }) => {
    return own.find(key) !== undefined && records.find(key) === undefined
  })
  return isMerged ? 'peers have endpoints of its host' : ''
}

/** Returns a note for a record at names where records of another namespace are. */
function notesOf({ key, packed }: StoredRecord, scopes: readonly PreviewScope[]): string[] {
  const namespace = key.slice(0, key.indexOf('/') + 1)
  const { owners } = unpackNames(packed)
  for (const { zones } of scopes) {
    for (const owner of owners) {
      const holders = zones.flatMap(({ records }) => records.holders.of(owner))
      const other = holders.find((one) => !one.key.startsWith(namespace))
      if (other === undefined) continue
      const name = printName(Buffer.from(owner, 'latin1'))
      return [`${key}: ${other.key} has ${name}; rights of namespaces are not compared`]
    }
  }
  return []
}

function scanSelector(text: string): DrainSelector {
  const words = scanWords(text) ?? fail('selector: a string in double quotes is not valid JSON')
  const selector = scanDrainSelector(words)
  return typeof selector === 'string' ? fail(selector) : selector
}

function drainOf(selector: DrainSelector): EndpointDrain {
  return { selector, reason: '', actor: '', createdMs: undefined, untilMs: undefined }
}

function fail(message: string): never {
  throw new InputError(undefined, message)
}
