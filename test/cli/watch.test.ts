import { getEventListeners } from 'node:events'
import t, { type Test } from 'tap'
import { openAdmin } from '../../src/api/admin/open-admin.ts'
import { runStatus } from '../../src/cli/status.ts'
import { composeScreen, type Line, toned } from '../../src/cli/tones.ts'
import { adminSite, STATUS } from '../support/admin-site.ts'
import { freePort } from '../support/free-port.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { until } from '../support/until.ts'

const ESCAPE = '\u001b'

/** Watches the status of a server on `port`. */
function watch(
  t: Test,
  port: number,
  args: readonly string[] = [],
  screen?: (l: readonly Line[]) => void,
) {
  const { output, printed, errors } = recordOutput()
  const controller = new AbortController()
  t.teardown(() => controller.abort())
  const ended = runStatus(
    [`@127.0.0.1:${port}`, '--watch', ...args],
    { ...output, screen },
    {
      intervalMs: 5,
      stop: controller.signal,
    },
  )
  const stop = (): Promise<number> => {
    controller.abort()
    return ended
  }
  const listeners = () => getEventListeners(controller.signal, 'abort').length
  return { printed, errors, stop, listeners }
}

/** A server whose status the test changes. */
async function serve(t: Test, port: number) {
  const server = { status: STATUS, asked: 0, close: () => Promise.resolve() }
  const status = () => {
    server.asked++
    // Time alone is no change.
    return { ...server.status, now: new Date(Date.parse(STATUS.now) + server.asked).toISOString() }
  }
  const { close } = await openAdmin(
    adminSite({ status, address: `127.0.0.1:${port}` }).site,
    undefined,
  )
  server.close = async () => void (await close())
  t.teardown(close)
  return server
}

t.test('each change of a status is printed once', async (t) => {
  const port = await freePort()
  const server = await serve(t, port)
  const { printed, errors, stop, listeners } = watch(t, port)
  const firsts = () => printed.filter((line) => line.startsWith('server '))
  await until(() => server.asked > 5, 'several reads')
  t.equal(firsts().length, 1)
  server.status = { ...STATUS, pid: 2 }
  await until(() => firsts().length === 2, 'the change')
  t.match(firsts()[1], 'pid 2')
  t.ok(listeners() <= 2, 'each read leaves none')
  t.equal(await stop(), 0)
  t.strictSame(errors, [])
})

t.test('a server that is away is tried again', async (t) => {
  const port = await freePort()
  const { printed, errors, stop } = watch(t, port, ['-o', 'yaml'])
  await until(() => errors.length > 0, 'the fault')
  t.match(errors, [/^no server listens on .*; trying again$/])
  const server = await serve(t, port)
  await until(() => printed.includes('pid: 1'), 'the status')
  await server.close()
  await until(() => errors.length > 1, 'the second fault')
  await serve(t, port)
  await until(() => printed.filter((line) => line === 'pid: 1').length === 2, 'the second status')
  t.equal(printed.filter((line) => line === '---').length, 1)
  t.equal(await stop(), 0)
})

t.test('on a terminal, the status is drawn again', async (t) => {
  const port = await freePort()
  const server = await serve(t, port)
  const drawn: (readonly Line[])[] = []
  const { printed, stop } = watch(t, port, [], (lines) => drawn.push(lines))
  await until(() => drawn.length > 2, 'several drawings')
  await server.close()
  await until(() => JSON.stringify(drawn.at(-1)).includes('no server listens'), 'the fault')
  t.equal(await stop(), 0)
  t.strictSame(printed, [])
})

t.test('a drawing fills the terminal at most', (t) => {
  const lines: Line[] = ['one', [toned('bad', 'two')], 'three']
  const text = (rows: number): string => composeScreen(lines, rows, false)
  const body = (...shown: string[]) => shown.map((line) => `${line}${ESCAPE}[K\n`).join('')
  const whole = (drawn: string) => `${ESCAPE}[?7l${ESCAPE}[H${drawn}${ESCAPE}[J${ESCAPE}[?7h`
  t.equal(text(4), whole(body('one', 'two', 'three')))
  t.equal(text(3), whole(body('one', 'and 2 more lines')))
  t.equal(text(1), whole(body('and 3 more lines')))
  t.equal(text(0), whole(body('one', 'two', 'three')))
  t.end()
})
