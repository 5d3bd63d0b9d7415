import { isMainThread, threadId } from 'node:worker_threads'
import { RRClass } from '../../../src/dns/iana/classes.ts'
import { Rcode } from '../../../src/dns/iana/rcodes.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { Section } from '../../../src/dns/message/section.ts'
import type { Directive } from '../../../src/plugin/directive.ts'
import type { Handler } from '../../../src/plugin/handler.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { bind } from '../../../src/plugins/bind/setup.ts'
import { multisocket } from '../../../src/plugins/multisocket/setup.ts'

/** The control thread's end of a `toy`. */
export interface Toy {
  readonly token: number
  publish(value: number): void
  /** What arrived over its channel to the control thread. */
  readonly texts: string[]
  /** Lets a thread go on that rests. False: none does. */
  release(): boolean
  /** Queries that all threads have counted for it. */
  counted(): number
}

/** The text that has the control thread wait for the end of a flood. */
const HOLD = 'hold'
const Flood = { Wanted: 1, Held: 2, Over: 3 } as const
const HOLD_MS_MAX = 60_000

function move(flood: Int32Array, state: number): void {
  Atomics.store(flood, 0, state)
  Atomics.notify(flood, 0)
}

/** Blocks this thread as long as the other one has not moved the flood on from `state`. */
function wait(flood: Int32Array, state: number): void {
  if (Atomics.wait(flood, 0, state, HOLD_MS_MAX) === 'timed-out') throw new Error(`flood ${state}`)
}

/** Every toy of this thread, in the order of the setups. */
export const toys: Toy[] = []

/**
 * `toy TOKEN [VALUE] [waits]`: answers A queries with 10.TOKEN.VALUE (16 bits) and 11.0.THREAD (16 bits).
 * VALUE is published at start. First labels that it heeds: `die` ends a data thread, `spin` has it do
 * nothing else any more, `rest` has it wait for `release`, `say-N` sends N texts up, `flood-N` does so while the control
 * thread takes none.
 */
const toy: Directive = {
  name: 'toy',
  setup(c) {
    c.dispenser.next()
    const [tokenText, valueText, ...flags] = c.dispenser.remainingArgs()
    const token = Number(tokenText)
    let value = 0
    const feed = c.broadcast<number>((followed) => {
      value = followed
    })
    const counters = c.counters()
    counters.length = 1
    const texts: string[] = []
    let flood: Int32Array = new Int32Array(new SharedArrayBuffer(4))
    const floods = c.broadcast<Int32Array>((followed) => {
      flood = followed
    })
    const say = c.toControl((text) => {
      if (text === HOLD) {
        move(flood, Flood.Held)
        wait(flood, Flood.Held)
      } else {
        texts.push(text)
      }
    })
    const serve = (tx: Transaction): number => {
      counters.of(tx)[0]! += 1
      const [label] = Buffer.from(tx.query.qname)
        .toString('latin1', 1)
        .split(/[\0-\x20]/)
      if (label === 'die' && !isMainThread) process.exit(1)
      if (label === 'spin' && !isMainThread) for (;;);
      if (label === 'rest') {
        move(flood, Flood.Wanted)
        wait(flood, Flood.Wanted)
      }
      const [, verb, lines] = /^(say|flood)-(\d+)$/.exec(label!) ?? []
      if (verb === 'flood') {
        move(flood, Flood.Wanted)
        say(HOLD)
        wait(flood, Flood.Wanted)
      }
      for (let i = 0; i < Number(lines ?? 0); i++) say(`${i}`)
      if (verb === 'flood') move(flood, Flood.Over)
      addAddress(tx, 10, token, value)
      addAddress(tx, 11, 0, threadId)
      tx.response.rcode = Rcode.NOERROR
      return Rcode.NOERROR
    }
    const waits = flags.includes('waits')
    const handler = (): Handler => ({
      name: 'toy',
      serve: (tx) => (waits ? Promise.resolve().then(() => serve(tx)) : serve(tx)),
    })
    const publish = (next: number): void => {
      value = next
      feed.publish(next)
    }
    const start = (): void => {
      floods.publish(flood)
      publish(Number(valueText ?? 0))
    }
    const release = (): boolean => {
      const rests = Atomics.compareExchange(flood, 0, Flood.Wanted, Flood.Held) === Flood.Wanted
      if (rests) Atomics.notify(flood, 0)
      return rests
    }
    let total = 0
    const counted = (): number => {
      counters.forEach((counts) => {
        total += counts.take(0)
      })
      return total
    }
    toys.push({ token, publish, texts, counted, release })
    return { handler, waits, start }
  },
}

function addAddress(tx: Transaction, a: number, b: number, value: number): void {
  const rdata = Uint8Array.of(a, b, value >> 8, value)
  tx.response.add(Section.Answer, tx.query.qname, 0, RRType.A, RRClass.IN, 60, rdata, 0, 4)
}

export const DIRECTIVES: readonly Directive[] = [bind, multisocket, toy]
