import { Resolver } from 'node:dns/promises'
import type { Test } from 'tap'
import { getText } from '../support/get-text.ts'
import { freePort, type RunningServer, type ServerOptions, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

export const ZONE = 'k.example.com'
/** From a change in the API to the answer, on a machine on which other tests run too. */
export const SEEN_MS = 120_000
/** The longest wait between two attempts, and the time to succeed. */
export const HEALED_MS = 180_000

/** A DNSRecord of a name below ZONE. */
export function record(name: string, address: string, more: object = {}): object {
  const host = `${name}.${ZONE}`
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name, labels: { 'kuadrant.io/coredns-zone-name': ZONE }, ...more },
    spec: {
      rootHost: host,
      endpoints: [{ dnsName: host, recordType: 'A', recordTTL: 60, targets: [address] }],
    },
  }
}

/** A patch of its endpoints. */
export const endpointsOf = (name: string, address: string) => ({
  spec: {
    endpoints: [{ dnsName: `${name}.${ZONE}`, recordType: 'A', recordTTL: 60, targets: [address] }],
  },
})

/** What the resolver makes of an rcode. */
const RCODES = new Map([
  ['ENOTFOUND', 'NXDOMAIN'],
  ['ESERVFAIL', 'SERVFAIL'],
])

/** A server over the cluster, with its ready page and its metrics. */
export class ServedCluster {
  readonly server: RunningServer
  readonly #http: number
  readonly #metrics: number
  readonly #resolver = new Resolver({ timeout: 2000, tries: 3 })

  private constructor(server: RunningServer, http: number, metrics: number) {
    this.server = server
    this.#resolver.setServers([`127.0.0.1:${server.port}`])
    this.#http = http
    this.#metrics = metrics
  }

  get metricsAddress(): string {
    return `127.0.0.1:${this.#metrics}`
  }

  static async start(
    t: Test,
    kubeconfig: string,
    {
      properties = '',
      directives = '',
      ...how
    }: { properties?: string; directives?: string } & Pick<
      ServerOptions,
      'env' | 'files' | 'wrapper'
    > = {},
  ): Promise<ServedCluster> {
    const [http, metrics] = [await freePort(), await freePort()]
    const corefile = `${ZONE}:{PORT} {
    bind 127.0.0.1
    kuadrant {
        ${kubeconfig === '' ? '' : `kubeconfig ${kubeconfig}`}
        share-hosts . *
        ${properties}
    }
    ${directives}
    ready 127.0.0.1:${http}
    prometheus 127.0.0.1:${metrics}
}
`
    const beside = { port: await freePort(), directory: temporaryDirectory(t) }
    const server = await startServer(t, { corefile, beside, ...how })
    return new ServedCluster(server, http, metrics)
  }

  /** Addresses of a name below the zone, '' = its apex, in order; or the rcode. */
  async ask(name: string): Promise<string> {
    try {
      const host = name === '' ? ZONE : `${name}.${ZONE}`
      return (await this.#resolver.resolve4(host)).sort().join(' ')
    } catch (error) {
      if (!(error instanceof Error) || !('code' in error)) throw error
      return RCODES.get(String(error.code)) ?? String(error.code)
    }
  }

  async sees(name: string, want: string, timeoutMs = SEEN_MS): Promise<void> {
    let got = ''
    const isSo = async () => (got = await this.ask(name)) === want
    await until(isSo, `${name} to be ${want}`, timeoutMs).catch((error: Error) => {
      throw new Error(`${error.message}, it is ${got}:\n${this.server.output()}`)
    })
  }

  ready(): Promise<{ readonly status: number; readonly text: string }> {
    return getText(`http://127.0.0.1:${this.#http}/ready`)
  }

  /** Waits until the ready page says that; all of it. */
  async says(want: RegExp): Promise<{ readonly status: number; readonly text: string }> {
    let page = await this.ready()
    const isSo = async () => want.test((page = await this.ready()).text)
    await until(isSo, `the ready page to say ${want}`, HEALED_MS).catch((error: Error) => {
      throw new Error(`${error.message}, it says ${page.text}:\n${this.server.output()}`)
    })
    return page
  }

  async isReady(): Promise<void> {
    await this.says(/^OK$/)
  }

  /** The value of a series whose labels contain `label`. */
  async metric(name: string, label = ''): Promise<number | undefined> {
    const { text } = await getText(`http://127.0.0.1:${this.#metrics}/metrics`)
    const line = text.split('\n').find((l) => l.startsWith(`${name}{`) && l.includes(label))
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1))
  }
}
