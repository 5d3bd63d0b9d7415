import type { ZoneRecords } from './records.ts'

/** Above this number of records, duplicates are found by hash, not by comparing pairs. */
export const PAIRWISE_MAX = 16

/** The records of one owner, sorted into RRsets; reused for each owner. */
export class NodeRecords {
  /** Record numbers sorted by type; records of one type are in the order of the file. */
  readonly index: number[] = []
  readonly #records: ZoneRecords

  constructor(records: ZoneRecords) {
    this.#records = records
  }

  /** Loads the records of `node`, without dropped records (type 0). */
  read(node: number): void {
    const { firstRecord, nextRecord, type } = this.#records
    const index = this.index
    index.length = 0
    let isSorted = true
    for (let i = firstRecord[node]!; i !== -1; i = nextRecord[i]!) {
      if (type[i] === 0) continue
      if (index.length > 0 && type[index.at(-1)!]! > type[i]!) isSorted = false
      index.push(i)
    }
    // Array.prototype.sort is stable: records of one type keep the order of the file.
    if (!isSorted) index.sort((a, b) => type[a]! - type[b]!)
  }

  /** Returns the end of the RRset that starts at `from` of `index`. */
  setEnd(from: number): number {
    const { type } = this.#records
    const wanted = type[this.index[from]!]
    let end = from + 1
    while (end < this.index.length && type[this.index[end]!] === wanted) end++
    return end
  }

  /** Returns the record numbers in from..end-1 whose rdata equals that of an earlier record, octet by octet. */
  duplicates(from: number, end: number): number[] {
    if (end - from === 1) return []
    return end - from <= PAIRWISE_MAX ? this.#pairs(from, end) : this.#hashed(from, end)
  }

  #pairs(from: number, end: number): number[] {
    const found: number[] = []
    for (let i = from + 1; i < end; i++) {
      const rdata = this.#records.rdata(this.index[i]!)
      for (let j = from; j < i; j++) {
        if (Buffer.compare(rdata, this.#records.rdata(this.index[j]!)) !== 0) continue
        found.push(this.index[i]!)
        break
      }
    }
    return found
  }

  #hashed(from: number, end: number): number[] {
    const seen = new Set<string>()
    const found: number[] = []
    for (let i = from; i < end; i++) {
      const key = Buffer.from(this.#records.rdata(this.index[i]!)).toString('latin1')
      if (seen.has(key)) found.push(this.index[i]!)
      seen.add(key)
    }
    return found
  }
}
