import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask, questionOf } from '../client/ask.ts'
import { composeClientSubnet } from '../dns/edns/client-subnet.ts'
import { OptionCode, RRType } from '../dns/iana/index.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import { scanName } from '../dns/name/name.ts'
import { scanCidr } from '../dns/text/address.ts'

export const DEMO_ZONE = 'k.example.com'
export const DEMO_HOST = `shop.${DEMO_ZONE}`

/** Continents, and the client subnets that the demo uses for them. */
export const CONTINENTS = [
  { name: 'Europe', code: 'GEO-EU', subnet: '127.0.1.0/24' },
  { name: 'Africa', code: 'GEO-AF', subnet: '127.0.2.0/24' },
  { name: 'North America', code: 'GEO-NA', subnet: '127.0.3.0/24' },
  { name: 'South America', code: 'GEO-SA', subnet: '127.0.4.0/24' },
  { name: 'Asia', code: 'GEO-AS', subnet: '127.0.5.0/24' },
  { name: 'Oceania', code: 'GEO-OC', subnet: '127.0.6.0/24' },
] as const

const HOST = '127.0.0.1'

interface DemoSiteOptions {
  readonly name: string
  /** An empty directory for this site only. */
  readonly directory: string
  readonly port: number
  readonly readyPort: number
  readonly adminPort: number
  readonly peerPort: number
  /** Codes of the continents that its gateway is for. */
  readonly codes: readonly string[]
  /** Its gateway is also the default for all other clients. */
  readonly isDefault: boolean
  readonly address: string
  /** Called with each line that the server writes. */
  readonly onLine: (line: string) => void
}

/** One site of the demo: a server in a process of its own, on loopback. */
export class DemoSite {
  readonly options: DemoSiteOptions
  #child: ChildProcess | undefined

  constructor(options: DemoSiteOptions) {
    this.options = options
    const { directory, address } = options
    mkdirSync(join(directory, 'zones'), { recursive: true })
    writeFileSync(join(directory, 'Corefile'), corefileOf(options))
    this.setAddress(address)
  }

  get consoleUrl(): string {
    return `http://${HOST}:${this.options.adminPort}/console/`
  }

  start(): void {
    const { directory, onLine } = this.options
    const args = [process.argv[1]!, 'serve', '-conf', 'Corefile', '-quiet']
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    const child = spawn(process.execPath, args, { cwd: directory, stdio: [...stdio] })
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      let rest = ''
      stream?.on('data', (chunk) => {
        const lines = (rest + String(chunk)).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) onLine(line)
      })
    }
  }

  /** Stops the server gracefully. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  /** Kills the server at once, like a power failure. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }

  /** Replaces the gateway atomically. */
  setAddress(address: string): void {
    const { directory } = this.options
    writeFileSync(join(directory, 'new'), manifestOf(this.options, address))
    renameSync(join(directory, 'new'), join(directory, 'zones', 'shop.yaml'))
  }

  /** Returns its answer to a client of that subnet; empty if it does not answer. */
  async ask(subnet: string): Promise<readonly ResourceRecord[]> {
    const plain = questionOf(scanName(`${DEMO_HOST}.`)!, RRType.A)
    const data = composeClientSubnet(scanCidr(subnet)!)
    const query = { ...plain, edns: { ...plain.edns!, options: [{ code: OptionCode.ECS, data }] } }
    const server = { host: HOST, port: this.options.port }
    const answered = await ask({ server, query, timeoutMs: 2000, tries: 5 })
    return answered.kind === 'reply' ? answered.message.answer : []
  }

  /** Returns its ready page. */
  async readyPage(): Promise<string> {
    const url = `http://${HOST}:${this.options.readyPort}/ready`
    return fetch(url).then(
      (reply) => reply.text(),
      () => '',
    )
  }
}

function corefileOf({ name, port, readyPort, adminPort, peerPort }: DemoSiteOptions): string {
  const nets = CONTINENTS.map(({ subnet, code }) => `        net ${subnet} ${code}\n`).join('')
  return `kdrnt:${port} {
    bind ${HOST}
    errors
    transfer {
        to ${HOST}:${peerPort}
    }
    kuadrant {
        manifests zones
    }
}
${DEMO_ZONE}:${port} {
    bind ${HOST}
    errors
    ready ${HOST}:${readyPort}
    admin ${HOST}:${adminPort} {
        console on
    }
    geoip {
        edns-subnet
${nets}    }
    kuadrant {
        manifests zones
        site ${name}
        peer ${HOST}:${peerPort}
        peer-cache peers
    }
}
`
}

/** A gateway's record in the form of DNSPolicy. */
function manifestOf({ name, codes, isDefault }: DemoSiteOptions, address: string): string {
  const leaf = `${name}.klb.${DEMO_HOST}`
  const steps = codes.flatMap((code, i) => {
    const geo = `${code.toLowerCase()}.klb.${DEMO_HOST}`
    const byDefault = isDefault && i === 0 ? ', {name: default, value: "true"}' : ''
    const properties = `[{name: geo-code, value: ${code}}${byDefault}]`
    return [
      `  - {dnsName: klb.${DEMO_HOST}, recordType: CNAME, recordTTL: 300, setIdentifier: ${code}, targets: [${geo}], providerSpecific: ${properties}}`,
      `  - {dnsName: ${geo}, recordType: CNAME, recordTTL: 60, setIdentifier: ${leaf}, targets: [${leaf}], providerSpecific: [{name: weight, value: "120"}]}`,
    ]
  })
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: shop, namespace: gateways}
spec:
  rootHost: ${DEMO_HOST}
  endpoints:
  - {dnsName: ${DEMO_HOST}, recordType: CNAME, recordTTL: 300, targets: [klb.${DEMO_HOST}]}
${steps.join('\n')}
  - {dnsName: ${leaf}, recordType: A, recordTTL: 60, targets: [${address}]}
`
}
