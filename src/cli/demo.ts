import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RRType } from '../dns/iana/index.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import { printRecord } from '../dns/message/print-message.ts'
import { printRdata } from '../dns/rdata/index.ts'
import { CONTINENTS, DEMO_HOST, DEMO_ZONE, DemoSite } from './demo-site.ts'
import type { Output } from './output.ts'

/** Longest wait for the effect of a step; more than enough. */
const STEP_MS_MAX = 120_000
const POLL_MS = 20
const PORT_MIN = 20_000
const PORT_END = 32_768
const PORT_TRIES_MAX = 1000
const [EUROPE, , AMERICA] = CONTINENTS

/**
 * `sextant demo`: two sites on loopback that merge each other, shown step by step. Ends by itself
 * if standard output is not a terminal, else with Ctrl-C. Resolves to the exit code.
 */
export async function demo(output: Output): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'sextant-demo-'))
  const lines: string[] = []
  const sites = await openSites(directory, (line) => lines.push(line))
  const stopped = stopRequested()
  try {
    for (const site of sites) site.start()
    const [berlin, boston] = sites
    const shown = show(berlin, boston, output)
    // After an interrupt, the rest of the demo does not matter.
    shown.catch(() => {})
    const isOver = await Promise.race([shown.then(() => true), stopped.then(() => false)])
    if (isOver && process.stdout.isTTY === true) await idle(berlin, output, stopped)
    return 0
  } catch (error) {
    output.printError(error instanceof Error ? error.message : String(error))
    for (const line of lines) output.printError(line)
    return 1
  } finally {
    for (const site of sites) await site.kill()
    rmSync(directory, { recursive: true, force: true })
  }
}

async function openSites(
  directory: string,
  onLine: (line: string) => void,
): Promise<[DemoSite, DemoSite]> {
  const [one, other, oneReady, otherReady, oneAdmin, otherAdmin] = await freePorts(6)
  const place = (name: string): string => {
    mkdirSync(join(directory, name))
    return join(directory, name)
  }
  const berlin = new DemoSite({
    name: 'berlin',
    directory: place('berlin'),
    port: one!,
    readyPort: oneReady!,
    adminPort: oneAdmin!,
    peerPort: other!,
    codes: ['GEO-EU', 'GEO-AF'],
    isDefault: false,
    address: '192.0.2.1',
    onLine: (line) => onLine(`berlin: ${line}`),
  })
  const boston = new DemoSite({
    name: 'boston',
    directory: place('boston'),
    port: other!,
    readyPort: otherReady!,
    adminPort: otherAdmin!,
    peerPort: one!,
    codes: ['GEO-NA', 'GEO-SA'],
    isDefault: true,
    address: '198.51.100.1',
    onLine: (line) => onLine(`boston: ${line}`),
  })
  return [berlin, boston]
}

async function show(berlin: DemoSite, boston: DemoSite, output: Output): Promise<void> {
  const say = (text: string): void => {
    output.print(text)
    output.flush()
  }
  say(
    `Two sites serve ${DEMO_ZONE}. Site berlin (port ${berlin.options.port}) has a gateway for Europe and Africa.`,
  )
  say(
    `Site boston (port ${boston.options.port}) has one for the Americas and all other clients. Each site reads its own manifest only.`,
  )
  say(`Web consoles: ${berlin.consoleUrl} of berlin, ${boston.consoleUrl} of boston.`)
  for (const site of [berlin, boston]) {
    await until(
      async () => (await addressAt(site, EUROPE.subnet)) === '192.0.2.1',
      `${site.options.name}: Europe`,
    )
    await until(
      async () => (await addressAt(site, AMERICA.subnet)) === '198.51.100.1',
      `${site.options.name}: America`,
    )
  }
  for (const site of [berlin, boston]) {
    for (const { name, subnet } of CONTINENTS) {
      say(`\n; ${DEMO_HOST} A, query to ${site.options.name} from ${name} (+subnet=${subnet})`)
      for (const record of await site.ask(subnet)) say(printRecord(record))
    }
  }
  say(
    '\nThe address of the gateway in berlin changes in its manifest. A query to boston from Europe returns:',
  )
  const startMs = performance.now()
  berlin.setAddress('192.0.2.2')
  await until(
    async () => (await addressAt(boston, EUROPE.subnet)) === '192.0.2.2',
    'new address of berlin in boston',
  )
  say(`  192.0.2.2, after ${Math.round(performance.now() - startMs)} ms`)
  say(
    '\nThe server in berlin is killed. The record has no health check, so boston continues to serve the endpoints of berlin. A query from Europe returns:',
  )
  await berlin.kill()
  await until(
    async () => /silent for/.test(await boston.readyPage()),
    'silence of berlin on the ready page of boston',
  )
  say(`  ${await addressAt(boston, EUROPE.subnet)}`)
  for (const line of (await boston.readyPage()).split('\n')) say(`  ready page: ${line}`)
  say('\nBoston restarts while berlin is down, and loads the endpoints of berlin from its file:')
  await boston.stop()
  boston.start()
  await until(
    async () => (await addressAt(boston, EUROPE.subnet)) === '192.0.2.2',
    'address of berlin in boston after its restart',
  )
  say(`  ${await addressAt(boston, EUROPE.subnet)}`)
  say('\nBerlin starts again, with another address. A query to boston from Europe returns:')
  berlin.setAddress('192.0.2.3')
  berlin.start()
  await until(
    async () => (await addressAt(boston, EUROPE.subnet)) === '192.0.2.3',
    'address of berlin after its restart',
  )
  say(`  ${await addressAt(boston, EUROPE.subnet)}`)
}

async function idle(berlin: DemoSite, output: Output, stopped: Promise<void>): Promise<void> {
  const { port, directory } = berlin.options
  output.print('')
  output.print(
    `Both sites run until Ctrl-C. Edit ${join(directory, 'zones', 'shop.yaml')}, then query:`,
  )
  output.print(`  sextant query ${DEMO_HOST} A @127.0.0.1 -p ${port} +subnet=${EUROPE.subnet}`)
  output.print(`Its web console: ${berlin.consoleUrl}`)
  output.flush()
  await stopped
}

/** The address at the end of the answer; '' = the answer has none. */
async function addressAt(site: DemoSite, subnet: string): Promise<string> {
  const isAddress = ({ type }: ResourceRecord): boolean => type === RRType.A
  const last = (await site.ask(subnet)).findLast(isAddress)
  return last === undefined ? '' : printRdata(last.type, last.rdata)
}

async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  const endMs = performance.now() + STEP_MS_MAX
  while (!(await condition())) {
    if (performance.now() > endMs)
      throw new Error(`timeout: ${what} not seen within ${STEP_MS_MAX / 1000} s`)
    await new Promise((resume) => setTimeout(resume, POLL_MS))
  }
}

function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
  })
}

/**
 * Free ports of loopback, for both UDP and TCP. They are outside the range that systems assign
 * automatically, so that a site finds its port free again after it was down.
 */
async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>()
  for (let tries = 0; ports.size < count && tries < PORT_TRIES_MAX; tries++) {
    const port = PORT_MIN + Math.floor(Math.random() * (PORT_END - PORT_MIN))
    if (await isFree(port)) ports.add(port)
  }
  if (ports.size < count)
    throw new Error('no free ports found on loopback: stop other programs and try again')
  return [...ports]
}

async function isFree(port: number): Promise<boolean> {
  const tcp = createServer()
  const udp = createSocket('udp4')
  try {
    tcp.listen(port, '127.0.0.1')
    await once(tcp, 'listening')
    udp.bind(port, '127.0.0.1')
    await once(udp, 'listening')
    return true
  } catch {
    return false
  } finally {
    udp.close()
    // The callback also runs if it never listened.
    await new Promise((closed) => tcp.close(closed))
  }
}
