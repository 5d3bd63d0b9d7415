import type { Listener, QueryHandler } from './exchange.ts'
import type { TcpLimits } from './tcp-limits.ts'

/** The schemes of server block keys that this version serves. `src/cli/compose.ts` lists the drivers of each. */
export const SERVED_SCHEMES = ['dns'] as const
export type ServedScheme = (typeof SERVED_SCHEMES)[number]

/** An address to serve. */
export interface ListenPlace {
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

export interface PacketListener<P extends ListenPlace = ListenPlace> extends Listener {
  /** Later packets have the settings of `place`. Its host and port are those of the listener. Absent = none change. */
  setPlace?(place: P): void
}

/** Serves datagrams. `P`: what it has to know of an address. */
export interface PacketDriver<P extends ListenPlace = ListenPlace> extends DriverBase {
  readonly kind: 'packets'
  /** Rejects with the system's error (EADDRINUSE, …) if the address can't be bound. */
  open(place: P, handler: QueryHandler): Promise<PacketListener<P>>
}

/** An address that serves connections. */
export interface StreamPlace extends ListenPlace {
  /** The limits that the Corefile sets; see `TcpLimits`. */
  readonly timeouts: Pick<TcpLimits, 'readMs' | 'writeMs' | 'idleMs' | 'queriesMax'>
}

export interface StreamListener<P extends StreamPlace = StreamPlace> extends Listener {
  /** Later connections have the settings of `place`. Its host and port are those of the listener. */
  setPlace(place: P): void
}

/** Serves connections. `P`: as in `PacketDriver`. */
export interface StreamDriver<P extends StreamPlace = StreamPlace> extends DriverBase {
  readonly kind: 'streams'
  /** As `PacketDriver.open`. */
  open(place: P, handler: QueryHandler): Promise<StreamListener<P>>
}

/** Opens a socket on `host`. '' = every address, or every IPv4 address if the machine has no IPv6. */
export async function openHost<T>(host: string, open: (host: string) => Promise<T>): Promise<T> {
  if (host !== '') return open(host)
  try {
    return await open('::')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'EAFNOSUPPORT' && code !== 'EADDRNOTAVAIL') throw error
    return open('0.0.0.0')
  }
}
