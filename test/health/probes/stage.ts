import { once } from 'node:events'
import type { Http2Server } from 'node:http2'
import type { Server, Socket } from 'node:net'
import type { Test } from 'tap'
import { systemTimers } from '../../../src/base/timers.ts'
import { scanCidr } from '../../../src/dns/text/address.ts'
import type { Probe, ProbeOutcome } from '../../../src/health/probes/probe.ts'
import { ProbePolicy } from '../../../src/health/probes/probe-policy.ts'
import { createProber, type ProberOptions } from '../../../src/health/probes/prober.ts'
import type { Resolution } from '../../../src/health/probes/resolve.ts'
import {
  type CheckOf,
  HEALTH_CHECK_DEFAULTS,
  type HealthCheck,
  type ProbeProtocol,
} from '../../../src/records/health-check.ts'
import { freePort } from '../../support/free-port.ts'

export const LOCAL = new ProbePolicy([scanCidr('127.0.0.0/8')!, scanCidr('::1/128')!])

/** Listens on a free port of `host` until the test ends. */
export async function listen(
  t: Test,
  server: Server | Http2Server,
  host = '127.0.0.1',
): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  const port = await freePort()
  server.listen(port, host)
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return port
}

type PartsOf<P extends ProbeProtocol> = Partial<Omit<CheckOf<P>, 'protocol'>>

export interface Given extends PartsOf<'HTTP'>, PartsOf<'GRPC'>, PartsOf<'DNS'>, PartsOf<'EXEC'> {
  readonly protocol?: ProbeProtocol
  readonly address?: string
  readonly hostname?: string
  readonly testAddress?: string
}

export function probeOf({
  address = '127.0.0.1',
  hostname = 'app.example.org',
  testAddress,
  ...check
}: Given): Probe {
  const all = { ...HEALTH_CHECK_DEFAULTS, protocol: 'HTTP', ...check } as HealthCheck
  const tested = testAddress === undefined ? {} : { testAddress }
  return { id: 'n/p', namespace: 'n', address, hostname, check: all, ...tested }
}

export function ask(given: Given, options: Partial<ProberOptions> = {}): Promise<ProbeOutcome> {
  const defaults = {
    policy: LOCAL,
    resolve: async (): Promise<Resolution> => ({ kind: 'none' }),
    readHeaders: undefined,
    timers: systemTimers,
  }
  const prober = createProber({ ...defaults, ...options })
  return prober(probeOf(given), new AbortController().signal)
}
