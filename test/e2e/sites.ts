import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ask, questionOf } from '../../src/client/ask.ts'
import { composeClientSubnet } from '../../src/dns/edns/client-subnet.ts'
import { OptionCode, printRcode, RRType } from '../../src/dns/iana/index.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { scanCidr } from '../../src/dns/text/address.ts'
import { freePort, putFile, type RunningServer, startServer } from '../support/server.ts'

export const ZONE = 'k.example.com'
export const APP = `app.${ZONE}`
/** Client subnets that the sites locate in these places. */
export const EUROPE = '127.0.100.0/24'
export const AMERICA = '127.0.200.0/24'
export const ELSEWHERE = '127.0.50.0/24'

/** The content of a site's Corefile and files. */
export interface SiteOptions {
  readonly name: string
  readonly address: string
  readonly port: number
  /** `host:port`. */
  readonly peers: readonly string[]
  /** Peers that may transfer its zone kdrnt. */
  readonly transferTo?: readonly string[]
  /** Lines of the block of the zone, of its kuadrant, of block kdrnt and its kuadrant. */
  readonly zoneLines?: string
  readonly lines?: string
  readonly kdrntLines?: string
  readonly kdrntKuadrant?: string
  readonly files?: Readonly<Record<string, string>>
  readonly readyPort?: number
}

function corefileOf(site: SiteOptions): string {
  const { name, address, port, peers, transferTo = [], lines = '' } = site
  const { kdrntLines = '', kdrntKuadrant = `site ${name}`, zoneLines = '', readyPort } = site
  const transfer = transferTo.length === 0 ? '' : `transfer {\nto ${transferTo.join(' ')}\n}`
  return `kdrnt:${port} {
    bind ${address}
    errors
    ${kdrntLines.includes('transfer') ? '' : transfer}
    ${kdrntLines}
    kuadrant {
        manifests zones
        ${kdrntKuadrant}
    }
}
${ZONE}:${port} {
    bind ${address}
    errors
    ${readyPort === undefined ? '' : `ready 127.0.0.1:${readyPort}\nprometheus 127.0.0.1:${readyPort}`}
    geoip {
        edns-subnet
        net 127.0.100.0/24 GEO-EU
        net 127.0.200.0/24 GEO-NA
    }
    ${zoneLines}
    kuadrant {
        manifests zones
        site ${name}
        ${peers.length === 0 ? '' : `peer ${peers.join(' ')}`}
        ${lines}
    }
}
`
}

/** A gateway's record as DNSPolicy lays it out: a GEO step, a weight step, an address. */
export function gateway(
  code: string,
  target: string,
  more: { weight?: number; isDefault?: boolean; host?: string } = {},
): string {
  const { weight = 120, isDefault = false, host = APP } = more
  const geo = code.toLowerCase()
  const leaf = `${target.replaceAll('.', '-')}.klb.${host}`
  const codes = `{name: geo-code, value: ${code}}${isDefault ? ', {name: default, value: "true"}' : ''}`
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: ${host.split('.')[0]}, namespace: gateways}
spec:
  rootHost: ${host}
  endpoints:
  - {dnsName: ${host}, recordType: CNAME, recordTTL: 300, targets: [klb.${host}]}
  - {dnsName: klb.${host}, recordType: CNAME, recordTTL: 300, setIdentifier: ${code}, targets: [${geo}.klb.${host}], providerSpecific: [${codes}]}
  - {dnsName: ${geo}.klb.${host}, recordType: CNAME, recordTTL: 60, setIdentifier: ${leaf}, targets: [${leaf}], providerSpecific: [{name: weight, value: "${weight}"}]}
  - {dnsName: ${leaf}, recordType: A, recordTTL: 60, targets: [${target}]}
`
}

/** A running site: one `sextant serve` process. */
export class Site {
  #options: SiteOptions
  #server: RunningServer
  readonly #test: Test

  private constructor(t: Test, options: SiteOptions, server: RunningServer) {
    this.#test = t
    this.#options = options
    this.#server = server
  }

  static async start(t: Test, options: SiteOptions): Promise<Site> {
    const directory = t.testdirName
    const { port, name, files } = options
    const own = { port, directory: join(directory, name) }
    const server = await startServer(t, {
      corefile: corefileOf(options),
      beside: own,
      files: files ?? {},
    })
    return new Site(t, options, server)
  }

  get options(): SiteOptions {
    return this.#options
  }

  get output(): string {
    return this.#server.output()
  }

  prints(what: RegExp): Promise<void> {
    return this.#server.prints(what)
  }

  /** Replaces a file atomically. */
  write(path: string, text: string): void {
    putFile(this.#server.directory, path, text)
  }

  remove(path: string): void {
    rmSync(join(this.#server.directory, path))
  }

  /** Stops the server: with SIGTERM gracefully, else like a crash. */
  async kill(signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
    this.#server.process.kill(signal)
    await this.#server.exited()
  }

  /** Stops the process for a while: it answers nothing and reads nothing. */
  pause(): void {
    this.#server.process.kill('SIGSTOP')
  }

  resume(): void {
    this.#server.process.kill('SIGCONT')
  }

  /** Starts the server again, with `changes` of its Corefile. */
  async restart(changes: Partial<SiteOptions> = {}): Promise<void> {
    this.#options = { ...this.#options, ...changes }
    const { port, directory } = this.#server
    const beside = { port, directory }
    this.#server = await startServer(this.#test, { corefile: corefileOf(this.#options), beside })
  }

  reload(): void {
    this.#server.process.kill('SIGUSR1')
  }

  /** Addresses in the answer to a client in `subnet`, sorted; the rcode if there are none. */
  async ask(subnet: string, name = APP): Promise<string> {
    const { address: host, port } = this.#options
    const plain = questionOf(scanName(`${name}.`)!, RRType.A)
    const data = composeClientSubnet(scanCidr(subnet)!)
    const edns = { ...plain.edns!, options: [{ code: OptionCode.ECS, data }] }
    const server = { host, port }
    const answered = await ask({ server, query: { ...plain, edns }, timeoutMs: 5000, tries: 6 })
    if (answered.kind === 'failed') return answered.reason
    const { answer, rcode } = answered.message
    const addresses = answer.filter(({ type }) => type === RRType.A)
    if (addresses.length === 0) return printRcode(rcode)
    return addresses
      .map(({ type, rdata }) => printRdata(type, rdata))
      .sort()
      .join()
  }

  /** How often each address is in `count` answers to clients in `subnet`. */
  async draws(subnet: string, count: number, name = APP): Promise<Map<string, number>> {
    const found = new Map<string, number>()
    for (let i = 0; i < count; i++) {
      const address = await this.ask(subnet, name)
      found.set(address, (found.get(address) ?? 0) + 1)
    }
    return found
  }
}

/** Options of two sites that are peers: east has the gateway of Europe, west that of North America. */
export async function pairOf(
  more: { east?: Partial<SiteOptions>; west?: Partial<SiteOptions> } = {},
) {
  const [eastPort, westPort] = [await freePort(), await freePort()]
  const [eastAddress, westAddress] = ['127.0.1.1', '127.0.1.2']
  const east: SiteOptions = {
    name: 'east',
    address: eastAddress,
    port: eastPort,
    peers: [`${westAddress}:${westPort}`],
    transferTo: [`${westAddress}:${westPort}`],
    files: { 'zones/app.yaml': gateway('GEO-EU', '192.0.2.1', { isDefault: true }) },
    ...more.east,
  }
  const west: SiteOptions = {
    name: 'west',
    address: westAddress,
    port: westPort,
    peers: [`${eastAddress}:${eastPort}`],
    transferTo: [`${eastAddress}:${eastPort}`],
    files: { 'zones/app.yaml': gateway('GEO-NA', '198.51.100.1') },
    ...more.west,
  }
  return { east, west }
}
