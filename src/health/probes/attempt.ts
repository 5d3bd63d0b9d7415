import type { Timers } from '../../base/timers.ts'
import type { ProbeProtocol } from '../../records/health-check.ts'
import { attemptMsMax } from './attempt-time.ts'
import type { Attempt, AttemptListener, Begin } from './begin.ts'
import { beginDns } from './dns-attempt.ts'
import { beginExec } from './exec-attempt.ts'
import { beginGrpc } from './grpc-attempt.ts'
import { beginHttp } from './http-attempt.ts'
import { printFault } from './print-fault.ts'
import type { ProbeOutcome } from './probe.ts'
import { beginTcp } from './tcp-attempt.ts'

/** Timeout of the connection; the same as upstream. */
const CONNECT_MS = 3000
/**
 * An attempt that receives more is a failure: a server that sends interim responses or frames without
 * end would take processor time until the timeout. Answers are read up to 64 KiB.
 */
const RECEIVED_OCTETS_MAX = 1024 * 1024
const RECEIVED_CHECK_MS = 50

const BEGIN: { readonly [P in ProbeProtocol]: Begin<P> } = {
  HTTP: beginHttp,
  HTTPS: beginHttp,
  TCP: beginTcp,
  GRPC: beginGrpc,
  GRPCS: beginGrpc,
  DNS: beginDns,
  EXEC: beginExec,
}

function begin<P extends ProbeProtocol>(
  protocol: P,
  attempt: Attempt<P>,
  listener: AttemptListener,
): () => void {
  return BEGIN[protocol](attempt, listener)
}

interface AttemptOptions extends Attempt {
  readonly timers: Timers
  readonly signal: AbortSignal
}

/** Makes one attempt in the way of its protocol, within a bounded time. Never rejects. */
export function attempt(options: AttemptOptions): Promise<ProbeOutcome> {
  return new Promise((resolve) => {
    const { check, timers, signal } = options
    const totalMs = attemptMsMax(check)
    let finish = (_outcome: ProbeOutcome): void => {}
    let isOver = false
    const fail = (reason: string): void => finish({ kind: 'unhealthy', httpStatus: 0, reason })
    const abort = (): void => finish({ kind: 'skipped', reason: 'it was cancelled' })
    const cancels = [
      timers.after(totalMs, () => fail(`no answer within ${totalMs / 1000} s`)),
      () => signal.removeEventListener('abort', abort),
    ]
    const end = begin(check.protocol, options, {
      onSocket: (socket) => {
        if (isOver) return
        const connectMs = Math.min(CONNECT_MS, totalMs)
        const message = `no connection within ${connectMs / 1000} s`
        const cancel = timers.after(connectMs, () => fail(message))
        cancels.push(cancel)
        socket.once('connect', cancel)
        const checkSize = (): void => {
          if (socket.bytesRead > RECEIVED_OCTETS_MAX) fail('the answer is larger than 1 MiB')
        }
        cancels.push(timers.every(RECEIVED_CHECK_MS, checkSize))
      },
      onError: (error) => fail(printFault(error)),
      onDone: (outcome) => finish(outcome),
    })
    finish = (outcome) => {
      finish = () => {}
      isOver = true
      for (const cancel of cancels) cancel()
      end()
      resolve(outcome)
    }
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort)
  })
}
