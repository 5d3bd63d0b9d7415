import { Backoff } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Timers } from '../base/timers.ts'
import { errorOf, OvsdbConnection, OvsdbError } from './connection.ts'
import { type ColumnKinds, isRecord, type OvsdbRow } from './datum.ts'
import { type OvsdbTlsFiles, openSocket } from './open-socket.ts'
import { type OvsdbRemote, printRemote } from './remote.ts'
import { type MonitoredTable, type RowListener, TableCache } from './table-cache.ts'

/** Has a row for each database of a server (ovsdb-server(5)); servers before 2.9 lack it. */
const SERVER_DATABASE = '_Server'
/** Transactions without a reply. More would only fill buffers: the server runs one at a time. */
const IN_FLIGHT_MAX = 64
const CLOSED = 'the client is closed'
/** A connection that lasts so long counts as a success. */
const STABLE_MS = 10_000
const SERVER_COLUMNS: ColumnKinds = {
  name: 'atom',
  model: 'atom',
  connected: 'atom',
  leader: 'atom',
}

export interface OvsdbClientOptions {
  /** The servers of one database: a cluster, or one of them. Not empty. */
  readonly remotes: readonly OvsdbRemote[]
  readonly tls: OvsdbTlsFiles | undefined
  readonly database: string
  readonly monitored: MonitoredTable
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
  /** Called after a monitored row has changed. */
  readonly onRow: RowListener
  /** Called after each connection once all rows are known: they may differ from those before. */
  readonly onSync: () => void
}

/** The result of one operation of a transaction (RFC 7047 section 5.2). */
export interface OperationResult {
  /** Rows that an update or a delete found. */
  readonly count: number
  /** Rows of a select, as JSON. */
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}

/**
 * A client of one OVSDB database (RFC 7047). It stays connected to the leader of the cluster and
 * follows the rows of one table:
 *
 *     connect ─▶ is it the leader? ─▶ monitor ─▶ synced ─▶ (connection lost, another leader) connect …
 *                     └─ no ─▶ the next remote
 */
export class OvsdbClient {
  readonly #options: OvsdbClientOptions
  readonly #cache: TableCache
  readonly #backoff: Backoff
  #connection: OvsdbConnection | undefined
  #isSynced = false
  #isClosed = false
  #reason = 'not connected yet'
  /** The last fault of each remote since the client was connected: each is logged once. */
  readonly #logged = new Map<OvsdbRemote, string>()
  /** Transactions that wait for a connection, or for the reply to another one. */
  readonly #waiting: (() => void)[] = []
  #inFlight = 0
  #wake: () => void = () => {}

  constructor(options: OvsdbClientOptions) {
    this.#options = options
    this.#backoff = new Backoff(options.random)
    const { columns } = options.monitored
    this.#cache = new TableCache(columns, (before, after) => {
      if (this.#isSynced) options.onRow(before, after)
    })
  }

  start(): void {
    void this.#run()
  }

  /** Why the client is not connected to the leader now; '' = it is. */
  get reason(): string {
    return this.#isSynced ? '' : this.#reason
  }

  /** The monitored rows, as of the last time that the client was connected. */
  get rows(): Iterable<OvsdbRow> {
    return this.#cache.rows.values()
  }

  /**
   * Runs operations as one transaction: all or none. Waits for a connection first. Rejects with
   * OvsdbError if the server refuses one of them. If the connection breaks before the reply, the
   * code is '', and the transaction may have been committed.
   */
  async transact(operations: readonly object[]): Promise<readonly OperationResult[]> {
    if (this.#canSend) this.#inFlight++
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    const params = [this.#options.database, ...operations]
    try {
      if (this.#isClosed || this.#connection === undefined) throw new OvsdbError('', CLOSED)
      return await this.#connection.request('transact', params, (reply) =>
        readResults(reply, operations.length),
      )
    } finally {
      this.#inFlight--
      this.#release()
    }
  }

  /** Closes the connection. Transactions without a reply, and later ones, reject. */
  close(): void {
    this.#isClosed = true
    this.#wake()
    this.#connection?.close(CLOSED)
    this.#release()
  }

  async #run(): Promise<void> {
    const { remotes } = this.#options
    for (let i = 0; !this.#isClosed; i = (i + 1) % remotes.length) {
      const remote = remotes[i]!
      const startMs = this.#options.clock.monotonic()
      await this.#connect(remote)
      if (this.#options.clock.monotonic() - startMs >= STABLE_MS) this.#backoff.reset()
      // The others of a cluster are tried at once. The wait also slows a server that accepts clients
      // and then fails.
      if (i === remotes.length - 1) await this.#pause()
    }
  }

  /** Serves until the connection ends. */
  async #connect(remote: OvsdbRemote): Promise<void> {
    const { tls, timers, clock, log } = this.#options
    let fault: string
    try {
      const socket = await openSocket(remote, tls, timers)
      let end = (_reason: string): void => {}
      const closed = new Promise<string>((resolve) => (end = resolve))
      const server = new TableCache(SERVER_COLUMNS, () => {
        const why = this.#unfitness(server)
        if (why !== '') connection.close(why)
      })
      const connection = new OvsdbConnection(socket, {
        clock,
        timers,
        onNotification: (method, params) => this.#take(connection, server, method, params),
        onClose: end,
      })
      this.#connection = connection
      if (this.#isClosed) connection.close(CLOSED)
      try {
        await this.#open(connection, server)
        // A fault in the same packet as the last reply has closed it.
        if (!connection.isClosed) {
          log.info(`ovsdb: connected to ${printRemote(remote)}`, 'ovsdb-connected')
          this.#sync()
        }
      } catch (error) {
        connection.close(textOf(error))
      }
      fault = await closed
    } catch (error) {
      fault = textOf(error)
    }
    this.#isSynced = false
    this.#reason = `${printRemote(remote)}: ${fault}`
    if (this.#isClosed || this.#logged.get(remote) === fault) return
    this.#logged.set(remote, fault)
    log.warning(`ovsdb: ${this.#reason}; retrying`, 'ovsdb-failed')
  }

  /** Rejects if the server is not fit to be used. */
  async #open(connection: OvsdbConnection, server: TableCache): Promise<void> {
    const { database, monitored } = this.#options
    const databases = await connection.request('list_dbs', [], (names) => {
      return Array.isArray(names) ? names : []
    })
    if (databases.includes(SERVER_DATABASE)) {
      const where = [['name', '==', database]]
      const table = { table: 'Database', columns: SERVER_COLUMNS, where }
      await monitor(connection, SERVER_DATABASE, table, server)
      const why = this.#unfitness(server)
      if (why !== '') throw new Error(why)
    } else if (!databases.includes(database)) {
      throw new Error(`the server has no database ${database}`)
    }
    await monitor(connection, database, monitored, this.#cache)
  }

  /** Why transactions cannot be sent to this server; '' = they can. */
  #unfitness(server: TableCache): string {
    const { database } = this.#options
    const [row] = server.rows.values()
    if (row === undefined) return `the server has no database ${database}`
    if (row.model !== 'clustered') return ''
    if (row.connected !== true) return `the server is not connected to the cluster of ${database}`
    return row.leader === true ? '' : `the server is not the leader of ${database}`
  }

  #sync(): void {
    this.#isSynced = true
    this.#logged.clear()
    this.#options.onSync()
    this.#release()
  }

  #take(
    connection: OvsdbConnection,
    server: TableCache,
    method: string,
    params: readonly unknown[],
  ): void {
    if (method !== 'update2') return
    const [database, updates] = params
    const isServer = database === SERVER_DATABASE
    const { table } = isServer ? { table: 'Database' } : this.#options.monitored
    const cache = isServer ? server : this.#cache
    const fault = isRecord(updates) ? cache.apply(updates[table], false) : 'received no updates'
    if (fault !== '') connection.close(fault)
  }

  get #canSend(): boolean {
    return this.#isClosed || (this.#isSynced && this.#inFlight < IN_FLIGHT_MAX)
  }

  /** Lets transactions go that waited. */
  #release(): void {
    while (this.#waiting.length > 0 && this.#canSend) {
      this.#inFlight++
      this.#waiting.shift()?.()
    }
  }

  async #pause(): Promise<void> {
    if (this.#isClosed) return
    await new Promise<void>((resolve) => {
      const cancel = this.#options.timers.after(this.#backoff.next(), resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }
}

/** Fills `cache`; the monitor has the name of its database. */
async function monitor(
  connection: OvsdbConnection,
  database: string,
  { table, columns, where }: MonitoredTable,
  cache: TableCache,
): Promise<void> {
  const request = { [table]: [{ columns: Object.keys(columns), where }] }
  // An update may follow in the same packet, so the rows must be in the cache before it is taken.
  await connection.request('monitor_cond', [database, database, request], (reply) => {
    const fault = isRecord(reply) ? cache.apply(reply[table], true) : 'received no tables'
    if (fault !== '') throw new Error(fault)
  })
}

/** A refused operation has an error, those after it have null, and the commit may have one as well. */
function readResults(reply: unknown, count: number): readonly OperationResult[] {
  if (!Array.isArray(reply)) throw new OvsdbError('', 'received an invalid reply to a transaction')
  const refused = reply.find((result) => isRecord(result) && typeof result.error === 'string')
  if (refused !== undefined) throw errorOf(refused)
  if (reply.length < count) throw new OvsdbError('', 'received too few results of a transaction')
  return reply.map((result) => {
    const { count, rows } = isRecord(result) ? result : {}
    return {
      count: typeof count === 'number' ? count : 0,
      rows: Array.isArray(rows) ? rows.filter(isRecord) : [],
    }
  })
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
