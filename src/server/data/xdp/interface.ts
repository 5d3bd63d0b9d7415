import { LOOP_COUNTS, LoopCount } from '../../../transport/udp/batch/loop.ts'
import { Attachment, isBusy } from '../../../transport/udp/xdp/attachment.ts'
import { type Device, readDevice } from '../../../transport/udp/xdp/device.ts'
import { KernelError, type XdpKernel } from '../../../transport/udp/xdp/kernel.ts'
import type { Xsk } from '../../../transport/udp/xdp/xsk.ts'
import type { BypassParts } from '../bypass.ts'
import { addLosses, type PacketLosses } from '../packet-losses.ts'
import type { XdpRoutePlan } from './routes.ts'
import type { DataXdp } from './serve-xdp.ts'

interface XdpInterfaceParts extends BypassParts {
  readonly name: string
  readonly kernel: XdpKernel
}

/**
 * Waits between the first attempts while something is busy: each is twice as long as the one before. The
 * kernel needs a moment to release the queue of a socket that was closed.
 */
const WAIT_MS_MIN = 10
const WAIT_MS_MAX = 320
/**
 * Failures before it is logged that another process has the interface: during a take-over, the old
 * process has it until it ends.
 */
const BUSY_ATTEMPTS_MAX = 10
/** After this many failed attempts, only each of this many reconciles is an attempt. */
const FAILED_ATTEMPTS_MAX = 5
const SLOW_ATTEMPTS = 30

interface Queue {
  readonly xsk: Xsk
  readonly thread: number
  readonly counts: Float64Array
}

/** An interface with our program. */
interface Active {
  readonly attachment: Attachment
  /** Empty until all sockets are open. */
  queues: readonly Queue[]
  /** A change of it requires a new attachment. */
  basis: string
  /** The plan that threads and program follow; '' = not all of them do. */
  routes: string
  /** Packets go to the sockets. */
  isInUse: boolean
  plan: XdpRoutePlan
  generation: number
}

/** What an interface should do now. */
interface XdpGoal {
  /** Undefined = nothing. */
  readonly plan: XdpRoutePlan | undefined
  readonly generation: number
}

/**
 * Keeps one interface in the wanted state, whatever happens to it: it may be busy, down, gone, or get
 * other addresses. Whenever it can't be had, the UDP sockets get the packets.
 */
export class XdpInterface {
  readonly #parts: XdpInterfaceParts
  #active: Active | undefined
  /** Calls of `retain`. */
  #retained = 0
  /** Attempts in a row that failed, and the last reason that was logged. */
  #failures = 0
  #skipped = 0
  #isClosed = false
  #endWait: () => void = () => {}
  #complaint = ''
  /** Of closed sockets. */
  readonly #past: PacketLosses = { overloaded: 0, unbuffered: 0, unsent: 0, late: 0 }

  constructor(parts: XdpInterfaceParts) {
    this.#parts = parts
  }

  /** Makes the interface do what `goal` returns. Never rejects. Call it again only after it resolved. */
  async reconcile(goal: () => XdpGoal): Promise<void> {
    for (let waitMs = WAIT_MS_MIN; !this.#isClosed; waitMs *= 2) {
      try {
        await this.#reconcile(goal())
        return
      } catch (error) {
        const isPatient = this.#failures === 0 && waitMs <= WAIT_MS_MAX
        if (!isPatient || !(error instanceof KernelError && isBusy(error))) {
          await this.#end()
          this.#complain(error)
          return
        }
      }
      await this.#wait(waitMs)
    }
  }

  /** At once, gives the packets of all targets except these back to the UDP sockets. */
  retain(targets: () => XdpRoutePlan['targets']): void {
    this.#retained++
    if (this.#active === undefined || !this.#active.isInUse) return
    this.#active.routes = ''
    try {
      this.#active.attachment.setTargets(targets())
    } catch {
      this.#active.attachment.detach()
      // The next reconcile attaches anew.
      this.#active.basis = ''
    }
  }

  /** The next reconcile is an attempt, however many have failed, and its failure is logged. */
  hurry(): void {
    this.#failures = 0
    this.#complaint = ''
  }

  /** Gives the sockets of a thread to its replacement. */
  async revive(thread: number): Promise<void> {
    const active = this.#active
    if (active === undefined) return
    try {
      for (const queue of active.queues) {
        if (queue.thread === thread) await this.#serve(active, queue)
      }
    } catch (error) {
      await this.#end()
      this.#complain(error)
    }
  }

  get losses(): PacketLosses {
    const sum = { ...this.#past }
    for (const queue of this.#active?.queues ?? []) addLosses(sum, lossesOf(queue))
    return sum
  }

  /** Ends waits at once. */
  stop(): void {
    this.#isClosed = true
    this.#endWait()
  }

  /** Call it after `stop`, once `reconcile` has resolved. */
  async close(): Promise<void> {
    await this.#end()
  }

  async #reconcile({ plan, generation }: XdpGoal): Promise<void> {
    if (plan === undefined) {
      await this.#end()
      return
    }
    const { kernel, name } = this.#parts
    const device = readDevice(kernel, name)
    const basis = JSON.stringify([{ ...device, isUp: true }, plan.settings, plan.threads])
    if (this.#active !== undefined) {
      const isCutOff = this.#active.queues.some(({ xsk }) => xsk.isCutOff())
      if (isCutOff || this.#active.basis !== basis) await this.#end()
      // An interface that is down keeps its sockets: they work again when it is up.
      else if (device?.isUp === false) return
    }
    if (this.#active === undefined) {
      if (device === undefined) this.#warn('there is no such interface')
      else if (!device.isUp) this.#warn('the interface is down')
      if (!device?.isUp || this.#isTooEarly()) return
      this.#active = this.#attach(device, plan, generation, basis)
    }
    await this.#serveAll(this.#active, plan, generation)
  }

  #wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#parts.timers.after(milliseconds, resolve)
      this.#endWait = () => {
        cancel()
        resolve()
      }
    })
  }

  /** After some failures, attempts are rare. */
  #isTooEarly(): boolean {
    if (this.#failures < FAILED_ATTEMPTS_MAX + BUSY_ATTEMPTS_MAX) return false
    this.#skipped = (this.#skipped + 1) % SLOW_ATTEMPTS
    return this.#skipped !== 0
  }

  #attach(device: Device, plan: XdpRoutePlan, generation: number, basis: string): Active {
    const { mode, queues: wanted } = plan.settings
    const queues = wanted === 0 ? device.queues : Math.min(wanted, device.queues)
    const attachment = new Attachment(this.#parts.kernel, device, { mode, queues })
    return { attachment, queues: [], basis, routes: '', isInUse: false, plan, generation }
  }

  async #serveAll(active: Active, plan: XdpRoutePlan, generation: number): Promise<void> {
    const { attachment } = active
    if (active.queues.length === 0) {
      attachment.openSockets()
      active.queues = attachment.sockets.map((xsk, i) => {
        const counts = new Float64Array(new SharedArrayBuffer(LOOP_COUNTS * 8))
        return { xsk, thread: i % plan.threads, counts }
      })
    }
    const routes = routesOf(plan)
    if (active.routes === routes) return
    active.plan = plan
    active.generation = generation
    const retained = this.#retained
    // The threads first: until then they would drop the packets of a new target.
    for (const queue of active.queues) await this.#serve(active, queue)
    // An address of this plan has gone meanwhile: the next reconcile has a new plan.
    if (retained !== this.#retained) return
    attachment.setTargets(plan.targets)
    active.routes = routes
    this.#failures = 0
    this.#complaint = ''
    if (active.isInUse) return
    active.isInUse = true
    this.#parts.log.info(`xdp ${this.#parts.name}: ${attachment.description}`, 'xdp-attached')
  }

  async #serve(active: Active, { xsk, thread, counts }: Queue): Promise<void> {
    const { plan, generation, attachment } = active
    const xdp: DataXdp = {
      place: xsk.place,
      counts,
      mtuOctets: attachment.device.mtuOctets,
      lanes: plan.lanesOf(thread),
      targets: plan.targets,
      refused: plan.refused,
    }
    const fault = await this.#parts.threads.serve(thread, generation, xdp)
    if (fault !== '') throw new Error(fault)
  }

  /** Ends the redirection, answers what has arrived, and closes the sockets. */
  async #end(): Promise<void> {
    const active = this.#active
    if (active === undefined) return
    active.attachment.detach()
    const ended = active.queues.map(({ xsk, thread }) => {
      return this.#parts.threads.detach(thread, [xsk.place.fd])
    })
    // A thread that has ended has nothing to finish.
    await Promise.allSettled(ended)
    this.#active = undefined
    for (const queue of active.queues) addLosses(this.#past, lossesOf(queue))
    active.attachment.close()
  }

  #complain(error: unknown): void {
    this.#failures++
    if (error instanceof KernelError && isBusy(error) && this.#failures < BUSY_ATTEMPTS_MAX) return
    this.#warn(error instanceof Error ? error.message : String(error))
  }

  /** Logs each reason once, until a reload, or until the interface serves again. */
  #warn(reason: string): void {
    if (reason === this.#complaint) return
    this.#complaint = reason
    const { log, name } = this.#parts
    log.warning(`xdp ${name}: its packets go to the UDP sockets: ${reason}`, 'xdp-failed')
  }
}

/** Equal text means equal routes. */
function routesOf(plan: XdpRoutePlan): string {
  const lanes = Array.from({ length: plan.threads }, (_, thread) => plan.lanesOf(thread))
  const targets = plan.targets.map((one) => [[...one.address], one.family, one.port, one.lane])
  const refused = plan.refused.map(({ address }) => [...address])
  return JSON.stringify([lanes, targets, refused])
}

function lossesOf({ counts, xsk }: Queue): PacketLosses {
  const [overloaded, unsent] = [counts[LoopCount.Dropped]!, counts[LoopCount.SendErrors]!]
  // A receive queue holds 2 048 queries: they never wait long.
  return { overloaded, unbuffered: xsk.dropped(), unsent, late: 0 }
}
