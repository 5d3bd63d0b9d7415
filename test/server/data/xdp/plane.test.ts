import t from 'tap'
import { createLogger } from '../../../../src/base/telemetry/log.ts'
import type { BypassSite } from '../../../../src/server/data/bypass.ts'
import { XdpPlane } from '../../../../src/server/data/xdp/plane.ts'
import type { XdpSettings } from '../../../../src/transport/udp/xdp/settings.ts'
import { FakeTimers } from '../../../support/setup.ts'
import { xdpConfig } from '../../../transport/xdp-config.ts'
import { ScriptedKernel } from './scripted-kernel.ts'

const EPERM = 1
const EBUSY = 16
const ENETDOWN = 100
const READY = '[INFO] xdp eth0: native, copy, 1 queue'
const BUSY = '[WARNING] xdp eth0: its packets go to the UDP sockets: bind AF_XDP queue 0: EBUSY'

const ETH0: XdpSettings = { interfaceName: 'eth0', queues: 0, mode: 'native' }
const SITE: BypassSite = {
  plan: {
    address: 'dns://192.0.2.1:53',
    configs: [xdpConfig(ETH0)],
  },
  listener: {
    port: 53,
    sockets: 1,
    socketOf: () => ({
      ...{ address: 'dns://192.0.2.1:53', fd: 9, host: '192.0.2.1', port: 53 },
      counts: new Float64Array(3),
    }),
  },
}

function stage() {
  const scripted = new ScriptedKernel()
  const timers = new FakeTimers()
  const lines: string[] = []
  const served: number[] = []
  const detached: number[] = []
  const plane = new XdpPlane({
    kernel: scripted.kernel,
    timers,
    log: createLogger(
      '',
      (line) => lines.push(line),
      () => false,
    ),
    threads: {
      serve: async (_, generation) => {
        served.push(generation)
        return ''
      },
      detach: async (_, fds) => {
        detached.push(...fds)
      },
    },
  })
  return { scripted, timers, lines, served, detached, plane }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const binds = ({ calls }: ScriptedKernel): number =>
  calls.filter((call) => call.startsWith('bind')).length

t.test('a queue that is busy for a moment is tried again soon, and attached once', async (t) => {
  const { scripted, timers, lines, served, plane } = stage()
  scripted.bindErrors.push(EBUSY, EBUSY, EBUSY)
  const done = plane.setSites(1, [SITE])
  await settled()
  for (const [waitedMs, attempts] of [
    [0, 1],
    [9, 1],
    [1, 2],
    [19, 2],
    [1, 3],
    [39, 3],
    [1, 4],
  ] as const) {
    await timers.advance(waitedMs)
    t.equal(binds(scripted), attempts)
  }
  await done
  t.strictSame(scripted.calls, ['link', 'bind 16', 'bind 16', 'bind 16', 'bind'])
  t.strictSame(served, [1])
  t.strictSame(lines, [READY])
  await plane.close()
  t.strictSame([...scripted.open], [], 'no descriptor is left')
})

t.test('an interface does not wait for another one', async (t) => {
  const { scripted, timers, lines, plane } = stage()
  scripted.bindErrors.push(EBUSY)
  const configs = [xdpConfig(ETH0, { ...ETH0, interfaceName: 'eth1' })]
  const done = plane.setSites(1, [{ ...SITE, plan: { ...SITE.plan, configs } }])
  await settled()
  t.strictSame(lines, [READY.replace('eth0', 'eth1')])
  await timers.advance(10)
  await done
  t.equal(lines[1], READY)
  await plane.close()
  t.strictSame([...scripted.open], [])
})

t.test('the waits are bounded, and the reason is logged after ten seconds', async (t) => {
  const { scripted, timers, lines, plane } = stage()
  for (let i = 0; i < 100; i++) scripted.bindErrors.push(EBUSY)
  const done = plane.setSites(1, [SITE])
  await settled()
  await timers.advance(700)
  await done
  t.equal(binds(scripted), 7)
  t.strictSame([...scripted.open], [], 'the interface is free meanwhile')
  await timers.advance(300)
  t.equal(binds(scripted), 8)
  await timers.advance(7000)
  t.strictSame(lines, [])
  await timers.advance(1000)
  t.equal(binds(scripted), 16)
  t.strictSame(lines, [BUSY])
  scripted.bindErrors.length = 0
  await timers.advance(1000)
  t.strictSame(lines, [BUSY, READY])
  await plane.close()
})

t.test('another program on the interface is waited for in the same way', async (t) => {
  const { scripted, timers, lines, plane } = stage()
  scripted.linkErrors.push(EBUSY, EBUSY)
  const done = plane.setSites(1, [SITE])
  await settled()
  await timers.advance(30)
  await done
  t.strictSame(scripted.calls, ['link 16', 'link 16', 'link', 'bind'])
  t.strictSame(lines, [READY])
  await plane.close()
})

t.test('other errors are logged at once, and tried again after a second', async (t) => {
  const { scripted, timers, lines, plane } = stage()
  scripted.linkErrors.push(EPERM)
  await plane.setSites(1, [SITE])
  t.match(lines, [/EPERM \(it requires CAP_NET_ADMIN and CAP_BPF\)$/])
  await timers.advance(999)
  t.strictSame(scripted.calls, ['link 1'])
  await timers.advance(1)
  t.strictSame(lines.slice(1), [READY])
  await plane.close()
})

t.test('what changes during a wait is in force after it', async (t) => {
  const { scripted, timers, served, detached, plane } = stage()
  scripted.bindErrors.push(EBUSY)
  const first = plane.setSites(1, [SITE])
  await settled()
  const second = plane.setSites(2, [SITE])
  await timers.advance(10)
  await Promise.all([first, second])
  t.strictSame(served, [2], 'no thread has the instance of before')
  await plane.close()
  t.equal(detached.length, 1)
})

t.test('an address that is removed during a wait', async (t) => {
  const { scripted, timers, served, plane } = stage()
  scripted.bindErrors.push(EBUSY)
  const done = plane.setSites(1, [SITE])
  await settled()
  plane.retire(SITE.plan.address)
  await timers.advance(10)
  await done
  t.strictSame(served, [])
  t.strictSame([...scripted.open], [])
  await plane.close()
})

t.test('a reload logs the reason for a failure again', async (t) => {
  const { scripted, timers, lines, plane } = stage()
  for (let i = 0; i < 5; i++) scripted.linkErrors.push(EPERM)
  await plane.setSites(1, [SITE])
  await timers.advance(2000)
  t.equal(lines.length, 1)
  await plane.setSites(2, [SITE])
  t.equal(lines.length, 2)
  t.equal(lines[1], lines[0])
  await plane.close()
})

t.test(
  'an interface that is down keeps its sockets, as long as they are the right ones',
  async (t) => {
    const { scripted, timers, lines, detached, plane } = stage()
    await plane.setSites(1, [SITE])
    scripted.isUp = false
    await timers.advance(1000)
    scripted.isUp = true
    await timers.advance(1000)
    t.strictSame(lines, [READY])
    t.strictSame(scripted.calls, ['link', 'bind'])

    scripted.isUp = false
    await plane.setSites(2, [{ ...SITE, listener: { ...SITE.listener, sockets: 2 } }])
    t.equal(detached.length, 1)
    t.strictSame([...scripted.open], [])
    t.match(lines.slice(1), [/the interface is down$/])
    scripted.isUp = true
    await timers.advance(1000)
    t.strictSame(lines.slice(2), [READY])
    await plane.close()
  },
)

t.test('an interface that was away between two checks gets new sockets', async (t) => {
  const { scripted, timers, lines, plane } = stage()
  await plane.setSites(1, [SITE])
  scripted.socketError = ENETDOWN
  await timers.advance(1000)
  t.strictSame(scripted.calls, ['link', 'bind', 'link', 'bind'])
  await timers.advance(1000)
  t.equal(binds(scripted), 2)
  t.strictSame(lines, [READY, READY])
  await plane.close()
  t.strictSame([...scripted.open], [])
})

t.test('the end does not wait', async (t) => {
  const { scripted, plane } = stage()
  scripted.bindErrors.push(EBUSY)
  const done = plane.setSites(1, [SITE])
  await settled()
  await plane.close()
  await done
  t.strictSame([...scripted.open], [])
})
