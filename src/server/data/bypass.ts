import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import type { QueryHandler } from '../../transport/exchange.ts'
import type { BatchLoop } from '../../transport/udp/batch/loop.ts'
import type { ListenPlan } from '../listen-plan.ts'
import type { DataListener } from './data-listener.ts'
import type { PacketLosses } from './packet-losses.ts'

/** One listen address whose packets may bypass its UDP sockets. */
export interface BypassSite {
  readonly plan: Pick<ListenPlan, 'address' | 'configs'>
  readonly listener: Pick<DataListener, 'port' | 'sockets' | 'socketOf'>
}

/** A way of packets to the data threads that bypasses the UDP sockets, on the control thread. */
export interface PacketBypass {
  readonly losses: PacketLosses
  /** The threads serve these sites with the instance `generation` from now on. Never rejects. */
  setSites(generation: number, sites: readonly BypassSite[]): Promise<void>
  /** Gives the packets of an address back to its UDP sockets at once, because they are closing. */
  retire(address: string): void
  /** Makes the replacement of a thread that ended serve what that thread served. */
  revive(thread: number): Promise<void>
  /** Gives all packets back. The threads must still run. */
  close(): Promise<void>
}

/** The data threads, as a bypass needs them. */
export interface BypassThreads {
  /**
   * Calls `ServeBypass` in a thread; `body` is cloned. Resolves to the reason for a failure; '' = the
   * thread serves the packets.
   */
  serve(thread: number, generation: number, body: unknown): Promise<string>
  /** Resolves once the thread has answered what has arrived, and serves the sockets no more. */
  detach(thread: number, fds: readonly number[]): Promise<void>
}

export interface BypassParts {
  readonly threads: BypassThreads
  readonly log: Logger
  readonly timers: Timers
}

/**
 * Makes `loop` serve what the control thread passed to `BypassThreads.serve`. `handlers`: by address
 * of the plan. Returns the reason for a failure; '' = done.
 */
export type ServeBypass = (
  loop: BatchLoop,
  body: unknown,
  handlers: ReadonlyMap<string, QueryHandler>,
) => string

/** Both ends of a bypass, with the modules that only one of them needs. */
export interface BypassKind {
  /** Rejects if this machine does not support it. */
  open(parts: BypassParts): Promise<PacketBypass>
  loadServe(): Promise<ServeBypass>
}
