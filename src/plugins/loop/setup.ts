import { randomInt } from 'node:crypto'
import { isIP } from 'node:net'
import { printLine } from '../../base/telemetry/lines.ts'
import type { HostPort } from '../../dns/host-port.ts'
import { RRType } from '../../dns/iana/index.ts'
import { concatNames, printName, scanName } from '../../dns/name/name.ts'
import { printAddress } from '../../dns/text/address.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { BlockConfig, Directive, SetupContext } from '../../plugin/directive.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { Loop, type LoopProbe } from './loop.ts'

/** Time after which a probe without a reply is sent again. */
const RETRY_MS = 2000
/** Time from the first probe until the server stops probing. */
const PROBING_MS = 30_000
/** Time from the reply to a probe until probes are ignored: a longer loop may still send it back. */
const SETTLE_MS = 2000
const NUMBER_MAX = 2 ** 48

/** `loop`: ends the process if queries that are forwarded come back. */
export const loop: Directive = loopWith(process.exit)

/** The directive with the caller's way to end the process. */
export function loopWith(exit: (code: number) => void): Directive {
  return {
    name: 'loop',
    setup: (c) => {
      for (let i = 0; nextOnce(c.dispenser, i); i++) {
        if (c.dispenser.nextArg()) throw c.dispenser.argError()
      }
      const probe: LoopProbe = {
        name: probeName(c.block),
        isWatched: false,
        seen: 0,
        onLoop: (tx) => {
          printLine(c.lineWriter, `[FATAL] plugin/loop: ${describe(tx, c.block)}`)
          exit(1)
        },
      }
      // One thread must count all probes.
      return { handler: (next) => new Loop(next, probe), waits: true, ...sendProbes(c, probe) }
    },
  }
}

/** Returns two random labels in the zone of the block: no other server has the name in its cache. */
function probeName({ keys }: BlockConfig): Uint8Array {
  const labels = scanName(`${randomInt(NUMBER_MAX - 1)}.${randomInt(NUMBER_MAX - 1)}.`)!
  const zone = keys[0]?.zone ?? Uint8Array.of(0)
  return concatNames(labels, zone) ?? labels
}

function describe({ query }: Transaction, { keys }: BlockConfig): string {
  const peer = printAddress(query.peerAddress, query.peerFamily === 1 ? 1 : 2)
  const zone = keys[0]?.zoneText ?? '.'
  return (
    `Loop (${peer}:${query.peerPort}) detected for zone "${zone}": a server in \`forward\` sends ` +
    `queries back to this server; change its address. Query: "HINFO ${printName(query.qname)}"`
  )
}

/** Sends the probe once the server answers, until it gets a reply. */
function sendProbes(c: SetupContext, probe: LoopProbe): DirectivePart {
  const controller = new AbortController()
  let stopTimer: (() => void) | undefined
  const stop = (): void => {
    probe.isWatched = false
    stopTimer?.()
    controller.abort()
  }
  const send = async (server: HostPort, endMs: number): Promise<void> => {
    const { ask, questionOf } = await import('../../client/ask.ts')
    const query = questionOf(probe.name, RRType.HINFO)
    const { signal } = controller
    probe.seen = 0
    const answered = await ask({ server, query, timeoutMs: RETRY_MS, tries: 1, signal })
    if (signal.aborted) return
    const isOver = answered.kind === 'reply' || c.clock.monotonic() >= endMs
    stopTimer = c.timers.after(
      isOver ? SETTLE_MS : RETRY_MS,
      isOver ? stop : () => void send(server, endMs),
    )
  }
  const serving = (): void => {
    probe.isWatched = true
    void send(ownServer(c.block), c.clock.monotonic() + PROBING_MS)
  }
  return { serving, stop }
}

/** An address at which the block answers. */
function ownServer({ listenHosts, keys }: BlockConfig): HostPort {
  const [host = ''] = listenHosts
  const isAny = isIP(host) === 0 || host === '0.0.0.0' || host === '::'
  return { host: isAny ? '127.0.0.1' : host, port: keys[0]?.port ?? 53 }
}
