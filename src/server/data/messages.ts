import type { ServerBlock } from '../../corefile/parser.ts'
import type { SlotLabels } from '../../plugin/counter-slots.ts'
import type { WakeCall } from '../../transport/udp/batch/wake.ts'

/** What a data thread is started with. */
export interface DataThreadInit {
  readonly wake: WakeCall
  /** Log lines and uplinks (base/ring). */
  readonly ring: SharedArrayBuffer
  /** One word, shared: messages that queries caused and that were not taken yet. */
  readonly pending: Int32Array
  /** Key of server cookies, the same in all threads. */
  readonly cookieKey: Uint8Array
  /** Whether replies to the same peer may go together (transport/udp/batch/outbox). */
  readonly groupsReplies: boolean
  /** Of the thread's random numbers. */
  readonly seed: number
}

/** One socket that a thread serves. */
export interface DataSocket {
  /** Of the plan that it belongs to. */
  readonly address: string
  readonly fd: number
  readonly host: string
  readonly port: number
  /** By LoopCount; shared. */
  readonly counts: Float64Array
}

/** Control thread to data thread; an instance is known by its generation. */
export type ToDataThread =
  /** Set up an instance, but do not serve it yet. `values`: what its feeds published. */
  | {
      readonly kind: 'prepare'
      readonly generation: number
      readonly blocks: readonly ServerBlock[]
      readonly corefile: { readonly path: string; readonly loadedDigest: string }
      readonly dnsPort: number
      readonly values: readonly (readonly [number, unknown])[]
    }
  | {
      readonly kind: 'publish'
      readonly generation: number
      readonly index: number
      readonly value: unknown
    }
  /** Serve these too, by a prepared instance. */
  | {
      readonly kind: 'serve'
      readonly generation: number
      readonly sockets: readonly DataSocket[]
    }
  /** Serve a prepared instance from now on, on these sockets, and forget the one before. */
  | {
      readonly kind: 'commit'
      readonly generation: number
      readonly sockets: readonly DataSocket[]
    }
  /** A prepared instance will not be served. */
  | { readonly kind: 'abandon'; readonly generation: number }
  /** Answer what has come, and serve the sockets no more. */
  | { readonly kind: 'detach'; readonly fds: readonly number[] }
  | { readonly kind: 'stop' }

/** Data thread to control thread. */
export type FromDataThread =
  /** Runs. `serverCounts`: by ServerCount; shared. `taskFile`: of `ownTaskFile`. */
  | {
      readonly kind: 'ready'
      readonly serverCounts: Float64Array
      readonly taskFile: string
    }
  /** Counts of a listen address that it had none of; by DroppedCount; shared. */
  | { readonly kind: 'address'; readonly address: string; readonly counts: Float64Array }
  | { readonly kind: 'prepared'; readonly generation: number; readonly fault: string }
  | { readonly kind: 'committed'; readonly generation: number }
  | { readonly kind: 'detached'; readonly fds: readonly number[] }
  /** There is something in the ring. */
  | { readonly kind: 'bell' }
  /** New counters of an instance. */
  | {
      readonly kind: 'counters'
      readonly generation: number
      readonly index: number
      readonly labels: SlotLabels
      readonly counters: Float64Array
    }
  /** A query that may wait (`BatchSocket.copyUnit`). */
  | { readonly kind: 'query'; readonly fd: number; readonly unit: Uint8Array }
  /** A query ended with an exception that nothing caught; where there are many, some are not told of. */
  | { readonly kind: 'fault'; readonly stack: string }
