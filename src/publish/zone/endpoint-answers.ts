import type { EndpointLabels, EndpointShare, EndpointSink } from './endpoint-sink.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const MINUTES = 60
const HOURS = 24

interface Row {
  readonly labels: EndpointLabels
  share: EndpointShare
  users: number
  /** Answers by minute, then by hour. */
  readonly counts: Float32Array
}

/** What an endpoint answered in a period. */
export interface CountedEndpoint extends EndpointShare {
  readonly labels: EndpointLabels
  readonly answers: number
}

/**
 * The answers of endpoints in the last hour by minute, and in the last day by hour. Shared by all publishers of the
 * process, also over reloads. Uses 336 octets per endpoint in a tier, and its labels.
 */
export class EndpointAnswers implements EndpointSink {
  /** By type and owner, then by key. */
  readonly #sets = new Map<string, Map<string, Row>>()
  readonly #collectors = new Set<() => void>()
  #minute = 0

  add(key: string, labels: EndpointLabels): void {
    const at = setKey(labels)
    const set = this.#sets.get(at) ?? new Map<string, Row>()
    this.#sets.set(at, set)
    const row = set.get(key)
    if (row !== undefined) row.users++
    else {
      const counts = new Float32Array(MINUTES + HOURS)
      set.set(key, { labels, share: { share: 0, weight: undefined }, users: 1, counts })
    }
  }

  remove(key: string, labels: EndpointLabels): void {
    const at = setKey(labels)
    const set = this.#sets.get(at)!
    const row = set.get(key)!
    row.users--
    if (row.users === 0) set.delete(key)
    if (set.size === 0) this.#sets.delete(at)
  }

  count(key: string, labels: EndpointLabels, growth: number): void {
    const { counts } = this.#sets.get(setKey(labels))!.get(key)!
    counts[this.#minute % MINUTES]! += growth
    counts[MINUTES + (hourOf(this.#minute) % HOURS)]! += growth
  }

  setShare(key: string, labels: EndpointLabels, share: EndpointShare): void {
    this.#sets.get(setKey(labels))!.get(key)!.share = share
  }

  onCollect(collect: () => void): () => void {
    this.#collectors.add(collect)
    return () => this.#collectors.delete(collect)
  }

  /** Collects the counts of the time up to `nowMs`. Call it at least once a minute. */
  collect(nowMs: number): void {
    const minute = Math.floor(nowMs / MINUTE_MS)
    const first = Math.max(this.#minute + 1, minute - MINUTES + 1)
    for (let m = first; m <= minute; m++) this.#clear(m % MINUTES)
    const hour = hourOf(minute)
    for (let h = Math.max(hourOf(this.#minute) + 1, hour - HOURS + 1); h <= hour; h++) {
      this.#clear(MINUTES + (h % HOURS))
    }
    this.#minute = Math.max(minute, this.#minute)
    for (const collect of this.#collectors) collect()
  }

  /** Returns the endpoints of a name and type in the last `ms`: up to an hour in minutes, above in hours. */
  read(owner: string, type: string, ms: number): CountedEndpoint[] {
    const rows = this.#sets.get(setKey({ owner, type }))?.values() ?? []
    const isLong = ms > HOUR_MS
    const steps = isLong ? HOURS : MINUTES
    const start = isLong ? MINUTES : 0
    const newest = isLong ? hourOf(this.#minute) : this.#minute
    const count = Math.min(steps, newest + 1, Math.round(ms / (isLong ? HOUR_MS : MINUTE_MS)))
    return [...rows].map(({ labels, share, counts }) => {
      let answers = 0
      for (let i = 0; i < count; i++) answers += counts[start + ((newest - i) % steps)]!
      return { labels, ...share, answers }
    })
  }

  #clear(cell: number): void {
    for (const set of this.#sets.values()) for (const { counts } of set.values()) counts[cell] = 0
  }
}

function hourOf(minute: number): number {
  return Math.floor((minute * MINUTE_MS) / HOUR_MS)
}

function setKey({ owner, type }: Pick<EndpointLabels, 'owner' | 'type'>): string {
  return `${type} ${owner}`
}
