import { readFileSync, statSync } from 'node:fs'
import type { Position } from '../../base/errors.ts'
import { RRType } from '../../dns/iana/types.ts'
import { scanGeoCode } from '../../geo/code.ts'
import { recordKey } from '../../records/dns-record.ts'
import { printRecordType } from '../../records/print-endpoint.ts'
import { isMapping } from '../../records/validate/fields.ts'
import { lowerNameKey, scanHost } from '../../records/validate/names.ts'
import { itemsOf, SERVED, validateResource } from '../../records/validate/resource.ts'
import type { HeldPlace } from '../../sources/manifests/manifest-store.ts'
import { findLine, parseDocuments, YamlProblem } from '../../yaml/parse-document.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import { type DocumentRange, DocumentSplitter } from '../../yaml/split-documents.ts'
import { JsonSplitter } from '../../yaml/split-json.ts'
import type { Conflict } from './record-conflicts.ts'

/**
 * Maximum number of documents that are parsed again to find the exact line. Later documents are
 * reported by their first line.
 */
const PARSED_MAX = 1000

/** Identifies an endpoint of a record. */
interface EndpointPlace extends Omit<Conflict, 'text'> {
  readonly setIdentifier?: string
}

/** The part of a file that contains a record. */
interface PlacedText {
  readonly text: string
  /** First line of the text in the file. */
  readonly line: number
  /** Index of the document in the text. */
  readonly index: number
  readonly isItem: boolean
}

/** A `PlacedText` and its documents. */
interface ParsedText {
  readonly text: PlacedText
  readonly values: readonly YamlValue[]
}

/**
 * Finds the places of records in their files. Only for messages, because it reads the files again.
 */
export class RecordPlaces {
  readonly #places: Pick<ReadonlyMap<string, HeldPlace>, 'get'>
  #file = ''
  #octets: Buffer = Buffer.alloc(0)
  #ranges: ReadonlyMap<number, DocumentRange> | undefined
  #parsed = 0
  #octetsLeft: number
  /** The document that was parsed last: the next question is often about the same one. */
  #last: { readonly place: HeldPlace; readonly parsed: ParsedText | undefined } | undefined

  /**
   * `places`: by `namespace/name`. `octetsMax`: how much of the files is read; records of files that
   * exceed it have the first line of their document.
   */
  constructor(
    places: Pick<ReadonlyMap<string, HeldPlace>, 'get'>,
    octetsMax = Number.POSITIVE_INFINITY,
  ) {
    this.#places = places
    this.#octetsLeft = octetsMax
  }

  /** Place of the record's name; undefined if the record does not exist. */
  record(key: string): Position | undefined {
    return this.#locate(key, () => ['metadata', 'name'])
  }

  /**
   * Place of the record's endpoint with that owner, type and set identifier, or of the record's
   * name. Without a set identifier, the last endpoint of that owner and type.
   */
  endpoint({ key, owner, type, setIdentifier }: EndpointPlace): Position | undefined {
    const ownerKey = lowerNameKey(owner)
    const typeText = printRecordType(type)
    // An ALIAS endpoint stands for A and AAAA.
    const isAddress = type === RRType.A || type === RRType.AAAA
    return this.#locate(key, (record) => {
      const spec = isMapping(record.spec) ? record.spec : {}
      const index = sequenceOf(spec.endpoints).findLastIndex((endpoint: YamlValue) => {
        if (!isMapping(endpoint)) return false
        const isAlias = isAddress && endpoint.recordType === 'ALIAS'
        if (!isAlias && endpoint.recordType !== typeText) return false
        const isOfSet =
          setIdentifier === undefined || (endpoint.setIdentifier ?? '') === setIdentifier
        if (!isOfSet) return false
        const name = scanHost(String(endpoint.dnsName))
        return name !== undefined && lowerNameKey(name) === ownerKey
      })
      return index === -1 ? ['metadata', 'name'] : ['spec', 'endpoints', index, 'dnsName']
    })
  }

  /**
   * Place of the record's first geo code equal to `code`, in canonical form, or of the record's
   * name.
   */
  geoCode(key: string, code: string): Position | undefined {
    return this.#property(key, (property) => hasGeoCode(property, code))
  }

  /** Place of the record's health check, or of a field of it. */
  healthCheck(key: string, ...field: readonly string[]): Position | undefined {
    return this.#locate(key, () => ['spec', 'healthCheck', ...field], true)
  }

  /** Place of an annotation of the record. */
  annotation(key: string, name: string): Position | undefined {
    return this.#locate(key, () => ['metadata', 'annotations', name], true)
  }

  /** Place of the record's first location, or of the record's name. */
  location(key: string): Position | undefined {
    return this.#property(key, (property) => isMapping(property) && property.name === 'location')
  }

  /** Place of the record's first property of an endpoint with `isWanted`, or of the record's name. */
  #property(key: string, isWanted: (property: YamlValue) => boolean): Position | undefined {
    return this.#locate(key, (record) => {
      const spec = isMapping(record.spec) ? record.spec : {}
      for (const [i, endpoint] of sequenceOf(spec.endpoints).entries()) {
        const properties = isMapping(endpoint) ? sequenceOf(endpoint.providerSpecific) : []
        const j = properties.findIndex(isWanted)
        if (j !== -1) return ['spec', 'endpoints', i, 'providerSpecific', j, 'value']
      }
      return ['metadata', 'name']
    })
  }

  #locate(
    key: string,
    find: (record: { readonly [key: string]: YamlValue }) => readonly (string | number)[],
    isKey = false,
  ): Position | undefined {
    const place = this.#places.get(key)
    if (place === undefined) return undefined
    const { file } = place
    const parsed = this.#parse(place)
    if (parsed === undefined) return { file, line: place.line }
    const { text, values } = parsed
    const value = values[text.index]
    const isItem = text.isItem && Array.isArray(value)
    const items = value === undefined ? [] : isItem ? value : itemsOf(value)
    const item = items.findIndex((one) => keyOf(one) === key)
    if (item === -1) return { file, line: place.line }
    const prefix = items[item] === value ? [] : isItem ? [item] : ['items', item]
    const path = find(items[item] as { readonly [key: string]: YamlValue })
    const line = findLine(text.text, text.index, [...prefix, ...path], isKey)
    return { file, line: text.line + line - 1 }
  }

  #parse(place: HeldPlace): ParsedText | undefined {
    const last = this.#last?.place
    const isLast = last?.file === place.file && last.line === place.line
    if (isLast && last.index === place.index) return this.#last!.parsed
    const text = this.#parsed++ < PARSED_MAX ? this.#textOf(place) : undefined
    const values = text === undefined ? undefined : parseDocuments(text.text)
    const isWrong = text === undefined || values === undefined || values instanceof YamlProblem
    const parsed = isWrong ? undefined : { text, values }
    this.#last = { place, parsed }
    return parsed
  }

  /** Returns the part of the file to parse. */
  #textOf(place: HeldPlace): PlacedText | undefined {
    if (this.#file !== place.file) {
      this.#octets = readUpTo(place.file, this.#octetsLeft)
      this.#octetsLeft -= this.#octets.length
      this.#file = place.file
      this.#ranges = undefined
    }
    const octets = this.#octets
    if (octets.length === 0) return undefined
    this.#ranges ??= readRanges(place.file, octets)
    const range = this.#ranges?.get(place.line)
    if (range === undefined) {
      const isSplit = this.#ranges !== undefined && this.#ranges.size > 0
      if (isSplit) return undefined
      return { text: octets.toString('utf8'), line: 1, index: place.index, isItem: false }
    }
    const { start, end, line, part } = range
    return { text: octets.toString('utf8', start, end), line, index: 0, isItem: part === 'item' }
  }
}

/**
 * Returns the documents and list items of a file, by their first lines; undefined if it can't be
 * split.
 */
function readRanges(file: string, octets: Buffer): ReadonlyMap<number, DocumentRange> | undefined {
  const isJson = file.endsWith('.json')
  const splitter = isJson ? JsonSplitter.open(octets) : new DocumentSplitter(octets, octets.length)
  if (splitter === undefined) return undefined
  const ranges = new Map<number, DocumentRange>()
  for (let range = splitter.next(); range !== undefined; range = splitter.next()) {
    ranges.set(range.line, range)
  }
  const isWhole = splitter instanceof DocumentSplitter && splitter.ended.kind === 'directive'
  return isWhole ? undefined : ranges
}

function sequenceOf(value: YamlValue | undefined): readonly YamlValue[] {
  return Array.isArray(value) ? value : []
}

function hasGeoCode(property: YamlValue, code: string): boolean {
  if (!isMapping(property) || property.name !== 'geo-code') return false
  const texts = String(property.value).split(',')
  return texts.some((text) => scanGeoCode(text.trim())?.text === code)
}

function keyOf(value: YamlValue): string | undefined {
  const resource = validateResource(value, SERVED)
  if (resource.kind !== 'record') return undefined
  return recordKey(resource.record.namespace, resource.record.name)
}

/**
 * Returns an empty buffer if the file is longer than `octetsMax`, or no longer a file: that is no
 * reason to fail.
 */
function readUpTo(file: string, octetsMax: number): Buffer {
  try {
    const stats = statSync(file)
    // Reading a pipe could wait forever.
    return stats.isFile() && stats.size <= octetsMax ? readFileSync(file) : Buffer.alloc(0)
  } catch (error) {
    if (!(error instanceof Error) || !('syscall' in error)) throw error
    return Buffer.alloc(0)
  }
}
