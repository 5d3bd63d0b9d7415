import type { ServerBlock } from '../../corefile/parser.ts'
import type { SlotLabels } from '../../plugin/counter-slots.ts'
import type { WakeCall } from '../../transport/udp/batch/wake.ts'

export interface DataThreadInit {
  readonly wake: WakeCall
  /** Log lines and texts for the control thread (base/ring). */
  readonly ring: SharedArrayBuffer
  /**
   * One shared 32-bit integer: messages that queries caused and that the control thread has not
   * received yet.
   */
  readonly pending: Int32Array
  /** Secrets of server cookies: `CookieSecrets.memory`. */
  readonly cookieSecrets: SharedArrayBuffer
  /** Whether replies to the same client port are sent in one system call (transport/udp/batch/outbox). */
  readonly groupsReplies: boolean
  /** UDP queries that waited longer are dropped (transport/udp/batch/backlog); 0 = none is. */
  readonly maxQueryAgeMs: number
  /** Seed of the thread's random numbers. */
  readonly seed: number
}

/** One socket that a thread serves. */
export interface DataSocket {
  /** Address of the plan that the socket belongs to. */
  readonly address: string
  readonly fd: number
  readonly host: string
  readonly port: number
  /** Indexed by LoopCount; shared. */
  readonly counts: Float64Array
}

/** Messages from the control thread to a data thread. A generation identifies an instance. */
export type ToDataThread =
  /** Set up an instance, but do not serve it yet. `values`: what its broadcasts published. */
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
  /** Serve these sockets too, with a prepared instance. */
  | {
      readonly kind: 'serve'
      readonly generation: number
      readonly sockets: readonly DataSocket[]
    }
  /** Serve a prepared instance from now on, on these sockets, and drop the one before. */
  | {
      readonly kind: 'commit'
      readonly generation: number
      readonly sockets: readonly DataSocket[]
    }
  /** Serve packets that bypass the UDP sockets: calls the `ServeBypass` of `of`. `id` is in the reply. */
  | {
      readonly kind: 'bypass'
      readonly id: number
      readonly generation: number
      readonly of: string
      readonly body: unknown
    }
  /** Drop a prepared instance: it will not serve. */
  | { readonly kind: 'abandon'; readonly generation: number }
  /** Answer the queries that have arrived, and stop serving these sockets. */
  | { readonly kind: 'detach'; readonly fds: readonly number[] }
  | { readonly kind: 'stop' }

export type FromDataThread =
  /** The thread runs. `serverCounts`: by ServerCount; shared. `taskFile`: from `ownTaskFile`. */
  | {
      readonly kind: 'ready'
      readonly serverCounts: Float64Array
      readonly taskFile: string
    }
  /** A listen address has its first counts; by DroppedCount; shared. */
  | { readonly kind: 'address'; readonly address: string; readonly counts: Float64Array }
  | { readonly kind: 'prepared'; readonly generation: number; readonly fault: string }
  | { readonly kind: 'committed'; readonly generation: number }
  | { readonly kind: 'detached'; readonly fds: readonly number[] }
  /** `fault`: what `ServeBypass` returned. */
  | { readonly kind: 'bypassed'; readonly id: number; readonly fault: string }
  /** Wakeup: the ring holds data. */
  | { readonly kind: 'wakeup' }
  /** New counters of an instance. */
  | {
      readonly kind: 'counters'
      readonly generation: number
      readonly index: number
      readonly labels: SlotLabels
      readonly counters: Float64Array
    }
  /** A query whose answer may have to wait (`BatchSocket.copyUnit`). */
  | { readonly kind: 'query'; readonly fd: number; readonly unit: Uint8Array }
  /** A query ended with an uncaught exception. If there are many, some are not sent. */
  | { readonly kind: 'fault'; readonly stack: string }
