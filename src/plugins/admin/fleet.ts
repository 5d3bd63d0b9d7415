import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import type {
  AdminFleet,
  FleetAnswer,
  FleetQuestion,
  FleetReport,
  FleetServer,
} from '../../plugin/admin-fleet.ts'
import type { FleetMember } from './fleet-member.ts'
import { processOf, readFleetReport } from './fleet-report.ts'
import { TRAFFIC_PATH } from './own-views.ts'
import { RemoteServer, type ReplyBounds } from './remote-server.ts'

/** Least time between two reads of a server. */
const INTERVAL_MS = 4_000
/** How long a list waits for servers that were never read. */
const FIRST_MS = 1_500
const MIB = 1024 * 1024
const BOUNDS: Readonly<Record<'read' | 'ask', ReplyBounds>> = {
  read: { msMax: 4_000, octetsMax: 4 * MIB },
  /** Shorter than the time that a request of the API may take. */
  ask: { msMax: 8_000, octetsMax: 16 * MIB },
}

type Ask = (path: string) => Promise<FleetAnswer>

interface FleetParts {
  readonly clock: Clock
  readonly timers: Timers
}

/** Reads the servers of a fleet while a client asks for them: without a request, it sends nothing. */
export class Fleet implements AdminFleet {
  readonly #timers: Timers
  readonly #bounds: typeof BOUNDS
  readonly #closed = new AbortController()
  readonly #remotes: ReadonlyMap<string, RemoteServer>
  readonly #self: FleetReader
  readonly #readers: readonly FleetReader[]

  /** `address`: of this server's admin API. `own` answers the views of this server. */
  constructor(
    members: readonly FleetMember[],
    address: string,
    own: Ask,
    { clock, timers }: FleetParts,
    bounds: typeof BOUNDS = BOUNDS,
  ) {
    this.#timers = timers
    this.#bounds = bounds
    const remotes = members.map((member) => new RemoteServer(member))
    this.#remotes = new Map(remotes.map((remote) => [remote.member.name, remote]))
    this.#self = new FleetReader('', address, own, clock)
    this.#readers = remotes.map((remote) => {
      const { name, origin } = remote.member
      const ask: Ask = (path) => {
        const question = { method: 'GET', path, body: undefined } as const
        return remote.ask(question, this.#bounds.read, this.#closed.signal)
      }
      return new FleetReader(name, origin, ask, clock)
    })
  }

  /** Throws InputError if a file of credentials can't be used. */
  check(): void {
    for (const remote of this.#remotes.values()) remote.check()
  }

  async list(): Promise<readonly FleetServer[]> {
    const all = [this.#self, ...this.#readers]
    for (const reader of all) reader.refresh()
    const first = all.flatMap(({ firstRead }) => (firstRead === undefined ? [] : [firstRead]))
    if (first.length > 0) await this.#wait(first)
    const isSelf = (reader: FleetReader): boolean => reader.process === this.#self.process
    const isNamed = this.#readers.some(isSelf)
    return [
      ...(isNamed ? [] : [this.#self.report(true)]),
      ...this.#readers.map((reader) => reader.report(isSelf(reader))),
    ]
  }

  async ask(name: string, question: FleetQuestion): Promise<FleetAnswer> {
    const remote = this.#remotes.get(name)
    if (remote !== undefined)
      return await remote.ask(question, this.#bounds.ask, this.#closed.signal)
    const names = [...this.#remotes.keys()].join(', ')
    const detail = names === '' ? 'the Corefile names no servers' : `it is not one of ${names}`
    return { kind: 'fault', status: 400, detail }
  }

  close(): void {
    this.#closed.abort()
  }

  async #wait(reads: readonly Promise<void>[]): Promise<void> {
    let stop = (): void => {}
    const late = new Promise<void>((resolve) => {
      stop = this.#timers.after(FIRST_MS, resolve)
    })
    await Promise.race([Promise.all(reads), late])
    stop()
  }
}

/** What was last read of one server. */
class FleetReader {
  readonly #name: string
  readonly #address: string
  readonly #ask: Ask
  readonly #clock: Clock
  #report: FleetReport | undefined
  #reading: Promise<void> | undefined
  #state: FleetServer['state'] = 'unread'
  #error = ''
  #beganMs = Number.NEGATIVE_INFINITY
  #reportMs = 0
  /** Identifies the process that was last read; '' = none. */
  process = ''

  constructor(name: string, address: string, ask: Ask, clock: Clock) {
    this.#name = name
    this.#address = address
    this.#ask = ask
    this.#clock = clock
  }

  /** The read in progress, if no read has ended. */
  get firstRead(): Promise<void> | undefined {
    return this.#state === 'unread' ? this.#reading : undefined
  }

  report(isSelf: boolean): FleetServer {
    const report = this.#report ?? null
    return {
      name: this.#name,
      address: this.#address,
      isSelf,
      state: this.#state,
      error: this.#error,
      ageSeconds: report === null ? null : (this.#clock.monotonic() - this.#reportMs) / 1000,
      report,
    }
  }

  /** Reads the server, unless it was read a moment ago. */
  refresh(): void {
    const nowMs = this.#clock.monotonic()
    if (this.#reading !== undefined || nowMs - this.#beganMs < INTERVAL_MS) return
    this.#beganMs = nowMs
    this.#reading = this.#read()
      .catch((error) => this.#fail(error instanceof Error ? error.message : String(error)))
      .finally(() => {
        this.#reading = undefined
      })
  }

  async #read(): Promise<void> {
    const [status, drains, traffic] = await Promise.all(
      ['/v1/status', '/v1/drains', TRAFFIC_PATH].map((path) => this.#ask(path)),
    )
    if (status?.kind !== 'reply') return this.#fail(status?.detail ?? '')
    const report = readFleetReport(status.json, jsonOf(drains), jsonOf(traffic))
    if (report === undefined) return this.#fail('the reply is not that of an admin API')
    this.#report = report
    this.#reportMs = this.#clock.monotonic()
    this.#state = 'up'
    this.#error = drains?.kind === 'fault' ? `drains: ${drains.detail}` : ''
    this.process = processOf(status.json)
  }

  #fail(reason: string): void {
    this.#state = 'down'
    this.#error = reason
  }
}

function jsonOf(answer: FleetAnswer | undefined): unknown {
  return answer?.kind === 'reply' ? answer.json : undefined
}
