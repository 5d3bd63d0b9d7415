import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { HostNetwork, HostProcess, NetworkHost } from './host-network.ts'
import { scanFences } from './page.ts'
import { root } from './server.ts'
import { until } from './until.ts'

export const EDGE_PAGE = 'docs/how-to/delegate.md'
/** Ample, for a machine on which other tests run too. */
const START_MS_MAX = 300_000
/** Where the page has its nameservers. */
export const NAMESERVERS = ['192.0.2.11', '192.0.2.12', '192.0.2.13'] as const
const INFRASTRUCTURE = '192.0.2.0/24'
/** Clients of these networks are in Ireland and in the United States, says the Corefile of the page. */
const EUROPE = '198.51.100.0/24'
const AMERICA = '203.0.113.0/24'
export const CLIENT_IN_EUROPE = '198.51.100.10'
export const CLIENT_IN_AMERICA = '203.0.113.10'

/** What the page has around the clusters: parent zone, resolver, clients. */
export interface Edge {
  readonly client: NetworkHost
  readonly parent: HostProcess
  readonly resolver: HostProcess
}

/** In a mount namespace, which `ip netns exec` makes, its files are where it looks for them. */
const PARENT = `mount --bind "$0/etc/bind" /etc/bind; mount --bind "$0/var/lib/bind" /var/lib/bind
mount -t tmpfs tmpfs /run && mkdir /run/named && mount -t tmpfs tmpfs /var/cache/bind
exec named -g -n 1 -c /etc/bind/named.conf`
const RESOLVER = `mount --bind "$0/etc/unbound" /etc/unbound
mount -t tmpfs tmpfs /run
exec unbound -ddp -c /etc/unbound/unbound.conf`

/** Lays the files of the page in `directory`: `directory/etc/bind/named.conf`, `directory/Corefile`, … */
export function layEdgeFiles(directory: string): void {
  for (const { file, text } of scanFences(readFileSync(join(root, EDGE_PAGE), 'utf8'))) {
    if (file === '') continue
    mkdirSync(dirname(join(directory, file)), { recursive: true })
    writeFileSync(join(directory, file), text)
  }
}

/** A host of the network for each nameserver of the page. */
export async function addNameservers(network: HostNetwork): Promise<NetworkHost[]> {
  const hosts: NetworkHost[] = []
  for (const [index, address] of NAMESERVERS.entries()) {
    hosts.push(await network.addHost(`ns${index + 1}`, [`${address}/24`], [EUROPE, AMERICA]))
  }
  return hosts
}

/** Starts BIND and Unbound with the files that `layEdgeFiles` laid. */
export async function startEdge(network: HostNetwork, directory: string): Promise<Edge> {
  const clients = [EUROPE, AMERICA]
  const addresses = [`${CLIENT_IN_EUROPE}/24`, `${CLIENT_IN_AMERICA}/24`]
  const client = await network.addHost('client', addresses, [INFRASTRUCTURE])
  const parentHost = await network.addHost('parent', ['192.0.2.1/24'], clients)
  const resolverHost = await network.addHost('resolver', ['192.0.2.53/24'], clients)
  const parent = parentHost.start(['sh', '-c', PARENT, directory])
  const resolver = resolverHost.start(['sh', '-c', RESOLVER, directory])
  await answers(client, parent, '@192.0.2.1', 'example.com', 'SOA')
  await answers(client, resolver, '@192.0.2.53', 'example.com', 'SOA')
  return { client, parent, resolver }
}

/** Waits until a server answers with something. */
export async function answers(
  client: NetworkHost,
  server: HostProcess,
  ...question: readonly string[]
): Promise<void> {
  const isThere = async () => {
    if (server.process.exitCode !== null) throw new Error(`it ended:\n${server.output()}`)
    const text = await client.run('dig', '+time=1', '+tries=1', ...question)
    return text.includes('status: NOERROR') && !text.includes('ANSWER: 0')
  }
  await until(isThere, `an answer to ${question.join(' ')}`, START_MS_MAX).catch((error: Error) => {
    throw new Error(`${error.message}:\n${server.output()}`)
  })
}
