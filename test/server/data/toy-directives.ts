import { isMainThread } from 'node:worker_threads'
import type { Broadcast } from '../../../src/base/broadcast.ts'
import { Rcode } from '../../../src/dns/iana/rcodes.ts'
import type { Directive } from '../../../src/plugin/directive.ts'
import type { Handler } from '../../../src/plugin/handler.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'

/* Directives that answer NXDOMAIN to everything, sooner or later, for tests of threads. */

/** The first octet of a query's name. */
const NAME_START = 13

function answer(tx: Transaction): number {
  tx.response.rcode = Rcode.NXDOMAIN
  return Rcode.NXDOMAIN
}

/** Of `chatty`, for each query: sixteen times what a ring has room for, because the other thread reads meanwhile. */
export const LINES = 4000

/** Queries that `slow` has, in the thread that looks: each is answered when it is called. */
export const waiting: (() => void)[] = []

function answerLater(tx: Transaction): Promise<number> {
  return new Promise((resolve) => {
    waiting.push(() => resolve(answer(tx)))
  })
}

/** What `published` publishes to the data threads; the last instance's is the last. */
export const feeds: Broadcast<string>[] = []

/** What the threads of a server share: whether one waits for `late`, and whether it shall have it. */
export const Gate = { Wanted: 1, Open: 2 } as const

/** In the order of the chain. */
export const TOYS: readonly Directive[] = [
  {
    name: 'slow',
    setup: () => ({ handler: () => ({ name: 'slow', serve: answerLater }), waits: true }),
  },
  {
    // Does not say that it waits.
    name: 'liar',
    setup: () => ({ handler: () => ({ name: 'liar', serve: answerLater }) }),
  },
  {
    // A name that starts with an x ends the thread.
    name: 'mortal',
    setup: () => ({
      handler: (next) => ({
        name: 'mortal',
        serve: (tx) => {
          if (tx.query.packet[NAME_START] === 0x78) process.exit()
          return next.serve(tx)
        },
      }),
    }),
  },
  {
    name: 'published',
    setup: (c) => {
      const follow = (value: string): void => {
        if (value === 'bad') throw new Error('that can not be followed')
      }
      feeds.push(c.broadcast(follow))
      return {}
    },
  },
  {
    // Says more about a query than can be written in time.
    name: 'chatty',
    setup: (c) => {
      const text = 'x'.repeat(8000)
      const handler = (next: Handler): Handler => ({
        name: 'chatty',
        serve: (tx) => {
          for (let line = 0; line < LINES; line++) c.log.info(text, 'chatty')
          return next.serve(tx)
        },
      })
      return { handler }
    },
  },
  {
    name: 'picky',
    setup: () => {
      if (!isMainThread) throw new TypeError('not in this thread')
      return {}
    },
  },
  { name: 'late', setup: () => ({}) },
  { name: 'absent', setup: () => ({}) },
  {
    name: 'quick',
    setup: () => ({ handler: () => ({ name: 'quick', serve: answer }) }),
  },
]
export const TOY_NAMES: readonly string[] = TOYS.map(({ name }) => name)
