import { networkInterfaces } from 'node:os'
import { readDevice } from '../../../transport/udp/xdp/device.ts'
import type { XdpKernel } from '../../../transport/udp/xdp/kernel.ts'
import type { BypassParts, BypassSite, PacketBypass } from '../bypass.ts'
import { addLosses, type PacketLosses } from '../packet-losses.ts'
import { XdpInterface } from './interface.ts'
import { interfacesOf, planRoutes, type XdpRoutePlan } from './routes.ts'

/** Time between two checks of the interfaces. */
const CHECK_MS = 1000

interface XdpPlaneParts extends BypassParts {
  readonly kernel: XdpKernel
}

/**
 * The interfaces whose packets bypass the UDP sockets. Each is reconciled after every change of the
 * sites, and once a second with the state of the machine.
 */
export class XdpPlane implements PacketBypass {
  readonly #parts: XdpPlaneParts
  readonly #interfaces = new Map<string, XdpInterface>()
  readonly #stopChecking: () => void
  #sites: readonly BypassSite[] = []
  #generation = 0
  /** The current step; the next one waits for it. */
  #turn: Promise<void> = Promise.resolve()
  #isBusy = false
  #isClosed = false

  constructor(parts: XdpPlaneParts) {
    this.#parts = parts
    this.#stopChecking = parts.timers.every(CHECK_MS, () => {
      if (!this.#isBusy) void this.#reconcile()
    })
  }

  setSites(generation: number, sites: readonly BypassSite[]): Promise<void> {
    this.#generation = generation
    this.#sites = sites
    for (const { plan } of sites) {
      for (const { interfaceName: name } of interfacesOf(plan)) {
        if (this.#interfaces.has(name)) continue
        this.#interfaces.set(name, new XdpInterface({ ...this.#parts, name }))
      }
    }
    for (const one of this.#interfaces.values()) one.hurry()
    return this.#reconcile()
  }

  retire(address: string): void {
    this.#sites = this.#sites.filter(({ plan }) => plan.address !== address)
    for (const [name, one] of this.#interfaces) one.retain(() => this.#plan(name)?.targets ?? [])
  }

  revive(thread: number): Promise<void> {
    return this.#inTurn(async () => {
      for (const one of this.#interfaces.values()) await one.revive(thread)
    })
  }

  get losses(): PacketLosses {
    const sum = { overloaded: 0, unbuffered: 0, unsent: 0, late: 0 }
    for (const { losses } of this.#interfaces.values()) addLosses(sum, losses)
    return sum
  }

  close(): Promise<void> {
    this.#isClosed = true
    this.#stopChecking()
    for (const one of this.#interfaces.values()) one.stop()
    return this.#inTurn(async () => {
      for (const one of this.#interfaces.values()) await one.close()
    })
  }

  #reconcile(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#isClosed) return
      // At the same time: one may have to wait for another process.
      const all = [...this.#interfaces].map(([name, one]) => {
        return one.reconcile(() => ({ plan: this.#plan(name), generation: this.#generation }))
      })
      await Promise.all(all)
    })
  }

  #plan(name: string): XdpRoutePlan | undefined {
    return planRoutes(this.#sites, {
      name,
      interfaces: networkInterfaces(),
      mac: () => printMac(readDevice(this.#parts.kernel, name)?.mac ?? new Uint8Array(0)),
    })
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    this.#isBusy = true
    const turn = this.#turn.then(step).finally(() => {
      if (this.#turn === turn) this.#isBusy = false
    })
    this.#turn = turn
    return turn
  }
}

/** As `os.networkInterfaces` prints it. */
function printMac(mac: Uint8Array): string {
  return Array.from(mac, (octet) => octet.toString(16).padStart(2, '0')).join(':')
}
