import type { Listener, QueryHandler } from './exchange.ts'
import type { TcpLimits } from './tcp-limits.ts'

/** An address to serve. */
interface ListenPlace {
  /** An IP address; '' = every address, IPv4 and IPv6. */
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
}

interface DriverBase {
  /** For error messages. */
  readonly name: string
  /** What all its listeners dropped since the process started, by the fields of `Losses`. */
  readonly losses?: (() => Readonly<Record<string, number>>) | undefined
}

/** Serves datagrams. `P`: what it has to know of an address. */
export interface PacketDriver<P extends ListenPlace = ListenPlace> extends DriverBase {
  readonly kind: 'packets'
  /** Rejects with the system's error (EADDRINUSE, …) if the address can't be bound. */
  open(place: P, handler: QueryHandler): Promise<Listener>
}

/** Limits of a connection that the Corefile sets; see `TcpLimits`. */
export type ConnectionLimits = Pick<TcpLimits, 'readMs' | 'writeMs' | 'idleMs' | 'queriesMax'>

export interface StreamListener extends Listener {
  setLimits(limits: ConnectionLimits): void
}

/** Serves connections. */
export interface StreamDriver extends DriverBase {
  readonly kind: 'streams'
  /** As `PacketDriver.open`. */
  open(place: ListenPlace, handler: QueryHandler, limits: ConnectionLimits): Promise<StreamListener>
}
