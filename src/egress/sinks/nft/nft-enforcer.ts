import type { Clock } from '../../../base/clock.ts'
import type { Timers } from '../../../base/timers.ts'
import type { Client } from '../../agent/client.ts'
import { Waiters } from '../../gate.ts'
import type { AddressPair, Allowance, Enforcer } from '../enforcer.ts'
import { Adoption } from './adoption.ts'
import { ClientProfiles, type MapEntry } from './client-profiles.ts'
import { type EgressTableOptions, lostRules, tableChains } from './egress-table.ts'
import { writeElements } from './element-statements.ts'
import { type Element, ElementStore, isInForce, REFRESH_MS } from './element-store.ts'
import { applyListing } from './kernel-elements.ts'
import { KernelTable } from './kernel-table.ts'
import type { Nft } from './nft.ts'
import { Retries } from './retries.ts'
import type { TableListing } from './table-listing.ts'

/** Elements of one transaction, so that none takes long. */
const BATCH = 2000
const GLANCE_MS = 10_000
const CHECK_MS = 60_000
/** Longest listing beside transactions, which interrupt it. After that, they wait for one. */
const ADOPT_MS = 5000
const UNKNOWN = Number.POSITIVE_INFINITY

export interface NftEnforcerOptions extends EgressTableOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** The kernel changes the timeout of an element that is added again: Linux 6.12 or later. */
  readonly canRefresh: boolean
  /** True for addresses that no name may allow: what an earlier process let clients connect to there is removed. */
  readonly isDenied: (address: string) => boolean
  /** Makes the programs. They call `onEnd` when the one that waits for transactions has ended. */
  readonly nft: (onEnd: (reason: string) => void) => Nft
  /** Called when transactions begin to fail, with the reason, and with '' when they succeed again. */
  readonly onFault: (fault: string) => void
  /** Called with what was repaired because others had changed the table. */
  readonly onRepair: (what: string) => void
}

/** Numbers since the start. */
interface NftEnforcerCounts {
  transactions: number
  failures: number
  /** Elements that were added, refreshed or removed. */
  elements: number
  /** Times that the whole table was written. */
  resyncs: number
  /** Elements, maps and tables that others had changed or removed. */
  repaired: number
  /** Comparisons with the kernel that failed, for example because of too many transactions. */
  missedChecks: number
}

/**
 * Enforces the rules of clients by one table of nftables. One transaction is in progress at a time; what
 * changes meanwhile becomes the next one. After a failure, it lists what the kernel has: elements of clients
 * that are the same stay. The table stays when this ends.
 *
 *     start ─▶ glance ── a client has changed ─▶ list all ─▶ first transaction
 *                 └───── all are the same ─────▶ first transaction, and replies ─▶ adopt: list all
 */
export class NftEnforcer implements Enforcer {
  readonly #options: NftEnforcerOptions
  readonly #nft: Nft
  readonly #profiles: ClientProfiles
  readonly #store: ElementStore
  readonly #waiters = new Waiters()
  readonly #cancels: readonly (() => void)[]
  readonly #adoption: Adoption
  #hasGlanced = false
  /** The clients of the kernel at the start, until its elements are listed. */
  #entries: ReadonlyMap<string, MapEntry> | undefined
  readonly #table: KernelTable
  readonly #retries: Retries
  #running: Promise<void> | undefined
  #isClosed = false
  /** Set while refreshes wait for their time. */
  #cancelRefresh: (() => void) | undefined
  #isGlancing = false
  /** Keys of the elements that were written since the listing in progress began. */
  #touched: Set<string> | undefined
  readonly counts: NftEnforcerCounts = {
    transactions: 0,
    failures: 0,
    elements: 0,
    resyncs: 0,
    repaired: 0,
    missedChecks: 0,
  }

  constructor(options: NftEnforcerOptions) {
    this.#options = options
    this.#profiles = new ClientProfiles(options.table)
    this.#store = new ElementStore(options.elementsMax)
    this.#adoption = new Adoption(this.#store)
    this.#table = new KernelTable(options)
    this.#retries = new Retries(options.timers)
    this.#nft = options.nft((reason) => this.#noteEnd(reason))
    const { timers } = options
    this.#cancels = [
      timers.every(GLANCE_MS, () => void this.glance()),
      timers.every(CHECK_MS, () => void this.check()),
    ]
  }

  /** Number of elements. */
  get size(): number {
    return this.#store.size
  }

  /** Elements that were refused because their set was full. */
  get refused(): number {
    return this.#store.refused
  }

  setClients(clients: readonly Client[], isComplete = true): Promise<string> {
    const changes = this.#profiles.set(clients, isComplete)
    for (const [address, change] of changes) {
      this.#store.removeClient(address, ({ origin }) => change === 'rules' && origin === 'declared')
    }
    const { version } = this.#profiles
    // What the earlier process allowed to a client that has changed is removed along with its rules.
    if (this.#entries !== undefined && this.#profiles.differFrom(this.#entries))
      this.#table.isStale = true
    this.#commit()
    return this.#wait(() => !this.#table.mustRecreate && this.#profiles.versionInForce >= version)
  }

  allow(pair: AddressPair, allowances: readonly Allowance[]): Promise<string> | undefined {
    if (!this.#profiles.has(pair.client)) return Promise.resolve(`${pair.client} is not a client`)
    this.#adoption.note(pair)
    const nowMs = this.#options.clock.monotonic()
    const missing: Element[] = []
    const fault = this.#store.allow(pair, allowances, nowMs, missing)
    if (missing.length > 0) this.#commit()
    else this.#refreshLater()
    if (fault !== '') return Promise.resolve(fault)
    if (missing.length === 0) return undefined
    // The first retry comes soon. If that has failed too, a reply need not wait for the next one.
    if (this.#retries.count > 1) return Promise.resolve(this.#retries.fault)
    return this.#wait((nowMs) => missing.every((element) => isInForce(element, nowMs)))
  }

  adopt(): Promise<string> {
    this.#store.isExact = true
    void this.#adopt()
    return this.#wait(() => this.#adoption.isOver && !this.#table.isStale)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const cancel of this.#cancels) cancel()
    this.#retries.close()
    this.#cancelRefresh?.()
    await this.#running
    this.#waiters.finishAll('closed')
    await this.#nft.close()
  }

  /** Forgets and refreshes elements. Repairs the table if others removed it, a chain, or a client. */
  async glance(): Promise<void> {
    this.#store.expire(this.#options.clock.monotonic())
    this.#refreshLater()
    this.#finishWaiters('')
    if (!this.#isSettled() || this.#isGlancing) return
    const { writes } = this.#profiles
    let listing: TableListing | undefined
    this.#isGlancing = true
    try {
      listing = await this.#nft.glance()
    } catch {
      this.counts.missedChecks++
      return
    } finally {
      this.#isGlancing = false
    }
    if (!this.#isSettled() || writes !== this.#profiles.writes) return
    const names = [...tableChains(this.#options), ...this.#profiles.chains()]
    const lost = names.find(({ name }) => listing?.chains.has(name) !== true)
    if (listing === undefined) this.#repairTable('the table')
    else if (lost !== undefined) this.#repairTable(`chain ${lost.name}`)
    else if (!this.#profiles.isEqual(listing)) {
      this.counts.repaired++
      this.#profiles.distrust()
      this.#options.onRepair('the clients')
      this.#commit()
    }
  }

  /** Compares all of the table with what is wanted, and repairs it. */
  async check(): Promise<void> {
    if (!this.#isSettled() || this.#touched !== undefined || this.#entries !== undefined) return
    const { writes } = this.#profiles
    const touched = new Set<string>()
    this.#touched = touched
    const startMs = this.#options.clock.monotonic()
    try {
      const listing = await this.#nft.list()
      if (this.#table.isStale || this.#isClosed) return
      const isSame = writes === this.#profiles.writes && this.#isSettled()
      const lost = isSame ? this.#lostIn(listing) : undefined
      if (lost !== undefined) this.#repairTable(lost)
      else if (listing !== undefined) await this.#compare(listing, startMs, touched)
    } catch {
      this.counts.missedChecks++
    } finally {
      this.#touched = undefined
    }
    this.#commit()
  }

  async #compare(
    listing: TableListing,
    startMs: number,
    touched: ReadonlySet<string>,
  ): Promise<void> {
    const entries = this.#profiles.entriesOf(listing)
    const differences = await applyListing(this.#store, {
      listing,
      startMs,
      endMs: this.#options.clock.monotonic(),
      origin: 'foreign',
      mayKeep: ({ pair }) => this.#profiles.mayKeep(pair.client, entries.get(pair.client)),
      isTouched: (set, text) => touched.has(`${set} ${text}`),
    })
    if (differences === 0) return
    this.counts.repaired += differences
    this.#options.onRepair(`${differences} elements`)
  }

  #lostIn(listing: TableListing | undefined): string | undefined {
    return listing === undefined
      ? 'the table'
      : lostRules(listing, this.#profiles.chains(), this.#options)
  }

  #repairTable(what: string): void {
    this.counts.repaired++
    this.#table.distrust()
    this.#options.onRepair(what)
    this.#commit()
  }

  /** True if the kernel is expected to have the clients and the chains that are wanted. */
  #isSettled(): boolean {
    if (this.#table.isStale || this.#isClosed || this.#retries.isWaiting) return false
    return this.#profiles.isInForce
  }

  #wait(isDone: (nowMs: number) => boolean): Promise<string> {
    if (this.#isClosed) return Promise.resolve('closed')
    if (isDone(this.#options.clock.monotonic())) return Promise.resolve('')
    return this.#waiters.wait(isDone)
  }

  #finishWaiters(fault: string): void {
    if (fault !== '') this.#waiters.finishAll(fault)
    else this.#waiters.finish(this.#options.clock.monotonic())
  }

  /** Starts a transaction if something is to be written and none is in progress. */
  #commit(): void {
    if (this.#running !== undefined || this.#isClosed || this.#retries.isWaiting) return
    if (!this.#profiles.areKnown) return
    const isClean = this.#profiles.isInForce && this.#store.changed.size === 0
    if (!this.#table.isStale && isClean) return
    if (!this.#isUrgent()) return
    this.#running = this.#run()
  }

  /** No reply waits for a refresh, or for a transaction that has one. One has those of many answers. */
  #refreshLater(): void {
    if (this.#cancelRefresh !== undefined || this.#store.changed.size === 0) return
    this.#cancelRefresh = this.#options.timers.after(REFRESH_MS, () => {
      this.#cancelRefresh = undefined
      this.#commit()
    })
  }

  /** False: all that is to be written are refreshes whose time has not come. */
  #isUrgent(): boolean {
    if (this.#table.isStale || !this.#profiles.isInForce) return true
    return this.#cancelRefresh === undefined || this.#store.urgent.size > 0
  }

  async #run(): Promise<void> {
    // What is called in the same turn becomes one transaction.
    await Promise.resolve()
    let fault = ''
    if (this.#table.isStale && !(await this.#glanceFirst())) fault = await this.#read()
    if (fault === '') fault = await this.#write()
    this.#running = undefined
    if (fault !== '') this.#fail(fault)
    else {
      if (this.#retries.count > 0) this.#options.onFault('')
      this.#retries.reset()
    }
    this.#finishWaiters(fault)
    this.#commit()
  }

  /** Notes what the kernel has. Returns what went wrong; '' = nothing. */
  async #read(): Promise<string> {
    const startMs = this.#options.clock.monotonic()
    let listing: TableListing | undefined
    try {
      listing = await this.#nft.list()
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
    const entries = this.#profiles.read(listing)
    this.#table.noteListing(listing ?? NO_LISTING)
    this.#store.forgetKernel()
    await this.#adoptListing(listing ?? NO_LISTING, startMs, this.#entries ?? entries)
    this.#entries = undefined
    this.#adoption.finish()
    this.#table.isStale = false
    this.#profiles.distrust()
    return ''
  }

  /**
   * At the start, notes the clients that the kernel has, and the ranges, because no other may overlap them. Returns
   * false if its elements must be listed before the first transaction.
   */
  async #glanceFirst(): Promise<boolean> {
    if (this.#hasGlanced) return false
    this.#hasGlanced = true
    const startMs = this.#options.clock.monotonic()
    const listing = await this.#nft.glance(['range4', 'range6']).catch(() => undefined)
    if (!this.#table.isOurs(listing)) return false
    const entries = this.#profiles.entriesOf(listing)
    if (this.#profiles.differFrom(entries)) return false
    this.#profiles.read(listing)
    this.#entries = entries
    this.#table.isStale = false
    this.#profiles.distrust()
    await this.#adoptListing(listing, startMs, entries)
    // A client may have changed meanwhile.
    return !this.#table.isStale
  }

  async #adopt(): Promise<void> {
    if ((await this.#wait(() => !this.#table.isStale)) !== '') return
    if (this.#entries !== undefined) await this.#listBeside(this.#entries)
    if (this.#table.isStale || this.#isClosed) return
    if (this.#entries === undefined) this.#adoption.finish()
    else this.#table.isStale = true
    this.#commit()
    this.#finishWaiters('')
  }

  /** Lists the elements of the earlier process while transactions continue, which may interrupt it for too long. */
  async #listBeside(entries: ReadonlyMap<string, MapEntry>): Promise<void> {
    const touched = new Set<string>()
    this.#touched = touched
    const startMs = this.#options.clock.monotonic()
    try {
      const listing = await this.#nft.list(ADOPT_MS)
      if (listing === undefined || this.#table.isStale || this.#isClosed) return
      await this.#adoptListing(listing, startMs, entries, touched)
      this.#entries = undefined
    } catch {
      this.counts.missedChecks++
    } finally {
      this.#touched = undefined
    }
  }

  /** `entries`: the clients for which the elements were added. */
  async #adoptListing(
    listing: TableListing,
    startMs: number,
    entries: ReadonlyMap<string, MapEntry>,
    touched: ReadonlySet<string> = new Set(),
  ): Promise<void> {
    await applyListing(this.#store, {
      listing,
      startMs,
      endMs: this.#options.clock.monotonic(),
      origin: this.#adoption.isOver ? 'foreign' : 'adopted',
      mayKeep: ({ pair }) =>
        !this.#options.isDenied(pair.address) &&
        this.#profiles.mayKeep(pair.client, entries.get(pair.client)),
      isTouched: (set, text) => touched.has(`${set} ${text}`),
    })
  }

  /** Writes what has changed as one transaction. Returns what went wrong; '' = nothing. */
  async #write(): Promise<string> {
    const { table, clock, canRefresh } = this.#options
    const isWhole = this.#table.mustRecreate
    const mustWriteClients = isWhole || !this.#profiles.isInForce
    const statements = this.#table.statements()
    const clients = mustWriteClients ? this.#profiles.write(isWhole) : undefined
    if (clients !== undefined) statements.push(...clients.statements)
    // What a client was allowed is removed along with the client.
    const ready =
      this.#cancelRefresh === undefined ? BATCH : Math.min(BATCH, this.#store.urgent.size)
    const most = mustWriteClients ? UNKNOWN : ready
    const nowMs = clock.monotonic()
    const elements = isWhole ? this.#store.takeAll(nowMs) : this.#store.take(most, nowMs)
    const write = writeElements(table, elements, nowMs, { isEmpty: isWhole, canRefresh })
    for (const [element, kernelMs] of write.written) element.writingMs = kernelMs
    statements.push(...write.statements)
    const fault = statements.length === 0 ? '' : await this.#nft.commit(statements)
    this.#noteWritten(write.written, fault)
    if (fault !== '') return fault
    this.#table.noteWritten()
    if (isWhole) this.counts.resyncs++
    if (clients !== undefined) this.#profiles.noteWritten(clients)
    return ''
  }

  #noteWritten(written: ReadonlyMap<Element, number>, fault: string): void {
    this.counts.transactions++
    if (fault === '') this.counts.elements += written.size
    if (this.#touched !== undefined) {
      for (const { set, text } of written.keys()) this.#touched.add(`${set} ${text}`)
    }
    for (const [element, kernelMs] of written) {
      this.#store.noteWritten(element, fault === '' ? kernelMs : UNKNOWN)
    }
  }

  #fail(fault: string): void {
    this.counts.failures++
    this.#table.isStale = true
    // The table may not be what it is thought to be.
    if (fault.startsWith('Error: ')) this.#table.distrust()
    if (this.#retries.count === 0) this.#options.onFault(fault)
    this.#retries.fail(fault, () => this.#commit())
    if (this.#isClosed) this.#retries.close()
  }

  /** nft has ended. A transaction in progress fails by itself. */
  #noteEnd(reason: string): void {
    if (this.#isClosed || this.#running !== undefined) return
    this.#fail(reason)
  }
}

const NO_LISTING: TableListing = { chains: new Map(), elements: new Map() }
