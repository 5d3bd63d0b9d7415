import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { getText } from '../support/get-text.ts'
import { freePort } from '../support/server.ts'
import { until } from '../support/until.ts'
import { AMERICA, EUROPE, gateway, pairOf, Site, ZONE } from './sites.ts'

// Long: it starts many servers.

const EAST = '192.0.2.1'
const WEST = '198.51.100.1'
const MORE = `more.${ZONE}`
/** The shortest that the directive allows. */
const SILENT_MS = 1000

const PEER_CACHE = 'peer-cache peers\n'

/** Two sites. The west caches the endpoints of the east, which also has a host of its own. */
async function startPair(t: Test, lines: string) {
  const readyPort = await freePort()
  const pair = await pairOf({ west: { readyPort, lines: PEER_CACHE + lines } })
  const files = { ...pair.east.files, 'zones/more.yaml': gateway('GEO-EU', EAST, { host: MORE }) }
  // Records and peer cache of an earlier run.
  rmSync(t.testdirName, { recursive: true, force: true })
  const east = await Site.start(t, { ...pair.east, files })
  const west = await Site.start(t, pair.west)
  const file = join(t.testdirName, 'west', 'peers')
  const read = (): string => (existsSync(file) ? readFileSync(file, 'utf8') : '')
  await until(async () => (await west.ask(EUROPE)) === EAST, 'the east')
  await until(() => read().split('\ntold ').length === 9, 'it to be written')
  const page = async (path: string) => (await getText(`http://127.0.0.1:${readyPort}/${path}`)).text
  return { east, west, file, read, page }
}

t.test(
  'a server that starts while its peer is dead serves the endpoints of that peer',
  async (t) => {
    const { east, west, file, page } = await startPair(t, 'silent-site keep 1h')
    t.equal(statSync(file).mode & 0o777, 0o600)
    t.match(await page('metrics'), /sextant_peer_cache_failing\{file="[^"]*peers"\} 0/)
    await east.kill()
    const killedMs = performance.now()
    await west.kill()
    await west.restart()
    t.equal(await west.ask(EUROPE), EAST, 'from the first answer on')
    t.equal(await west.ask(EUROPE, MORE), EAST)
    await until(async () => /silent for/.test(await page('ready')), 'the ready page')
    t.match(await page('ready'), /^OK\n.*it last reported 8 endpoints/)
    west.reload()
    await west.prints(/Reloading complete/)
    t.equal(await west.ask(EUROPE), EAST, 'over a reload as well')
    await until(() => performance.now() - killedMs > SILENT_MS, 'the peer to be silent for so long')
    for (const start of ['first', 'second']) {
      await west.kill()
      await west.restart({ lines: `${PEER_CACHE}silent-site remove ${SILENT_MS}ms` })
      t.equal(await west.ask(EUROPE), WEST, `a restart makes nothing younger: the ${start}`)
      t.equal(await west.ask(EUROPE, MORE), EAST, 'a host of the east alone is not emptied')
    }
    await east.restart()
    await until(async () => (await west.ask(EUROPE)) === EAST, 'the east to be back')
  },
)

t.test('a restart while the peer lives is not to be seen', async (t) => {
  const { east, west } = await startPair(t, '')
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await west.kill(signal)
    await west.restart()
    const others: string[] = []
    const askEach = async (): Promise<void> => {
      for (const [place, host, want] of [
        [EUROPE, undefined, EAST],
        [AMERICA, undefined, WEST],
        [EUROPE, MORE, EAST],
      ] as const) {
        const got = await west.ask(place, host)
        if (got !== want) others.push(got)
      }
    }
    // Until an edit shows that the peer is followed again.
    const edited = `${signal.toLowerCase()}.${ZONE}`
    east.write(`zones/${signal}.yaml`, gateway('GEO-EU', EAST, { host: edited }))
    await until(async () => {
      await askEach()
      return (await west.ask(EUROPE, edited)) === EAST
    }, 'an edit at the east')
    await askEach()
    t.strictSame(others, [])
  }
})

t.test('a file that is of no use does not keep a server from its work', async (t) => {
  const { west, file, read } = await startPair(t, '')
  await west.kill()
  west.write('peers', read().slice(0, -20))
  await west.restart()
  await west.prints(/peer cache: .* is not used: it is incomplete/)
  await until(async () => (await west.ask(EUROPE)) === EAST, 'the east')
  await until(() => /sha256 \S{64}\n$/.test(read()), 'a whole one')
  await west.kill()
  west.write('peers', 'sextant zones\n')
  await west.restart()
  await west.prints(/has other content; the file is not replaced/)
  await until(async () => (await west.ask(EUROPE)) === EAST, 'the east again')
  t.equal(readFileSync(file, 'utf8'), 'sextant zones\n')
})
