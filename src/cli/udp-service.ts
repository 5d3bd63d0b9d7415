import { availableParallelism } from 'node:os'
import { InputError } from '../base/errors.ts'
import { systemTimers } from '../base/timers.ts'
import { BYPASSES } from '../server/data/bypasses.ts'
import { DataPlane, type DataPlaneParts } from '../server/data/data-plane.ts'
import type { ListenPlan } from '../server/listen-plan.ts'
import type { PacketDriver, PacketListener } from '../transport/driver.ts'
import type { QueryHandler } from '../transport/exchange.ts'
import { ReusePortBinder } from '../transport/handover/reuse-port-binder.ts'
import { chooseGrouping } from '../transport/udp/batch/grouping/choose-grouping.ts'
import { loadLibc } from '../transport/udp/batch/libc.ts'
import { type ChosenUdp, chooseUdp } from '../transport/udp/choose.ts'
import { RECEIVE_BUFFER_OCTETS, SEND_BUFFER_OCTETS } from '../transport/udp/udp.ts'
import { MAX_QUERY_AGE_MS_DEFAULT } from './serve-args.ts'
import { startDataThread } from './start-data-thread.ts'

type UdpServiceParts = Omit<
  DataPlaneParts,
  'libc' | 'start' | 'groupsReplies' | 'socketsDefault' | 'timers'
>

const NO_LOSSES = { overloaded: 0, unsent: 0 }

/**
 * Serves UDP for this process. The way is chosen when the first socket is needed, so commands that
 * open none load nothing and print nothing.
 */
export class UdpService implements PacketDriver<ListenPlan> {
  readonly kind = 'packets'
  readonly name = 'udp'
  readonly #parts: UdpServiceParts
  /** Loaded where batches are not available. */
  #dgram: PacketDriver<ListenPlan> | undefined
  #chosen: ChosenUdp | undefined
  /** Undefined if node:dgram serves UDP. */
  plane: DataPlane | undefined
  reusePortBinder: ReusePortBinder | undefined

  constructor(parts: UdpServiceParts) {
    this.#parts = parts
  }

  /** Those of node:dgram; the data plane reports its own. */
  get losses(): PacketDriver['losses'] {
    return () => this.#dgram?.losses?.() ?? NO_LOSSES
  }

  /** Text for the log; undefined = not chosen yet. */
  get description(): string | undefined {
    return this.#chosen?.description
  }

  /** Throws an InputError if the environment or the command line forces a way that is not available. */
  choose(): void {
    if (this.#chosen !== undefined) return
    const { takesOver, maxQueryAgeMs, log } = this.#parts
    const { kind, description } = chooseUdp(process.env.SEXTANT_UDP)
    this.#chosen = { kind, description }
    if (kind === 'batch') {
      const grouping = chooseGrouping(process.env.SEXTANT_GSO)
      this.#chosen = { kind, description: description + grouping.description }
      this.reusePortBinder = new ReusePortBinder(loadLibc(), takesOver, (text) =>
        log.warning(text, 'udp-fallback'),
      )
      this.plane = this.#createPlane(grouping.groups)
      return
    }
    // The default is only a wish.
    const isAgeAsked = maxQueryAgeMs !== 0 && maxQueryAgeMs !== MAX_QUERY_AGE_MS_DEFAULT
    const ofAge = isAgeAsked ? '-max-query-age' : ''
    const flag = takesOver ? '-takeover' : ofAge
    if (flag === '') return
    throw new InputError(undefined, `${flag} requires batched UDP, but UDP is ${description}`)
  }

  async open(plan: ListenPlan, handler: QueryHandler): Promise<PacketListener<ListenPlan>> {
    this.choose()
    if (this.plane !== undefined) return this.plane.open(plan, handler)
    for (const name of Object.keys(BYPASSES)) {
      if (!plan.configs.some(({ directives }) => directives.includes(name))) continue
      const reason = `because UDP is ${this.description}`
      this.#parts.log.warning(
        `${plan.address}: "${name}" is ignored, ${reason}`,
        'udp-setting-ignored',
      )
    }
    return (await this.#loadDgram()).open(plan, handler)
  }

  async #loadDgram(): Promise<PacketDriver<ListenPlan>> {
    const { dgramDriver } = await import('../transport/udp/dgram.ts')
    this.#dgram ??= dgramDriver({
      receiveBufferOctets: RECEIVE_BUFFER_OCTETS,
      sendBufferOctets: SEND_BUFFER_OCTETS,
    })
    return this.#dgram
  }

  #createPlane(groupsReplies: boolean): DataPlane {
    const plane = new DataPlane({
      ...this.#parts,
      libc: loadLibc(),
      start: startDataThread,
      groupsReplies,
      socketsDefault: availableParallelism(),
      timers: systemTimers,
    })
    // The process waits for its threads, which sleep in a system call.
    process.on('exit', () => plane.halt())
    return plane
  }
}
